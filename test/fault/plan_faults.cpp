// Wrong decisions of the planner: memory offsets, order, operands and guards of the finished plan.
#include <algorithm>
#include <set>

#include "runtime/executable.h"
#include "test/fault/fault.h"

namespace hone::test {

namespace {

using Kind = PlanBuffer::Kind;

Fault wrong(std::string name, std::string what, std::function<bool(Plan&, Variant&)> change) {
  Fault f;
  f.name = "plan-" + std::move(name);
  f.what = std::move(what);
  f.break_plan = [change](Plan& p) {
    for (Variant& v : p.main().variants)
      if (change(p, v)) return true;
    return false;
  };
  return f;
}

// First and last step of the outermost level that uses each buffer; -1 if none.
struct Uses {
  explicit Uses(const Variant& v) : first(v.buffers.size(), -1), last(v.buffers.size(), -1) {
    for (std::size_t i = 0; i < v.steps.size(); ++i) {
      const std::vector<Step> one = {v.steps[i]};
      for_each_step(one, [&](const Step& s) {
        for (const View& view : s.operands) {
          if (first[view.buffer] < 0) first[view.buffer] = static_cast<int>(i);
          last[view.buffer] = static_cast<int>(i);
        }
      });
    }
  }
  std::vector<int> first, last;
};

bool is_used(const Variant& v, const Uses& u, std::size_t b, Kind kind) {
  return v.buffers[b].kind == kind && u.first[b] >= 0;
}

bool reads(const Step& s, std::uint32_t buffer) {
  for (std::size_t i = 0; i < s.operands.size(); ++i)
    if (!s.written[i] && s.operands[i].buffer == buffer) return true;
  return false;
}

// Index of a step that needs the output of the step before it; 0 if none.
std::size_t dependent_step(const Variant& v) {
  for (std::size_t i = 1; i < v.steps.size(); ++i) {
    const Step& before = v.steps[i - 1];
    for (std::size_t k = 0; k < before.operands.size(); ++k)
      if (before.written[k] && reads(v.steps[i], before.operands[k].buffer)) return i;
  }
  return 0;
}

// The first launch for which `fits` returns true.
Step* find_launch(Variant& v, const std::function<bool(Step&)>& fits) {
  for (Step& s : v.steps)
    if (s.kind == Step::Kind::launch && fits(s)) return &s;
  return nullptr;
}

bool are_alike(const View& a, const View& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.strides == b.strides;
}

bool have_one_form(const Step& a, const Step& b) {
  return a.scalars == b.scalars && a.written == b.written && a.chunks == b.chunks &&
         a.scratch_bytes == b.scratch_bytes &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
                    are_alike);
}

void add_memory(std::vector<Fault>& all) {
  all.push_back(
      wrong("arena-overlap", "two buffers that live at once share a place", [](Plan&, Variant& v) {
        Uses u(v);
        for (std::size_t a = 0; a < v.buffers.size(); ++a)
          for (std::size_t b = 0; b < v.buffers.size(); ++b)
            if (is_used(v, u, a, Kind::arena) && is_used(v, u, b, Kind::arena) &&
                u.first[a] < u.first[b] && u.first[b] < u.last[a] &&
                v.buffers[a].offset != v.buffers[b].offset) {
              v.buffers[b].offset = v.buffers[a].offset;
              return true;
            }
        return false;
      }));
  all.push_back(wrong("arena-early-reuse", "a buffer takes the place of one that is still read",
                      [](Plan&, Variant& v) {
                        Uses u(v);
                        for (std::size_t a = 0; a < v.buffers.size(); ++a)
                          for (std::size_t b = 0; b < v.buffers.size(); ++b)
                            if (a != b && is_used(v, u, a, Kind::arena) &&
                                is_used(v, u, b, Kind::arena) && u.last[a] == u.first[b] &&
                                v.buffers[a].offset != v.buffers[b].offset &&
                                v.buffers[a].bytes != v.buffers[b].bytes) {
                              v.buffers[b].offset = v.buffers[a].offset;
                              return true;
                            }
                        return false;
                      }));
  all.push_back(wrong("arena-short", "the arena is 64 bytes short", [](Plan&, Variant& v) {
    if (v.devices[0].arena_bytes.low() < 64) return false;
    v.devices[0].arena_bytes = v.devices[0].arena_bytes - Dim(64);
    return true;
  }));
  all.push_back(wrong("arena-crooked", "a buffer lies at no multiple of 64", [](Plan&, Variant& v) {
    Uses u(v);
    for (std::size_t b = 0; b < v.buffers.size(); ++b)
      if (is_used(v, u, b, Kind::arena)) {
        v.buffers[b].offset = v.buffers[b].offset + Dim(4);
        v.devices[0].arena_bytes = v.devices[0].arena_bytes + Dim(64);
        return true;
      }
    return false;
  }));
  all.push_back(wrong("arena-negative", "a buffer lies before the arena", [](Plan&, Variant& v) {
    Uses u(v);
    for (std::size_t b = 0; b < v.buffers.size(); ++b)
      if (is_used(v, u, b, Kind::arena)) {
        v.buffers[b].offset = Dim(-64);
        return true;
      }
    return false;
  }));
  all.push_back(
      wrong("buffer-small", "a buffer is smaller than what is put there", [](Plan&, Variant& v) {
        Uses u(v);
        for (std::size_t b = 0; b < v.buffers.size(); ++b)
          if (is_used(v, u, b, Kind::arena) && v.buffers[b].bytes.low() > 64) {
            v.buffers[b].bytes = v.buffers[b].bytes - Dim(64);
            return true;
          }
        return false;
      }));
  all.push_back(wrong("alias-read-later", "a result lies in a parameter that is still read",
                      [](Plan& p, Variant& v) {
                        for (std::size_t i = 0; i < p.main().params.size(); ++i)
                          for (std::size_t r = 0; r < p.main().results.size(); ++r)
                            if (p.main().params[i].type == p.main().results[r].type &&
                                p.main().result_alias[r] < 0) {
                              p.main().params[i].donated = true;
                              p.main().result_alias[r] = static_cast<std::int32_t>(i);
                              static_cast<void>(v);
                              return true;
                            }
                        return false;
                      }));
  all.push_back(wrong(
      "alias-not-donated", "a result lies in a parameter that the caller keeps",
      [](Plan& p, Variant&) {
        for (std::size_t r = 0; r < p.main().results.size(); ++r)
          if (p.main().result_alias[r] >= 0) {
            p.main().params[static_cast<std::size_t>(p.main().result_alias[r])].donated = false;
            return true;
          }
        return false;
      }));
}

// Whether the step copies a parameter to the result that shares its memory; the parameter is
// overwritten from there on.
bool is_taken_over(const Plan& p, const Variant& v, const Step& s) {
  if (s.kind != Step::Kind::copy) return false;
  const PlanBuffer &from = v.buffers[s.operands[0].buffer], &to = v.buffers[s.operands[1].buffer];
  return from.kind == Kind::param && to.kind == Kind::result &&
         p.main().result_alias[to.index] == static_cast<std::int32_t>(from.index);
}

void add_updates(std::vector<Fault>& all) {
  all.push_back(wrong("overwrite-early", "a buffer is overwritten before it is read",
                      [](Plan& p, Variant& v) {
                        for (std::size_t i = 1; i + 1 < v.steps.size(); ++i)
                          if (is_taken_over(p, v, v.steps[i]) &&
                              reads(v.steps[i - 1], v.steps[i].operands[0].buffer)) {
                            std::rotate(v.steps.begin() + static_cast<std::ptrdiff_t>(i) - 1,
                                        v.steps.begin() + static_cast<std::ptrdiff_t>(i),
                                        v.steps.begin() + static_cast<std::ptrdiff_t>(i) + 2);
                            return true;
                          }
                        return false;
                      }));
  all.push_back(wrong("update-of-nothing", "an update in place begins with what nothing wrote",
                      [](Plan& p, Variant& v) {
                        for (std::size_t i = 0; i < v.steps.size(); ++i)
                          if (is_taken_over(p, v, v.steps[i])) {
                            v.steps.erase(v.steps.begin() + static_cast<std::ptrdiff_t>(i));
                            p.main().result_alias.assign(p.main().result_alias.size(), -1);
                            return true;
                          }
                        return false;
                      }));
}

void add_order(std::vector<Fault>& all) {
  all.push_back(
      wrong("steps-swapped", "a step runs before the one it needs", [](Plan&, Variant& v) {
        std::size_t i = dependent_step(v);
        if (i == 0) return false;
        std::swap(v.steps[i], v.steps[i - 1]);
        return true;
      }));
  all.push_back(wrong("step-lost", "a step is left out", [](Plan&, Variant& v) {
    std::size_t i = dependent_step(v);
    if (i == 0) return false;
    v.steps.erase(v.steps.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    return true;
  }));
  all.push_back(
      wrong("last-step-lost", "the step that writes a result is left out", [](Plan&, Variant& v) {
        if (v.steps.empty()) return false;
        v.steps.pop_back();
        return true;
      }));
  all.push_back(wrong("first-step-last", "the first step runs at the end", [](Plan&, Variant& v) {
    if (v.steps.size() < 2) return false;
    std::rotate(v.steps.begin(), v.steps.begin() + 1, v.steps.end());
    return true;
  }));
  all.push_back(wrong("branch-swapped", "the bodies of an if are exchanged", [](Plan&, Variant& v) {
    for (Step& s : v.steps)
      if (s.kind == Step::Kind::branch) {
        std::swap(s.body, s.otherwise);
        return true;
      }
    return false;
  }));
  all.push_back(wrong("branch-body-lost", "the body of an if is empty", [](Plan&, Variant& v) {
    for (Step& s : v.steps)
      if (s.kind == Step::Kind::branch) {
        s.body.clear();
        return true;
      }
    return false;
  }));
}

void add_operands(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what, std::function<bool(Plan&, Variant&)> f) {
    all.push_back(wrong(name, what, std::move(f)));
  };
  at("operands-swapped", "two operands of one form are exchanged", [](Plan&, Variant& v) {
    return find_launch(v, [](Step& s) {
             for (std::size_t i = 0; i < s.operands.size(); ++i)
               for (std::size_t k = 0; k < i; ++k)
                 if (!s.written[i] && !s.written[k] && are_alike(s.operands[i], s.operands[k]) &&
                     s.operands[i].buffer != s.operands[k].buffer) {
                   std::swap(s.operands[i], s.operands[k]);
                   return true;
                 }
             return false;
           }) != nullptr;
  });
  at("other-weight", "a step reads another weight of the same form", [](Plan& p, Variant& v) {
    for (PlanBuffer& a : v.buffers)
      for (PlanBuffer& b : v.buffers)
        if (&a != &b && a.kind == b.kind && a.index != b.index && a.bytes == b.bytes &&
            (a.kind == Kind::prepared || a.kind == Kind::weight) && a.bytes != Dim(0)) {
          const bool alike = a.kind == Kind::weight
                                 ? p.weights[a.index].data.type() == p.weights[b.index].data.type()
                                 : p.prepared[a.index].type == p.prepared[b.index].type;
          if (!alike) continue;
          std::swap(a.index, b.index);
          return true;
        }
    return false;
  });
  at("strides-transposed", "a view has its strides in the other order", [](Plan&, Variant& v) {
    return find_launch(v, [](Step& s) {
             for (View& view : s.operands)
               if (view.dims.size() == 2 && view.dims[0] == view.dims[1] &&
                   view.strides[0] != view.strides[1]) {
                 std::swap(view.strides[0], view.strides[1]);
                 return true;
               }
             return false;
           }) != nullptr;
  });
  at("dims-short", "a view is one shorter", [](Plan&, Variant& v) {
    return find_launch(v, [](Step& s) {
             for (View& view : s.operands)
               if (!view.dims.empty() && view.dims[0].low() > 1) {
                 view.dims[0] = view.dims[0] - Dim(1);
                 return true;
               }
             return false;
           }) != nullptr;
  });
  at("offset-moved", "a view starts 64 bytes late", [](Plan&, Variant& v) {
    return find_launch(v, [](Step& s) {
             for (View& view : s.operands)
               if (!view.dims.empty()) {
                 view.offset = view.offset + Dim(64);
                 return true;
               }
             return false;
           }) != nullptr;
  });
  at("dtype-other", "a view has another dtype", [](Plan&, Variant& v) {
    return find_launch(v, [](Step& s) {
             for (View& view : s.operands)
               if (view.dtype == DType::f32) {
                 view.dtype = DType::i32;
                 return true;
               }
             return false;
           }) != nullptr;
  });
  at("written-as-read", "an operand that is written is called read", [](Plan&, Variant& v) {
    return find_launch(v, [](Step& s) {
             for (std::size_t i = 0; i < s.written.size(); ++i)
               if (s.written[i]) {
                 s.written[i] = false;
                 return true;
               }
             return false;
           }) != nullptr;
  });
  at("other-kernel", "a step launches another kernel with as many operands",
     [](Plan& p, Variant& v) {
       return find_launch(v, [&](Step& s) {
                for (const Step& t : v.steps)
                  if (t.kind == Step::Kind::launch && t.index != s.index &&
                      t.operands.size() == s.operands.size() && p.kernels.size() > 1) {
                    s.index = t.index;
                    return true;
                  }
                return false;
              }) != nullptr;
     });
  at("results-swapped", "two results are exchanged", [](Plan& p, Variant& v) {
    PlanBuffer* first = nullptr;
    for (PlanBuffer& b : v.buffers) {
      if (b.kind != Kind::result) continue;
      if (first && v.results[first->index] == v.results[b.index]) {
        std::swap(first->index, b.index);
        return true;
      }
      if (!first) first = &b;
    }
    static_cast<void>(p);
    return false;
  });
}

void add_launches(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what, std::function<bool(Step&)> f) {
    all.push_back(
        wrong(name, what, [f](Plan&, Variant& v) { return find_launch(v, f) != nullptr; }));
  };
  at("chunks-short", "the last chunk is not computed", [](Step& s) {
    s.chunks = s.chunks - Dim(1);
    return true;
  });
  at("scalars-wrong", "a kernel is told another size", [](Step& s) {
    if (s.scalars.empty()) return false;
    s.scalars[0] = s.scalars[0] - Dim(1);
    return true;
  });
  at("scalars-lost", "a kernel is told no size", [](Step& s) {
    if (s.scalars.empty()) return false;
    s.scalars.clear();
    return true;
  });
  at("scratch-short", "a kernel gets no scratch memory", [](Step& s) {
    if (s.scratch_bytes == Dim(0)) return false;
    s.scratch_bytes = 0;
    return true;
  });
}

void add_data(std::vector<Fault>& all) {
  all.push_back(wrong("prepared-lost", "a prepared weight has no data", [](Plan& p, Variant&) {
    if (p.prepared.empty()) return false;
    p.prepared[0].data = {};
    return true;
  }));
  all.push_back(
      wrong("prepared-damaged", "a bit of a prepared weight is flipped", [](Plan& p, Variant&) {
        for (PreparedBuffer& b : p.prepared) {
          std::span<const std::byte> from = b.data.bytes();
          for (std::size_t i = 3; i < from.size(); i += 4) {
            if (from[i] == std::byte{0}) continue;
            std::vector<std::byte> bytes(from.begin(), from.end());
            bytes[i] ^= std::byte{0x40};
            b.data = Storage::from(std::move(bytes));
            return true;
          }
        }
        return false;
      }));
  all.push_back(
      wrong("kernel-entry-lost", "a kernel's entry is not in its code", [](Plan& p, Variant&) {
        p.kernels[0].entry += "x";
        return true;
      }));
  all.push_back(wrong("binary-other", "a kernel lies in the code of another of the same form",
                      [](Plan& p, Variant& v) {
                        std::vector<const Step*> launches;
                        for_each_step(v.steps, [&](const Step& s) {
                          if (s.kind == Step::Kind::launch) launches.push_back(&s);
                        });
                        for (const Step* s : launches)
                          for (const Step* t : launches) {
                            PlanKernel &a = p.kernels[s->index], &b = p.kernels[t->index];
                            if (a.binary == b.binary || !have_one_form(*s, *t)) continue;
                            std::swap(a.binary, b.binary);
                            std::swap(a.entry, b.entry);
                            return true;
                          }
                        return false;
                      }));
  all.push_back(wrong("guard-never", "no size satisfies the guards", [](Plan& p, Variant& v) {
    if (p.main().params.empty()) return false;
    v.guards.push_back({Guard::Kind::equal, Dim(0), Dim(1)});
    return true;
  }));
}

}  // namespace

std::vector<Fault> plan_faults() {
  std::vector<Fault> all;
  add_memory(all);
  add_order(all);
  add_updates(all);
  add_operands(all);
  add_launches(all);
  add_data(all);
  return all;
}

}  // namespace hone::test
