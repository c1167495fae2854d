// Lanes loops of known extent on machines whose threads run in groups: one thread computes all
// lanes. Contiguous elements are read before the loop and written after it as vectors.
#include <algorithm>
#include <bit>

#include "codegen/c/expression.h"
#include "kernel/positions.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::c {

// The first element that the lanes of the loop use, if the elements are contiguous and aligned to
// their count.
std::optional<Dim> Renderer::vector_start(const Stmt& loop, int param, const Dim& offset) const {
  const Dim lane = symbol_of(loop);
  // A separate array has no address if group memory has none.
  const bool has_address = !is_array(param) || (is_shared(param) && !dialect_.shared.empty()) ||
                           is_spread(param) || in_words_.contains(param);
  if (!has_address || !(stride_of(offset, lane) == Dim(1))) return std::nullopt;
  const Replacement none[] = {{lane, 0}};
  const Dim first = replace(offset, none);
  if (!(mod(first, loop.extent) == Dim(0))) return std::nullopt;
  return first;
}

std::string Renderer::vector_text(std::string_view pattern, int param, std::int64_t width,
                                  const std::string& name, const std::string& at) {
  return filled(pattern, {{"$T", std::string(memory_type(buffer_dtype(param)))},
                          {"$N", cat(width)},
                          {"$V", name},
                          {"$P", buffer(param)},
                          {"$I", is_spread(param) && !at.empty() ? spread_place(param, at) : at}});
}

// False if the width is not a power of two or is below the dialect's smallest vector.
bool Renderer::use_vector(int param, std::int64_t width) {
  const DType t = buffer_dtype(param);
  const std::int64_t element = byte_size(is_coded(t) ? code_dtype(t) : t);
  if (width * element < dialect_.least_vector_bytes ||
      !std::has_single_bit(static_cast<std::uint64_t>(width)))
    return false;
  const VectorType v{memory_type(t), width, width * element};
  if (std::ranges::find(vectors_, v) == vectors_.end()) vectors_.push_back(v);
  return true;
}

void Renderer::vector_loop(const Stmt& s) {
  const std::int64_t width = s.extent.number();
  if (moves_word(s)) return;
  const std::string lane = fresh("l");
  forget_memory();
  std::vector<NodeId> loads;
  // Memory guarded by a condition may not exist.
  std::vector<Value> values;
  for (const Stmt& each : s.body)
    if (each.kind != Stmt::Kind::branch && !each.condition)
      for (const Value& v : values_of(each)) values.push_back(v);
  for (NodeId n : nodes_below(values)) {
    const Value v(&values[0].graph(), n);
    if (!v.is(ops::load)) continue;
    const bool is_conditional = v.operand_count() > 0;
    if (is_conditional && dependences(v.operand(0)).loops.contains(s.var)) continue;
    const int param = static_cast<int>(v.attrs().integer("param"));
    const auto first = vector_start(s, param, v.attrs().dims("offset").at(0));
    if (!first || !use_vector(param, width)) continue;
    const std::string name = fresh("w");
    const std::string condition =
        is_conditional ? cat("if (", value(v.operand(0)), ") ") : std::string();
    out_.line(vector_text(dialect_.vector_type, param, width, name, ""), " ", name,
              is_conditional ? " = {}" : "", ";");
    out_.line(condition, in_words_.contains(param) ? unpacked(param, width, name, *first)
                                                   : vector_text(dialect_.vector_load, param, width,
                                                                 name, position(*first)));
    vector_loads_[n] = cat(name, ".of[", lane, "]");
    loads.push_back(n);
  }
  std::vector<std::string> behind;
  for (const Stmt& each : s.body) {
    if (each.kind != Stmt::Kind::store || each.condition) continue;
    const auto first = vector_start(s, each.param, each.offset);
    if (!first || !use_vector(each.param, width)) continue;
    const std::string name = fresh("w");
    out_.line(vector_text(dialect_.vector_type, each.param, width, name, ""), " ", name, ";");
    behind.push_back(in_words_.contains(each.param) ? packed(each.param, width, name, *first)
                                                    : vector_text(dialect_.vector_store, each.param,
                                                                  width, name, position(*first)));
    vector_stores_[&each] = cat(name, ".of[", lane, "]");
  }
  out_.line(dialect_.unroll);
  out_.open("for (int32_t ", lane, " = 0; ", lane, " < ", width, "; ++", lane, ")");
  variables_[s.var] = lane;
  scoped([&] { block(s.body); });
  out_.close();
  for (const std::string& line : behind) out_.line(line);
  for (NodeId n : loads) vector_loads_.erase(n);
  forget_memory();
  forget_registers();
}

}  // namespace hone::c
