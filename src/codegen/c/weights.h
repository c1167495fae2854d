// The weights file of a program: a 64-byte header (magic, size and checksum of the rest), then each
// weight aligned to 64 bytes. Little-endian.
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

// The same checksum as a C function, hone_checksum.
std::string checksum_text();
// The bytes as a C array with this name.
std::string array_text(const std::string& name, const std::vector<std::byte>&);

}  // namespace hone::c
