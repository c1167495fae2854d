// What a plan computed when it was verified: reproducible inputs, and the results for them. With
// this, a plan file can show on any machine that it still computes the same. Data only; the runtime
// runs the tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "type/array.h"

namespace hone {

struct SelfTestInput {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  // Contents are generated from these: reals uniform in [low, high), integers uniform in low to
  // high.
  std::uint64_t seed = 0;
  double low = -1, high = 1;
  // Or they are given: contents that the model requires, and small samples.
  std::optional<Array> given = {};
};
Array self_test_array(const SelfTestInput&);

struct SelfTestResult {
  std::vector<std::int64_t> dims;
  Hash128 digest;                    // of its bytes
  std::vector<std::int64_t> places;  // sampled elements, by row-major index
  std::vector<double> values;        // values at these places
  double allowed = 0;                // largest difference per element, if bits may differ
};

// One run of one variant.
struct SelfTest {
  std::uint32_t variant = 0;
  // Every machine computes the same bits: the variant calls no library and no host function.
  bool is_exact = true;
  std::vector<SelfTestInput> inputs;
  std::vector<SelfTestResult> results;
  std::string missing;  // why the variant has no self-test; the rest is then empty
};

// Digest and sampled elements of a result.
SelfTestResult self_test_result(const Array&);

}  // namespace hone
