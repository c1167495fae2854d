// The files of a program around its kernels and steps. Only formats text; makes no choices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "type/type.h"

namespace hone::c {

// An input or output.
struct ProgramValue {
  std::string name;      // in C
  std::string original;  // in the model
  Type type;
  std::int64_t bytes = 0;
};

struct ProgramFacts {
  std::string name;
  std::vector<ProgramValue> inputs, outputs;
  std::int64_t arena_bytes = 0;
  std::size_t weights_bytes = 0;
  std::uint64_t checksum = 0;
  bool embeds_weights = false;
  std::vector<std::string> refusals;  // messages; their statuses start at first_refusal
};

constexpr int first_refusal = 100;

std::string header_text(const ProgramFacts&);
// `steps` is the body of the function that runs.
std::string source_text(const ProgramFacts&, const std::string& kernels, const std::string& steps);
std::string example_text(const ProgramFacts&);
std::string cmake_text(const ProgramFacts&);

}  // namespace hone::c
