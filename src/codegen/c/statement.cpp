// The part of Renderer that writes statements. Marks loops with independent iterations; splits sums
// over them into several parts, and runs loops inside them over strips of iterations, so that a
// compiler that does not reorder additions can vectorise them.
#include <algorithm>
#include <limits>

#include "codegen/c/expression.h"
#include "kernel/positions.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::c {

namespace {

// Size of a strip of a loop that contains sums or loops.
constexpr std::int64_t strip_bytes = 512;
// Unrolled loops inside a lanes loop make at most this many copies of a body.
constexpr std::int64_t most_copies = 32;
constexpr std::int64_t across_block = 16;

std::int64_t power_of_two_from(std::int64_t n) {
  std::int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

// Number of copies of the block's statements with its loops unrolled; 0: too many.
std::int64_t copies(const Block& block) {
  std::int64_t most = 1;
  for (const Stmt& s : block) {
    std::int64_t here = copies(s.body);
    if (s.kind == Stmt::Kind::loop) {
      const std::int64_t turns = s.extent.is_number() ? s.extent.number() : most_copies + 1;
      here = turns > most_copies ? 0 : std::max<std::int64_t>(turns, 1) * here;
    }
    if (here == 0 || here > most_copies) return 0;
    most = std::max(most, here);
  }
  return most;
}

bool keeps_loop(const Stmt& s) { return copies({s}) == 0; }
bool keeps_loop(const Block& block) { return copies(block) == 0; }

std::vector<RegId> modified_outside(const Block& block) {
  std::vector<RegId> out;
  std::unordered_set<RegId> own;
  for_each_statement(block, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::declare) own.insert(s.reg);
  });
  for_each_statement(block, [&](const Stmt& s) {
    const bool modifies = s.kind == Stmt::Kind::assign || s.kind == Stmt::Kind::accumulate;
    if (modifies && !own.contains(s.reg) && std::find(out.begin(), out.end(), s.reg) == out.end())
      out.push_back(s.reg);
  });
  return out;
}

const Op& combine_of(const Block& block, RegId reg) {
  const Op* combine = nullptr;
  for_each_statement(block, [&](const Stmt& s) {
    if (s.reg != reg || s.kind == Stmt::Kind::loop) return;
    HONE_ASSERT(s.kind == Stmt::Kind::accumulate, "register ", reg,
                " of the outside is assigned in a lanes loop");
    combine = s.combine;
  });
  return *combine;
}

}  // namespace

void Renderer::block(const Block& block) {
  for (const Stmt& s : block) statement(s);
}

void Renderer::statement(const Stmt& s) {
  if (dialect_.has_groups ? group_statement(s) : show_tiles(s)) return;
  switch (s.kind) {
    case Stmt::Kind::loop:
      return loop(s);
    case Stmt::Kind::declare:
      return declare(s);
    case Stmt::Kind::assign:
      return assign(s);
    case Stmt::Kind::accumulate:
      return accumulate(s);
    case Stmt::Kind::store:
      return store(s);
    case Stmt::Kind::branch:
      return branch(s);
    case Stmt::Kind::fetch:
      if (!dialect_.fetch.empty())
        out_.line(filled(dialect_.fetch,
                         {{"$A", cat(buffer(s.param), " + (", position(s.offset), ")")}}));
      return;
    case Stmt::Kind::tile_fill:
      return tile_fill(s);
    case Stmt::Kind::tile_load:
      return tile_load(s);
    case Stmt::Kind::tile_store:
      return tile_store(s);
    case Stmt::Kind::tile_multiply:
      return tile_multiply(s);
    default:
      throw UserError("kernel '", kernel_.name, "': standard C has no groups of threads");
  }
}

void Renderer::scoped(const std::function<void()>& body) {
  auto cache = cache_;
  body();
  cache_ = std::move(cache);
}

void Renderer::forget_registers() {
  std::erase_if(cache_, [&](const auto& entry) { return reads_.at(entry.first).registers; });
}

void Renderer::forget_memory() {
  std::erase_if(cache_, [&](const auto& entry) { return reads_.at(entry.first).written; });
}

void Renderer::declare(const Stmt& s) {
  const std::string x = value(s.value);
  register_dtypes_[s.reg] = register_dtype(s.value.dtype());
  // Already declared by a strip.
  if (arrays_.contains(s.reg)) {
    out_.line(registers_.at(s.reg), " = ", x, ";");
  } else {
    registers_[s.reg] = fresh("r");
    out_.line(register_type(s.value.dtype()), " ", registers_[s.reg], " = ", x, ";");
    if (!dialect_.has_groups && !read_registers_.contains(s.reg))
      out_.line("(void)", registers_[s.reg], ";");
  }
  forget_registers();
}

void Renderer::assign(const Stmt& s) {
  out_.line(registers_.at(s.reg), " = ", value(s.value), ";");
  forget_registers();
}

void Renderer::accumulate(const Stmt& s) {
  const std::string& total = registers_.at(s.reg);
  if (s.combine == &ops::add && is_open_product(s.value)) {
    out_.line(total, " = ", sum_with(s.value, total), ";");
  } else {
    const std::string x = value(s.value);
    out_.line(total, " = ", combined(helpers_, *s.combine, s.value.dtype(), total, x), ";");
  }
  forget_registers();
}

// An element that a store copies unchanged from a vector or another array; a narrow float would
// otherwise be widened and rounded again.
std::string Renderer::copied_element(const Stmt& s) {
  const Value from_memory = held_load(s.value).value_or(s.value);
  if (!from_memory.is(ops::load) || s.value.dtype() != buffer_dtype(s.param)) return "";
  if (const auto v = vector_loads_.find(from_memory.node()); v != vector_loads_.end())
    return v->second;
  if (!s.value.is(ops::load)) return "";
  const int from = static_cast<int>(s.value.attrs().integer("param"));
  const bool is_array_copy =
      is_array(from) && s.value.operand_count() == 0 && buffer_dtype(from) == buffer_dtype(s.param);
  return is_array_copy ? element_at(from, s.value.attrs().dims("offset").at(0)) : "";
}

// The memory form of a cast value, without rounding it a second time.
std::string Renderer::rounded_element(const Stmt& s) {
  const bool is_cast = s.value.is(ops::cast) && s.value.dtype() == buffer_dtype(s.param) &&
                       byte_size(s.value.dtype()) == 2 && is_float(s.value.dtype()) &&
                       s.value.operand(0).dtype() == DType::f32;
  if (!is_cast || cache_.contains(s.value.node())) return "";
  return to_memory(s.value.dtype(), value(s.value.operand(0)), stays_in_registers(s.param));
}

void Renderer::store(const Stmt& s) {
  std::string x = copied_element(s);
  if (x.empty()) x = rounded_element(s);
  // Removing the conversions of a constant is harmless: its rounded value is known.
  const bool stays = stays_in_registers(s.param) && !s.value.is(ops::constant);
  if (x.empty()) x = to_memory(buffer_dtype(s.param), value(s.value), stays);
  if (const auto v = vector_stores_.find(&s); v != vector_stores_.end())
    return out_.line(v->second, " = ", x, ";");
  const std::string condition = s.condition ? cat("if (", value(s.condition), ") ") : "";
  out_.line(condition, element_at(s.param, s.offset), " = ", x, ";");
  forget_memory();
}

void Renderer::branch(const Stmt& s) {
  out_.open("if (", value(s.condition), ")");
  scoped([&] { block(s.body); });
  if (!s.otherwise.empty()) {
    out_.close(" else {");
    out_.indent();
    forget_memory();
    forget_registers();
    scoped([&] { block(s.otherwise); });
  }
  out_.close();
  forget_memory();
  forget_registers();
}

// ---- loops

void Renderer::loop(const Stmt& s) {
  if (s.loop == LoopKind::lanes && s.extent.is_number() && !dialect_.vector_type.empty())
    return vector_loop(s);
  if (dialect_.has_groups && s.loop != LoopKind::unrolled) return serial_loop(s);
  if (s.loop == LoopKind::lanes) return lanes_loop(s);
  if (s.loop == LoopKind::across) return across_loop(s);
  if (lane_ && s.extent.is_number() && !keeps_loop(s)) return unrolled_loop(s, s.extent.number());
  serial_loop(s);
}

// A short loop whose iterations are one step of a product of opaque matrices each. Drivers unroll
// it, which costs more time to compile than it saves. Iterations of several steps are worth
// unrolling.
bool Renderer::is_short_of_steps(const Stmt& s) const {
  constexpr std::int64_t most_turns = 16, most_barriers = 2;
  if (!uses_matrices_ || s.loop != LoopKind::serial || !s.extent.is_number()) return false;
  const auto barriers = std::ranges::count(s.body, Stmt::Kind::barrier, &Stmt::kind);
  return s.extent.number() <= most_turns && barriers > 0 && barriers <= most_barriers;
}

void Renderer::serial_loop(const Stmt& s) {
  if (s.extent.low() > 0) hoist(s.var, s.body);  // else the memory it reads may not exist
  const std::string extent = position(s.extent), i = fresh("i");
  // Values read before must be read again inside: an earlier iteration may have changed them.
  if (!modified_outside(s.body).empty()) forget_registers();
  forget_memory();
  const bool is_chunks = !dialect_.has_groups && s.loop == LoopKind::grid && has_grid(kernel_);
  if (s.loop == LoopKind::unrolled && !dialect_.unroll.empty()) out_.line(dialect_.unroll);
  const std::vector<int> turned = tiles_by_rows(s);
  for (int t : turned) tile_rows_.emplace(t, s.var);
  if (!turned.empty() || is_short_of_steps(s)) out_.line(dialect_.keep_loop);
  out_.open("for (", index_type(), " ", i, " = ", is_chunks ? "begin" : "0", "; ", i, " < ",
            is_chunks ? "end" : extent, "; ++", i, ")");
  variables_[s.var] = i;
  scoped([&] { block(s.body); });
  for (int t : turned) turn_tile(t);
  out_.close();
  for (int t : turned) tile_rows_.erase(t);
  forget_memory();
  forget_registers();
}

void Renderer::unrolled_loop(const Stmt& s, std::int64_t turns) {
  // An empty sum may be unused.
  if (turns == 0)
    for (RegId r : modified_outside(s.body)) out_.line("(void)", registers_.at(r), ";");
  for (std::int64_t i = 0; i < turns; ++i) {
    variables_[s.var] = index(i);
    scoped([&] { block(s.body); });
    forget_memory();
    forget_registers();
  }
}

void Renderer::lanes_loop(const Stmt& s) {
  if (s.extent.low() > 0) hoist(s.var, s.body);
  std::vector<RegId> sums = modified_outside(s.body);
  forget_memory();
  if (!sums.empty() || keeps_loop(s.body)) {
    strips(s, sums);
  } else {
    lane_ = loop_symbol(s.var, s.extent);
    independent(s.var, "", position(s.extent), s.body);
    lane_.reset();
  }
  forget_memory();
  forget_registers();
}

void Renderer::independent(VarId var, const std::string& first, const std::string& count,
                           const Block& body) {
  const std::string i = fresh("i");
  out_.line("HONE_INDEPENDENT");
  out_.open("for (int64_t ", i, " = 0; ", i, " < ", count, "; ++", i, ")");
  variables_[var] = first.empty() ? i : cat("(", first, " + ", i, ")");
  scoped([&] { block(body); });
  out_.close();
}

void Renderer::across_loop(const Stmt& s) {
  HONE_ASSERT(s.body.size() == 1 && s.body[0].loop == LoopKind::lanes,
              "an across loop is not around a lanes loop");
  const Stmt& inner = s.body[0];
  if (s.extent.low() > 0) hoist(s.var, s.body);
  forget_memory();
  // Square blocks keep reads along one loop and writes along the other local.
  auto blocks = [&](const Dim& extent, const std::string& first, const std::string& last) {
    const std::string end = position(extent);
    out_.open("for (int64_t ", first, " = 0; ", first, " < ", end, "; ", first,
              " += ", across_block, ")");
    out_.line("const int64_t ", last, " = ", helpers_.use("min_i64"), "(", first, " + ",
              across_block, ", ", end, ");");
  };
  const std::string p0 = fresh("p_from_"), p1 = fresh("p_to_"), q0 = fresh("q_from_"),
                    q1 = fresh("q_to_"), p = fresh("i");
  blocks(s.extent, p0, p1);
  blocks(inner.extent, q0, q1);
  out_.open("for (int64_t ", p, " = ", p0, "; ", p, " < ", p1, "; ++", p, ")");
  variables_[s.var] = p;
  lane_ = loop_symbol(inner.var, inner.extent);
  scoped([&] { independent(inner.var, q0, cat(q1, " - ", q0), inner.body); });
  lane_.reset();
  for (int i = 0; i < 3; ++i) out_.close();
  forget_memory();
}

// ---- strips: some iterations of a lanes loop, statement by statement

void Renderer::strips(const Stmt& s, const std::vector<RegId>& sums) {
  std::int64_t bytes = 4;
  for_each_statement(s.body, [&](const Stmt& inner) {
    if (inner.value) bytes = std::max<std::int64_t>(bytes, byte_size(inner.value.dtype()));
  });
  std::int64_t width = strip_bytes / bytes;
  const std::optional<std::int64_t> number = s.extent.as_number();
  if (number) width = std::min(width, power_of_two_from(std::max<std::int64_t>(*number, 1)));
  std::vector<std::string> outside, parts;
  for (RegId r : sums) {
    outside.push_back(registers_.at(r));
    parts.push_back(fresh("sums"));
    const DType t = register_dtypes_.at(r);
    const std::string l = fresh("l");
    out_.line(register_type(t), " ", parts.back(), "[", width, "];");
    out_.line("for (int64_t ", l, " = 0; ", l, " < ", width, "; ++", l, ") ", parts.back(), "[", l,
              "] = ", neutral(combine_of(s.body, r), t), ";");
  }
  lane_ = loop_symbol(s.var, s.extent);
  const std::string turn = fresh("l");
  for (std::size_t i = 0; i < sums.size(); ++i) registers_[sums[i]] = cat(parts[i], "[", turn, "]");
  forget_registers();
  std::string whole = index(number ? *number - *number % width : 0);
  if (!number) {
    const std::string extent = factor(s.extent);
    whole = fresh("whole");
    out_.line("const int64_t ", whole, " = ", extent, " - ", extent, " % ", width, ";");
  }
  if (!number || *number >= width) {
    const std::string base = fresh("i");
    out_.open("for (int64_t ", base, " = 0; ", base, " < ", whole, "; ", base, " += ", width, ")");
    strip(s, {s.var, base, turn, index(width), width});
    out_.close();
  }
  if (number && *number % width != 0) strip(s, {s.var, whole, turn, index(*number % width), width});
  if (!number) {
    out_.open("if (", whole, " < ", position(s.extent), ")");
    strip(s, {s.var, whole, turn, cat(position(s.extent), " - ", whole), width});
    out_.close();
  }
  lane_.reset();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    registers_[sums[i]] = outside[i];
    join_parts(combine_of(s.body, sums[i]), register_dtypes_.at(sums[i]), outside[i], parts[i],
               width);
  }
}

// Combines halves until one part is left, so that the order depends only on the width.
void Renderer::join_parts(const Op& combine, DType t, const std::string& total,
                          const std::string& parts, std::int64_t width) {
  if (width > 1) {
    const std::string h = fresh("h"), l = fresh("l");
    out_.open("for (int64_t ", h, " = ", width / 2, "; ", h, " > 0; ", h, " /= 2)");
    out_.line("HONE_INDEPENDENT");
    const std::string low = cat(parts, "[", l, "]"), high = cat(parts, "[", l, " + ", h, "]");
    out_.line("for (int64_t ", l, " = 0; ", l, " < ", h, "; ++", l, ") ", low, " = ",
              combined(helpers_, combine, t, low, high), ";");
    out_.close();
  }
  out_.line(total, " = ", combined(helpers_, combine, t, total, parts + "[0]"), ";");
}

void Renderer::strip(const Stmt& s, const Strip& strip) {
  scoped([&] { strip_block(s.body, strip); });
  forget_memory();
  forget_registers();
}

void Renderer::strip_block(const Block& block, const Strip& strip) {
  const bool is_cut = keeps_loop(block);
  std::size_t first = 0;
  for (std::size_t i = 0; i <= block.size(); ++i) {
    if (i < block.size() && !keeps_loop(block[i])) continue;
    if (first < i) strip_run({block.data() + first, i - first}, is_cut, strip);
    first = i + 1;
    if (i == block.size()) return;
    const Stmt& s = block[i];
    if (s.kind == Stmt::Kind::branch) {
      out_.open("if (", value(s.condition), ")");
    } else {
      const std::string k = fresh("i");
      out_.open("for (int64_t ", k, " = 0; ", k, " < ", position(s.extent), "; ++", k, ")");
      variables_[s.var] = k;
    }
    scoped([&] { strip_block(s.body, strip); });
    out_.close();
    forget_memory();
    forget_registers();
  }
}

void Renderer::strip_run(std::span<const Stmt> run, bool is_cut, const Strip& strip) {
  if (is_cut)
    for (const Stmt& s : run)
      if (s.kind == Stmt::Kind::declare) {
        const std::string name = fresh("r");
        out_.line(register_type(s.value.dtype()), " ", name, "[", strip.width, "];");
        registers_[s.reg] = cat(name, "[", strip.turn, "]");
        arrays_.insert(s.reg);
      }
  out_.line("HONE_INDEPENDENT");
  out_.open("for (int64_t ", strip.turn, " = 0; ", strip.turn, " < ", strip.count, "; ++",
            strip.turn, ")");
  variables_[strip.var] =
      strip.base == "0" ? strip.turn : cat("(", strip.base, " + ", strip.turn, ")");
  scoped([&] {
    for (const Stmt& s : run) statement(s);
  });
  out_.close();
  forget_memory();
  forget_registers();
}

// ---- hoisting: loop-invariant values are read before the loop, because compilers must assume that
// a store changes them

void Renderer::hoist(VarId var, const Block& block) {
  Dims inner;
  auto add = [&](VarId v) { inner.push_back(loop_symbol(v, 1)); };
  add(var);
  if (lane_) inner.push_back(*lane_);
  for_each_statement(block, [&](const Stmt& each) {
    if (each.kind == Stmt::Kind::loop) add(each.var);
  });
  const auto is_leaf = [](const Value& e) {
    return e.is(ops::constant) || e.is(ops::reg) || e.is(ops::dims);
  };
  for_each_invariant(
      block, inner, reads_, [&](const Value& e) { return is_leaf(e) || cache_.contains(e.node()); },
      [&](const Value& e) { value(e); });
}

}  // namespace hone::c
