// Exports gather, scatter and slices at dynamic positions. In ONNX, indices out of range are
// undefined; Hone clamps or drops them.
#include <limits>

#include "export/onnx/dtypes.h"
#include "export/onnx/graph.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone::onnx {

namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

std::int64_t axis_of(Value v) { return v.attrs().integer("axis"); }
Dim size_at_axis(Value v) { return v.operand(0).shape()[static_cast<int>(axis_of(v))]; }

// Numbers beyond i64 are clamped to the largest i64.
std::string as_i64(ExportGraph& g, Value v) {
  std::string x = g.name(v);
  if (v.dtype() == DType::i64) return x;
  if (v.dtype() == DType::u64) {
    const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    x = g.one("Min", {x, g.constant(Array::scalar_int(largest, DType::u64))});
  }
  return g.cast(x, DType::i64);
}

// ==== gather

std::string clamped_index(ExportGraph& g, Value v, const Dim& size) {
  if (g.is_index_into(v, size))
    return v.dtype() == DType::i32 || v.dtype() == DType::i64 ? g.name(v) : as_i64(g, v);
  return g.one("Clip", {as_i64(g, v), g.scalar_size(Dim(0) - size), g.scalar_size(size - Dim(1))});
}

Names write_gather(ExportGraph& g, Value v) {
  return {one_in_dtype(g, v.is(ops::gather) ? "Gather" : "GatherElements", {g.name(v.operand(0))},
                       v.dtype(), {clamped_index(g, v.operand(1), size_at_axis(v))},
                       {axis_attribute(v)})};
}

Names write_gather_nd(ExportGraph& g, Value v) {
  return {one_in_dtype(g, "GatherND", {g.name(v.operand(0))}, v.dtype(), {as_i64(g, v.operand(1))},
                       {attribute("batch_dims", v.attrs().integer("batch"))})};
}

// ==== scatter

Message reduction_of(Value v) {
  const std::string& kind = v.attrs().get<std::string>("kind");
  return attribute("reduction", kind == "set" ? "none" : std::string_view(kind));
}

Names write_scatter_elements(ExportGraph& g, Value v) {
  return {g.one("ScatterElements",
                {g.name(v.operand(0)), as_i64(g, v.operand(1)), g.name(v.operand(2))},
                {axis_attribute(v), reduction_of(v)})};
}

Names write_scatter_nd(ExportGraph& g, Value v) {
  return {g.one("ScatterND", {g.name(v.operand(0)), as_i64(g, v.operand(1)), g.name(v.operand(2))},
                {reduction_of(v)})};
}

// x with one more slice at the end of the axis, and the index of that slice instead of each that
// lies outside.
struct Dropping {
  std::string x, index;
};

Dropping with_slot(ExportGraph& g, Value v, const std::string& x, const std::string& index) {
  const Dim size = size_at_axis(v);
  Dims slot = v.shape().dims;
  slot[static_cast<std::size_t>(axis_of(v))] = 1;
  const std::string zeros = g.expand(g.constant(Array::scalar_int(0, v.dtype())), slot);
  const std::string n = g.scalar_size(size), zero = g.scalar_size(0);
  const std::string front =
      g.one("Where", {g.one("Less", {index, zero}), g.one("Add", {index, n}), index});
  const std::string inside =
      g.one("And", {g.one("LessOrEqual", {zero, front}), g.one("Less", {front, n})});
  return {g.one("Concat", {x, zeros}, {axis_attribute(v)}), g.one("Where", {inside, front, n})};
}

// One index for each slice becomes one for each element.
Names write_scatter(ExportGraph& g, Value v) {
  const Value indices = v.operand(1), updates = v.operand(2);
  const auto axis = static_cast<std::size_t>(axis_of(v));
  Dims dims = v.shape().dims, line(dims.size(), Dim(1));
  dims[axis] = line[axis] = indices.shape().count();
  std::string x = g.name(v.operand(0)), given = g.name(updates),
              index = g.expand(g.reshape(as_i64(g, indices), line), dims);
  if (updates.shape().dims != dims) given = g.reshape(given, dims);
  const bool drops = !g.is_index_into(indices, size_at_axis(v));
  if (drops) {
    Dropping d = with_slot(g, v, x, index);
    x = d.x, index = d.index;
  }
  const std::string y =
      g.one("ScatterElements", {x, index, given}, {axis_attribute(v), reduction_of(v)});
  if (!drops) return {y};
  return {g.one("Slice",
                {y, g.sizes({0}), g.sizes({size_at_axis(v)}), g.integers(Integers{axis_of(v)})})};
}

// ==== parts at dynamic places

// The starts as i64[1] each, clamped so that the part fits.
Names clamped_starts(ExportGraph& g, Value starts, const Shape& x, const Dims& part) {
  Dims room;
  for (int i = 0; i < x.rank(); ++i) room.push_back(x[i] - part[static_cast<std::size_t>(i)]);
  const std::string all =
      g.one("Min", {g.one("Max", {as_i64(g, starts), g.scalar_size(0)}), g.sizes(room)});
  Names out;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    out.push_back(g.one("Gather", {all, g.integers(Integers{i})}));
  return out;
}

Names write_dynamic_slice(ExportGraph& g, Value v) {
  const Shape& x = v.operand(0).shape();
  const Dims& sizes = v.attrs().dims("sizes");
  std::string out = g.name(v.operand(0));
  if (x.rank() == 0) return {out};
  const Names starts = clamped_starts(g, v.operand(1), x, sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != x.dims[i])
      out = g.one("Gather", {out, g.one("Add", {g.range(sizes[i]), starts[i]})},
                  {attribute("axis", static_cast<std::int64_t>(i))});
  return {out};
}

// Written at flat places: the sum of the index along each axis times the axis's stride.
Names write_dynamic_update(ExportGraph& g, Value v) {
  const Shape &x = v.shape(), &part = v.operand(1).shape();
  const std::string update = g.name(v.operand(1));
  if (x.rank() == 0) return {update};
  const Names starts = clamped_starts(g, v.operand(2), x, part.dims);
  const Dims strides = dense_strides(x);
  std::string places;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    Dims line(starts.size(), Dim(1));
    line[i] = part.dims[i];
    std::string at = g.one("Add", {g.range(part.dims[i]), starts[i]});
    at = g.reshape(g.one("Mul", {at, g.sizes({strides[i]})}), line);
    places = places.empty() ? at : g.one("Add", {places, at});
  }
  const Dims all = {x.count()}, few = {part.count()};
  const std::string flat =
      g.one("ScatterElements",
            {g.reshape(g.name(v.operand(0)), all), g.reshape(places, few), g.reshape(update, few)});
  return {g.reshape(flat, x.dims)};
}

constexpr ExportEntry export_index_table[] = {
    {&ops::gather, write_gather},
    {&ops::gather_elements, write_gather},
    {&ops::gather_nd, write_gather_nd},
    {&ops::scatter, write_scatter},
    {&ops::scatter_elements, write_scatter_elements},
    {&ops::scatter_nd, write_scatter_nd},
    {&ops::dynamic_slice, write_dynamic_slice},
    {&ops::dynamic_update, write_dynamic_update},
};

// The last axis of the indices lists one index for each axis of x from `first` on.
bool are_places_in(const ExportGraph& g, Value indices, const Shape& x, std::int64_t first) {
  for (std::int64_t k = 0; k < indices.shape()[-1].number(); ++k)
    if (!g.is_index_into(take_axis(indices, indices.rank() - 1, k), x[static_cast<int>(first + k)]))
      return false;
  return true;
}

}  // namespace

std::span<const ExportEntry> index_exports() { return export_index_table; }

bool is_exported_whole(const ExportGraph& g, Value v) {
  if (v.is(ops::scatter_elements)) return g.is_index_into(v.operand(1), size_at_axis(v));
  if (v.is(ops::gather_nd))
    return are_places_in(g, v.operand(1), v.operand(0).shape(), v.attrs().integer("batch"));
  if (v.is(ops::scatter_nd)) return are_places_in(g, v.operand(1), v.shape(), 0);
  return true;
}

}  // namespace hone::onnx
