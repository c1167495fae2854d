// Fuzz targets: functions that take untrusted bytes. A UserError is a valid answer; a crash, any
// other exception, a leak or an endless loop is a finding. libfuzzer/main.cpp builds each target as
// a libFuzzer program; replay_test.cpp runs all of them on the corpus in every build.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace hone::fuzz {

using Bytes = std::span<const std::byte>;

// Imports ONNX into Functions, which must pass verification.
void onnx_import(Bytes);
// Imports ONNX, compiles it for the CPU and runs it once on generated inputs, with small limits on
// nodes, sizes and time.
void onnx_run(Bytes);
void safetensors(Bytes);
// Also dequantises all tensors.
void gguf(Bytes);
// A plan file; or, if it begins with '{', the plan's JSON, which hashes protect in a plan file.
void plan(Bytes);
// The text of a Function. Printing and parsing it again must give the same structure.
void ir_text(Bytes);

struct Target {
  std::string_view name, corpus;  // a folder of test/fuzz/corpus
  void (*run)(Bytes);
};
inline constexpr Target targets[] = {
    {"onnx_import", "onnx", onnx_import},
    {"onnx_run", "onnx", onnx_run},
    {"safetensors", "safetensors", safetensors},
    {"gguf", "gguf", gguf},
    {"plan", "plan", plan},
    {"ir_text", "ir_text", ir_text},
};

// Calls the function with the bytes as a file in memory.
void with_file(Bytes, const std::function<void(const std::filesystem::path&)>&);
// Calls the function and ignores a UserError.
void answer(const std::function<void()>&);

inline std::string_view text_of(Bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

}  // namespace hone::fuzz
