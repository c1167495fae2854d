// A program of libFuzzer for the target that the build names.
#include <cstdint>

#include "test/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hone::fuzz::HONE_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
