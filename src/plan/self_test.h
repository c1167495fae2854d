// What a plan computed when it was verified: inputs that anyone can make again, and what the plan
// gave for them. A file that carries it can show on any machine that it still computes the same.
// Data only; the runtime runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "type/array.h"

namespace hone {

struct Plan;

struct SelfTestInput {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  // Contents are made from these: reals uniform in [low, high), integers uniform in low to high.
  std::uint64_t seed = 0;
  double low = -1, high = 1;
  // Or they are given: what the model requires, and small samples.
  std::optional<Array> given = {};
};
Array self_test_array(const SelfTestInput&);

struct SelfTestResult {
  std::vector<std::int64_t> dims;
  Hash128 digest;                    // of its bytes
  std::vector<std::int64_t> places;  // sampled elements, by row-major index
  std::vector<double> values;        // what they were
  double allowed = 0;                // difference per element, where bits may differ
};

// One run of one variant.
struct SelfTest {
  std::uint32_t variant = 0;
  // Every machine computes the same bits: the variant calls no library and no host function.
  bool is_exact = true;
  std::vector<SelfTestInput> inputs;
  std::vector<SelfTestResult> results;
  std::string missing;  // why the variant has none; then the rest is empty
};

// The digest of a result and some of its elements.
SelfTestResult self_test_result(const Array&);

// Of all that a run of the plan reads: steps, buffers, guards, code, weights. Neither times nor the
// names of strategies are part of it, so that compiling again gives the same.
Hash128 content_hash(const Plan&);
// To be raised whenever equal plans get another content_hash(): when the JSON of what a run reads
// changes.
inline constexpr int content_version = 1;
// The same, of the plan that writing and reading it gives.
Hash128 content_hash_when_read(const Plan&);
// With this variant alone.
Plan only_variant(const Plan&, std::uint32_t variant);

}  // namespace hone
