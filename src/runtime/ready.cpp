#include "runtime/ready.h"

#include <algorithm>
#include <functional>

#include "base/checked.h"
#include "base/error.h"
#include "plan/audit.h"
#include "plan/footprint.h"
#include "runtime/sizes.h"

namespace hone {

std::size_t Ready::bytes() const {
  return sizeof(Ready) + bound_bytes(program) + placements.size() * heap_bytes(placements[0].ports);
}

ReadyCache::ReadyCache(const Executable& executable, const LoadedEntry& entry, std::size_t most)
    : executable_(executable),
      loaded_(entry),
      entry_(*entry.plan),
      most_(std::max<std::size_t>(most, 1)),
      values_(entry.symbols.size()),
      value_input_(values_.size()) {}

Ready& ReadyCache::at(const Ports& ports) {
  for (std::size_t i = 0; i < ports.inputs().size(); ++i)
    if (!ports.inputs()[i].is_bound)
      throw UserError("session: input '", entry_.params[i].name,
                      "' is not bound; bind it before the run");
  match_sizes(ports);
  auto found = std::ranges::find_if(kept_, [&](const auto& r) { return r->values == values_; });
  if (found == kept_.end()) {
    std::unique_ptr<Ready> made = make(ports);
    if (kept_.size() >= most_)
      kept_.erase(std::ranges::min_element(kept_, {}, [](const auto& r) { return r->last_use; }));
    ++binds_;
    kept_.push_back(std::move(made));
    found = kept_.end() - 1;
  }
  (*found)->last_use = ++uses_;
  return **found;
}

std::int64_t ReadyCache::value(const Dim& d) const { return evaluate(d, loaded_.symbols, values_); }

// Fills values_ from the inputs' dims.
void ReadyCache::match_sizes(const Ports& ports) {
  const Dims& symbols = loaded_.symbols;
  const auto for_each_axis = [&](const auto& f) {
    for (std::size_t i = 0; i < ports.inputs().size(); ++i)
      for (std::size_t axis = 0; axis < ports.inputs()[i].dims.size(); ++axis)
        f(i, axis, entry_.params[i].type.shape.dims[axis]);
  };
  std::fill(values_.begin(), values_.end(), std::int64_t{-1});
  for_each_axis([&](std::size_t i, std::size_t axis, const Dim& d) {
    if (!d.is_symbol()) return;
    const auto at = std::ranges::find(symbols, d.name(), &Dim::name) - symbols.begin();
    match_symbol(ports, static_cast<std::size_t>(at), i, axis);
  });
  for_each_axis([&](std::size_t i, std::size_t axis, const Dim& d) {
    const std::int64_t wanted = value(d), given = ports.inputs()[i].dims[axis];
    if (wanted == given) return;
    const std::string is = d.is_number() ? "" : cat(" = ", d);
    throw UserError("input '", entry_.params[i].name, "': axis ", axis, " is ", given,
                    ", expected ", wanted, is, " for ", entry_.params[i].type);
  });
}

void ReadyCache::match_symbol(const Ports& ports, std::size_t s, std::size_t input,
                              std::size_t axis) {
  const std::int64_t n = ports.inputs()[input].dims[axis];
  if (values_[s] < 0) {
    values_[s] = n;
    value_input_[s] = input;
  } else if (values_[s] != n) {
    throw UserError("size ", loaded_.symbols[s], " is ", values_[s], " in input '",
                    entry_.params[value_input_[s]].name, "' and ", n, " in input '",
                    entry_.params[input].name, "', expected equal sizes");
  }
}

std::string ReadyCache::sizes_text() const {
  std::string out;
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i] != not_known)
      out += cat(out.empty() ? "" : ", ", loaded_.symbols[i], " = ", values_[i]);
  return out;
}

std::uint32_t ReadyCache::choose_variant() const {
  for (const PlanCheck& c : entry_.checks)
    if (const std::int64_t a = value(c.a), b = value(c.b); a != b)
      throw UserError(c.message, ": ", c.a, " is ", a, " and ", c.b, " is ", b, ", with ",
                      sizes_text());
  for (std::uint32_t v : loaded_.variants)
    if (std::ranges::all_of(entry_.variants[v].guards,
                            [&](const Guard& g) { return holds(g, value(g.a), value(g.b)); }))
      return v;
  throw UserError(executable_.plan().name, ": no variant of the plan supports ", sizes_text(),
                  "; compile the model for these sizes");
}

std::unique_ptr<Ready> ReadyCache::make(const Ports& ports) const {
  auto r = std::make_unique<Ready>();
  r->values = values_;
  r->variant = choose_variant();
  const Variant& v = entry_.variants[r->variant];
  r->program = bind_steps(executable_, v, values_);
  if (executable_.plan().reading.mapped > 0) audit_steps(v);
  for (std::size_t i = 0; i < v.results.size(); ++i) r->outputs.push_back(output_need(v, i));
  note_places(ports, v, *r);
  return r;
}

// Plan files are not trusted: no step may read unwritten data or overwrite data that is still
// needed. A plan that was compiled in this process was audited then.
void ReadyCache::audit_steps(const Variant& v) const {
  std::vector<std::int64_t> values = values_;
  for (const DimBound& b : v.measured) {
    const auto at = std::ranges::find(loaded_.symbols, b.symbol.name(), &Dim::name);
    values[static_cast<std::size_t>(at - loaded_.symbols.begin())] =
        evaluate(b.most, loaded_.symbols, values);
  }
  SizeValues size(loaded_.symbols, values);
  if (const std::string problem = audit_problem(executable_.plan(), entry_, v, std::ref(size));
      !problem.empty())
    throw UserError(problem, ", with ", values_.empty() ? "its sizes" : sizes_text(),
                    "; the plan file is damaged; compile the plan again");
}

OutputNeed ReadyCache::output_need(const Variant& v, std::size_t output) const {
  const Type t = largest(v.results[output], v.measured);
  OutputNeed need;
  need.is_open = !(t == v.results[output]);
  std::int64_t bytes = byte_size(t.dtype);
  for (const Dim& d : t.shape.dims) {
    need.dims.push_back(value(d));
    if (!need.is_open) bytes = checked_mul(bytes, need.dims.back());
  }
  if (need.is_open) bytes = value(result_bytes(v, output));
  need.bytes = static_cast<std::size_t>(bytes);
  return need;
}

// What the devices of a variant use.
void ReadyCache::note_places(const Ports& ports, const Variant& v, Ready& r) const {
  for (const PlanBuffer& b : v.buffers) {
    const bool is_result = b.kind == PlanBuffer::Kind::result;
    if (!is_result && b.kind != PlanBuffer::Kind::param) continue;
    r.used.push_back(ports.place_of(executable_.device_of(v, b.device), b.kind, b.index));
    if (is_result) r.outputs[b.index].place = r.used.back();
  }
  std::sort(r.used.begin(), r.used.end());
  r.used.erase(std::unique(r.used.begin(), r.used.end()), r.used.end());
  for (Ready::Placement& p : r.placements) {
    p.ports.resize(r.used.size());
    p.arenas.resize(executable_.devices().size());
  }
}

}  // namespace hone
