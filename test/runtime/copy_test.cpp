#include "backend/cpu/device/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace hone {
namespace {

// Strides of a dense layout with the axes in the given order, outermost first.
std::vector<std::int64_t> strides_in_order(const std::vector<std::int64_t>& dims,
                                           const std::vector<std::size_t>& order,
                                           std::int64_t element) {
  std::vector<std::int64_t> out(dims.size());
  for (std::size_t i = order.size(); i-- > 0;) {
    out[order[i]] = element;
    element *= dims[order[i]];
  }
  return out;
}

// Element by element, by its definition.
void copy_plainly(const StridedCopy& c, std::byte* to, const std::byte* from) {
  std::vector<std::int64_t> at(c.dims.size(), 0);
  const auto count =
      std::accumulate(c.dims.begin(), c.dims.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t to_at = 0, from_at = 0;
    for (std::size_t a = 0; a < at.size(); ++a) {
      to_at += at[a] * c.to_strides[a];
      from_at += at[a] * c.from_strides[a];
    }
    std::copy_n(from + from_at, c.element_bytes, to + to_at);
    for (std::size_t a = at.size(); a-- > 0 && ++at[a] == c.dims[a];) at[a] = 0;
  }
}

TEST(CpuCopy, EqualsThePlainCopyOnRandomLayouts) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int trial = 0; trial < 500; ++trial) {
    StridedCopy c;
    c.element_bytes = std::size_t{1} << pick(0, 3);
    const auto element = static_cast<std::int64_t>(c.element_bytes);
    const int rank = pick(0, 5);
    for (int a = 0; a < rank; ++a) c.dims.push_back(pick(trial % 50 == 0 ? 0 : 1, 9));
    if (rank > 0 && trial % 7 == 0) c.dims.back() = pick(1000, 70000) / (1 << (2 * rank));
    std::vector<std::size_t> order(c.dims.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    c.to_strides = strides_in_order(c.dims, order, element);
    std::shuffle(order.begin(), order.end(), random);
    c.from_strides = strides_in_order(c.dims, order, element);
    if (rank > 0 && pick(0, 3) == 0)
      c.from_strides[static_cast<std::size_t>(pick(0, rank - 1))] = 0;
    const auto count = std::accumulate(c.dims.begin(), c.dims.end(), element, std::multiplies<>());
    std::vector<std::byte> from(static_cast<std::size_t>(count) + 8), to(from.size()), expected;
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    expected = to;
    copy_plainly(c, expected.data(), from.data());
    const CpuCopy copy(c);
    void* operands[] = {from.data(), to.data()};
    for (std::int64_t chunk = copy.chunks(); chunk-- > 0;)
      copy.run(operands, chunk, chunk + 1, nullptr);
    ASSERT_EQ(to, expected) << "trial " << trial;
  }
}

TEST(CpuCopy, CutsLongRowsIntoChunks) {
  EXPECT_GT(CpuCopy({4, {1 << 20}, {4}, {4}}).chunks(), 8);
  EXPECT_EQ(CpuCopy({4, {16}, {4}, {4}}).chunks(), 1);
  EXPECT_EQ(CpuCopy({4, {16, 0}, {4, 4}, {4, 4}}).chunks(), 0);
  EXPECT_EQ(CpuCopy({4, {}, {}, {}}).chunks(), 1);
}

}  // namespace
}  // namespace hone
