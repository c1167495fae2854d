#include "plan/self_test.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace hone {

namespace {

// Elements repeat after this many, a prime, so that large inputs cost only a copy and rows still
// differ.
constexpr std::int64_t period = 4093;

void fill(Array& a, const SelfTestInput& in) {
  SplitMix64 numbers(in.seed);
  const auto range = static_cast<std::uint64_t>(std::max(in.high - in.low, 0.0)) + 1;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (is_float(a.dtype()))
      a.set_real(i, in.low + (in.high - in.low) * numbers.unit());
    else
      a.set_integer(
          i, static_cast<std::int64_t>(in.low) + static_cast<std::int64_t>(numbers.next() % range));
}

}  // namespace

Array self_test_array(const SelfTestInput& in) {
  if (in.given) return *in.given;
  Array whole = Array::zeros(in.dtype, in.dims);
  Array first = Array::zeros(in.dtype, {std::min(whole.count(), period)});
  fill(first, in);
  const std::span<std::byte> to = whole.writable_bytes();
  const std::span<const std::byte> from = first.bytes();
  for (std::size_t at = 0; at < to.size(); at += from.size())
    std::memcpy(to.data() + at, from.data(), std::min(from.size(), to.size() - at));
  return whole;
}

SelfTestResult self_test_result(const Array& a) {
  constexpr std::int64_t most = 64;
  SelfTestResult out{a.dims(), hash128(a.bytes()), {}, {}, 0};
  const std::int64_t count = a.count(), samples = std::min(count, most);
  for (std::int64_t i = 0; i < samples; ++i) {
    // From the first to the last element, at varying positions within rows.
    const std::int64_t at = samples == 1 ? 0
                                         : i * ((count - 1) / (samples - 1)) +
                                               i * ((count - 1) % (samples - 1)) / (samples - 1);
    out.places.push_back(at);
    out.values.push_back(is_float(a.dtype()) ? a.real(at) : static_cast<double>(a.integer(at)));
  }
  return out;
}

}  // namespace hone
