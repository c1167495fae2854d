#include "import/onnx/node/grown.h"

#include <algorithm>

#include "import/common/build.h"
#include "import/onnx/node/open.h"
#include "ir/measured.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

bool is_same(const Dim& a, const Dim& b) { return a == b || prove_equal(a, b) == true; }

// Marks each axis whose size changes in an iteration. Returns whether there was a new one.
bool note_changes(NodeContext& c, const std::vector<Type>& before, const Function& body,
                  std::size_t first_argument, std::size_t first_result,
                  std::vector<std::vector<bool>>& open) {
  bool is_new = false;
  for (std::size_t i = 0; i < open.size(); ++i) {
    const Type &from = before[first_argument + i], &to = body.result(first_result + i).type();
    if (!to.is_tensor() || from.dtype != to.dtype || from.rank() != to.rank())
      c.unsupported(cat("loop-carried value ", i, " is ", from, " before and ", to,
                        " after an iteration; its dtype and rank must not change"));
    for (int k = 0; k < from.rank(); ++k) {
      if ((!open[i].empty() && open[i][static_cast<std::size_t>(k)]) ||
          is_same(from.shape[k], to.shape[k]))
        continue;
      open[i].resize(static_cast<std::size_t>(from.rank()), false);
      open[i][static_cast<std::size_t>(k)] = true;
      is_new = true;
    }
  }
  return is_new;
}

// The bound of an axis with size `from` at first, `symbol` before an iteration and `to` after it.
Dim room_for(const Dim& from, const Dim& symbol, const Dim& to, const std::optional<Dim>& turns,
             const Dim& limit) {
  const Dim more = to - symbol;
  if (!turns || !more.is_number() || more.number() < 0) return max(from, limit);
  return from + more * *turns;
}

// The graph's body, with inputs and outputs in rooms.
Body with_rooms(const Body& inner, const GrownBody& g, std::vector<Type> arguments,
                std::size_t first_argument, std::size_t first_result,
                const std::vector<Dims>& rooms) {
  Body out{std::make_shared<Function>(), inner.captures};
  Function& f = *out.function;
  const std::size_t n = arguments.size();
  const std::vector<Type> exact = arguments;
  for (std::size_t i = 0; i < g.carried.size(); ++i)
    if (!g.open[i].empty()) arguments[first_argument + i].shape.dims = rooms[i];
  Values given, sizes;
  for (const Type& t : arguments) given.push_back(f.add_param(t, ""));
  for (const Value& v : g.sizes) sizes.push_back(f.add_param(v.type(), ""));
  for (std::size_t i = 0, next = 0; i < g.carried.size(); ++i) {
    if (g.open[i].empty()) continue;
    Value& v = given[first_argument + i];
    const Value found = sizes[next++];
    for (int k = 0; k < v.rank(); ++k) {
      const auto axis = static_cast<std::size_t>(k);
      if (!g.open[i][axis]) continue;
      const Dim &symbol = exact[first_argument + i].shape.dims[axis], &room = rooms[i][axis];
      const Value size = take_axis(found, 0, k);
      require_within(size, symbol.low(), room, "a size of a loop-carried value");
      ops::measure(size, {{"symbol", Dims{symbol}}, {"high", Dims{room}}});
      v = slice_axis(v, k, 0, symbol);
    }
  }
  for (const Value& v : inner.captures) given.push_back(f.add_param(v.type(), ""));
  const Values made = inline_call(f.graph(), *inner.function, given);
  Values found;
  for (std::size_t r = 0; r < made.size(); ++r) {
    Value v = made[r];
    const std::size_t i = r - first_result;
    if (r >= first_result && i < g.carried.size()) {
      const Value before = f.param(first_argument + i);
      if (g.open[i].empty()) {
        v = reshape_to(v, before.shape().dims);
      } else {
        for (int k = 0; k < v.rank(); ++k) {
          const Dim &size = v.shape()[k], &room = before.shape()[k];
          f.graph().add_check({max(size, room), room,
                               cat("Loop: loop-carried value ", i, " is ", size, " long at axis ",
                                   k, ", expected at most ", room)});
        }
        found.push_back(dims_value(f.graph(), v.shape().dims, DType::i64, {v.rank()}));
        const Value start = integer_list(
            f.graph(), std::vector<std::int64_t>(static_cast<std::size_t>(v.rank()), 0));
        v = ops::dynamic_update(Values{before, v, start});
      }
    }
    f.add_result(v, inner.function->results()[r].name);
  }
  for (const Value& v : found) f.add_result(v, "");
  HONE_ASSERT(f.params().size() == n + sizes.size() + inner.captures.size(),
              "a body of a loop lost a parameter");
  return out;
}

}  // namespace

Values GrownBody::finished(NodeContext& c, const Values& values, const Values& found) const {
  Values out = values;
  for (std::size_t i = 0, next = 0; i < out.size(); ++i)
    if (!open[i].empty()) out[i] = from_room(c, out[i], found[next++], open[i]);
  return out;
}

GrownBody grown_body(NodeContext& c, const ReadBody& read, std::vector<Type> arguments,
                     std::size_t first_argument, const Values& carried, std::size_t first_result,
                     const std::optional<Dim>& turns) {
  GrownBody out{read(arguments), carried, {}, {}};
  out.open.resize(carried.size());
  std::size_t count = 0;
  while (note_changes(c, arguments, *out.body.function, first_argument, first_result, out.open)) {
    for (std::size_t i = 0; i < carried.size(); ++i)
      for (std::size_t k = 0; k < out.open[i].size(); ++k) {
        Dim& size = arguments[first_argument + i].shape.dims[k];
        if (!out.open[i][k] || size != carried[i].shape().dims[k]) continue;
        size = c.bodies().new_size(std::min<std::int64_t>(size.low(), 1), most_open_size << 8,
                                   c.node_name());
        ++count;
      }
    out.body = read(arguments);
  }
  if (count == 0) return out;
  std::vector<Dims> rooms;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    Dims room = carried[i].shape().dims;
    for (std::size_t k = 0; k < out.open[i].size(); ++k)
      if (out.open[i][k])
        room[k] = room_for(room[k], arguments[first_argument + i].shape.dims[k],
                           out.body.function->result(first_result + i).shape().dims[k], turns,
                           c.open_limit(count));
    rooms.push_back(room);
    if (out.open[i].empty()) continue;
    const Value v = carried[i];
    out.sizes.push_back(dims_value(c.graph(), v.shape().dims, DType::i64, {v.rank()}));
    out.carried[i] = in_room(v, room);
  }
  out.body = with_rooms(out.body, out, arguments, first_argument, first_result, rooms);
  return out;
}

}  // namespace hone::onnx
