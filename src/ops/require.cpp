#include "ops/require.h"

#include "ops/common.h"

namespace hone {

namespace {

// A rejected number; never one of a tensor whose numbers are all proved valid.
void refuse(std::string_view what, const Dim& n, const Dim& low, const Dim& high) {
  throw UserError(what, " is ", n, ", expected ", low, " to ", high);
}

// Whether nothing remains to be checked at run time.
bool is_proved(const Dim& n, const Dim& low, const Dim& high, std::string_view what) {
  const std::optional<bool> below = prove_less(n, low), above = prove_less(high, n);
  if (below == true || above == true) refuse(what, n, low, high);
  return below == false && above == false;
}

bool is_proved(Value index, const Dim& low, const Dim& high, std::string_view what) {
  bool all = true;
  if (index.is(ops::constant)) {
    const Array& a = index.attrs().get<Array>("value");
    std::int64_t least = 0, most = 0;  // both 0 without indices, which is in every range
    for (std::int64_t i = 0; i < a.count(); ++i) {
      const std::int64_t n = a.integer(i);
      if (i == 0 || n < least) least = n;
      if (i == 0 || n > most) most = n;
    }
    return a.count() == 0 ||
           (is_proved(Dim(least), low, high, what) & is_proved(Dim(most), low, high, what));
  }
  const std::optional<Dims> known = contents_of(index);
  if (!known) return false;
  for (const Dim& d : *known) all &= is_proved(d, low, high, what);
  return all;
}

}  // namespace

bool is_within(Value index, const Dim& low, const Dim& high) {
  try {
    return is_proved(index, low, high, "");
  } catch (const UserError&) {
    return false;
  }
}

Value outsider(Value index, const Dim& low, const Dim& high) {
  Graph& graph = index.graph();
  const Value x = cast_to(index, DType::i64);
  const auto all = [&](const Dim& d) {
    return broadcast_to(size_value(graph, d, DType::i64), x.shape());
  };
  const Value zero = integer_like(x, 0);
  const Value is_inside = ops::bit_and(ops::le(all(low), x), ops::le(x, all(high)));
  const Value outside = ops::select(is_inside, zero, x);
  if (x.rank() == 0) return outside;
  const Value none = constant(graph, Array::scalar_int(0, DType::i64));
  const Value largest =
      ops::maximum(reduce_axes(ops::reduce_max, outside, all_axes(x.rank())), none);
  const Value smallest =
      ops::minimum(reduce_axes(ops::reduce_min, outside, all_axes(x.rank())), none);
  return ops::select(ops::eq(largest, none), smallest, largest);
}

void require_within(Value index, const Dim& low, const Dim& high, std::string_view what,
                    std::source_location at) {
  if (is_proved(index, low, high, what)) return;
  ops::require(outsider(index, low, high),
               {{"message", std::string(what)}, {"low", Dims{low}}, {"high", Dims{high}}}, at);
}

}  // namespace hone
