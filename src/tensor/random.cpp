// Random numbers: philox over a key and a counter, which are states (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011).
#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "tensor/functions.h"
#include "tensor/network.h"
#include "tensor/trace.h"

namespace hone {

namespace {

std::int32_t random_state(ProgramData& p, const char* name, std::uint64_t start) {
  const auto it = std::ranges::find(p.states, name, &StateVariable::name);
  if (it != p.states.end()) return static_cast<std::int32_t>(it - p.states.begin());
  p.states.push_back({name, "random", Type(DType::u64, {}),
                      Array::scalar_int(static_cast<std::int64_t>(start), DType::u64)});
  return static_cast<std::int32_t>(p.states.size() - 1);
}

// u32, which no other call draws.
Value drawn(Trace& t, const Shape& shape) {
  if (!t.is_entry())
    throw UserError("random numbers are drawn in ", t.what(),
                    ", which is not supported; draw them before it and use them there");
  ProgramData& p = *t.program();
  const std::int32_t key = random_state(p, "random.key", p.seed),
                     counter = random_state(p, "random.counter", 0);
  const Value now = t.value(t.read(counter));
  const Value bits = ops::random_bits(Values{t.value(t.read(key)), now}, {{"shape", shape.dims}});
  t.set(counter, t.tensor(now + integer_like(now, 1)));
  return bits;
}

// [0, 1) in steps of 2^-24.
Value unit(Trace& t, const Shape& shape) {
  const Value bits = drawn(t, shape);
  return cast_to(ops::shift_right(bits, integer_like(bits, 8)), DType::f32) * 0x1p-24;
}

}  // namespace

Tensor rand(const Type& type, Where at) {
  return recorded(at, [&](Trace& t) { return cast_to(unit(t, type.shape), type.dtype); });
}

// Box and Muller, "A note on the generation of random normal deviates", 1958.
Tensor randn(const Type& type, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value radius = ops::sqrt(ops::log(1.0 - unit(t, type.shape)) * -2.0);
    return cast_to(radius * ops::cos(unit(t, type.shape) * (2 * M_PI)), type.dtype);
  });
}

Tensor categorical(const Tensor& logits, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    const Value u = unit(t, logits.shape());
    // -log(-log(u)), with u kept from 0.
    const Value inner = ops::neg(ops::log(ops::maximum(u, constant_like(u, 0x1p-25))));
    const Tensor noise = t.tensor(ops::neg(ops::log(inner)));
    return argmax(cast(logits, DType::f32) + noise, -1);
  });
}

Tensor dropout(const Tensor& x, double p, Where at) {
  return recorded(at, [&](Trace& t) {
    if (!(p >= 0 && p < 1))
      throw UserError("dropout: the probability is ", p, ", expected from 0 to below 1");
    const Value v = t.value(x);
    if (!t.entry().is_training() || p == 0) return v;
    const Value u = unit(t, v.shape());
    const Value kept = ops::le(constant_like(u, p), u);
    return ops::select(Values{kept, v * (1 / (1 - p)), constant_like(v, 0)});
  });
}

}  // namespace hone
