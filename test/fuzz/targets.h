// Fuzz targets: what is done with bytes that nobody trusts. A UserError is an answer; a crash, any
// other exception, a leak or an endless loop is a finding. libfuzzer/main.cpp makes each target a
// program of libFuzzer, replay_test.cpp tries the corpus on all of them in every build.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace hone::fuzz {

using Bytes = std::span<const std::byte>;

// ONNX into Functions that verify.
void onnx_import(Bytes);
// ONNX that is imported, compiled for the processor and run once on made-up inputs, with small
// limits of nodes, sizes and time.
void onnx_run(Bytes);
void safetensors(Bytes);
// All tensors are dequantised, too.
void gguf(Bytes);
// A plan file; or, where it begins with '{', the plan's JSON, which hashes guard in a file.
void plan(Bytes);
// The text of a Function, which must have the same structure when it is printed and read again.
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

// The bytes as a file in memory.
void with_file(Bytes, const std::function<void(const std::filesystem::path&)>&);
// Swallows a UserError.
void answer(const std::function<void()>&);

inline std::string_view text_of(Bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

}  // namespace hone::fuzz
