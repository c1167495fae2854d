// Runs candidates in the kernel interpreter.
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include "kernel/interpret/interpret.h"
#include "test/kernel/steps.h"

namespace hone::test {

constexpr InterpretChecks all_checks = {.param_races = true, .unwritten = true};

inline bool is_interpreted(const Candidate& c) {
  return std::ranges::all_of(
      c.steps, [](const Candidate::Step& s) { return std::holds_alternative<Kernel>(s.what); });
}

// Runs the grid in `parts` parts, the last one first. Dense layouts only.
inline std::vector<Array> interpret_candidate(const Candidate& candidate, const Function& f,
                                              std::span<const Array> inputs,
                                              const InterpretChecks& checks = {},
                                              std::int64_t parts = 1) {
  return run_steps(
      candidate, spec_of(f), inputs, Guard::behind,
      [&](std::size_t step, std::span<const std::span<std::byte>> memory, const Sizes& sizes) {
        const Kernel& k = std::get<Kernel>(candidate.steps[step].what);
        const std::vector<std::int64_t> numbers = sizes(k.sizes);
        const std::int64_t chunks = sizes(k.chunks);
        const Interpreter interpreter(k);
        for (std::int64_t i = parts; i-- > 0;)
          interpreter.run(memory, numbers, chunks * i / parts, chunks * (i + 1) / parts, checks);
      });
}

}  // namespace hone::test
