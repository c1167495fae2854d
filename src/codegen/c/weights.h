// The weights file of a program: 64 bytes of header (magic, bytes and checksum of what follows),
// then each weight at a multiple of 64. Little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hone::c {

struct WeightsFile {
  static constexpr std::int64_t header_bytes = 64;
  std::vector<std::byte> bytes;
  // Where weight i and prepared buffer i of the plan start in the file.
  std::vector<std::int64_t> weights, prepared;
  std::uint64_t checksum = 0;
};
WeightsFile weights_file(const Plan&);

// The same checksum in C, as a function hone_checksum.
std::string checksum_text();
// The bytes as a C array of this name.
std::string array_text(const std::string& name, const std::vector<std::byte>&);

}  // namespace hone::c
