// A table of broken or malicious files: how each is made, how it is opened, and the expected
// result. Every case runs in a separate process with little stack, time and memory.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "test/import/support.h"

namespace hone::hostile {

namespace fs = std::filesystem;

// Writes `file`; other files it needs go into the same directory.
using Make = std::function<void(const fs::path& file)>;
// Opens the file and returns the result as one line. The caller handles a UserError.
using Open = std::string (*)(const fs::path& file);

// ONNX: read into Functions.
std::string imported(const fs::path&);
// ONNX: read, compiled and run once on made-up inputs, with half a second for the run.
std::string ran(const fs::path&);
// The same with the reference.
std::string interpreted(const fs::path&);
// A plan file: read, loaded and run in the same way.
std::string ran_plan(const fs::path&);
// The text form of a Function.
std::string parsed_text(const fs::path&);
std::string read_as_safetensors(const fs::path&);
// Also reads every tensor's numbers.
std::string read_as_gguf(const fs::path&);
std::string read_as_npy(const fs::path&);
std::string read_as_pb(const fs::path&);
std::string read_as_sequence(const fs::path&);
// Opens every truncation of the file, and the file with each bit flipped in turn; returns "swept".
std::string sweep(const fs::path&, Open);

struct Case {
  std::string name;  // letters, digits and '_'
  Make make;
  Open open;
  // Part of the result: "refused: MESSAGE" for a UserError, "cancelled: MESSAGE" for a run whose
  // deadline passed, otherwise what `open` returns.
  std::string expected;
  std::string file = "model.onnx";
};
using Cases = std::vector<Case>;

std::string repeated(std::string_view part, std::size_t times);
Make bytes(std::string content);
Make bytes(std::function<std::string()> content);
Make model(std::function<void(ModelBuilder&)> fill, std::int64_t opset = 21);

// The tables of cases.
Cases byte_cases();
Cases file_cases();
Cases graph_cases();
Cases operator_cases();
Cases size_cases();
Cases tensor_cases();
Cases safetensors_cases();
Cases gguf_cases();
Cases plan_cases();
Cases text_cases();
Cases string_cases();

// Sizes that are too large.
inline constexpr std::int64_t big = std::int64_t{1} << 40, huge = std::int64_t{1} << 62,
                              most = std::numeric_limits<std::int64_t>::max();

// ==== protobuf by hand

std::string varint(std::uint64_t);
// Field `number` of a message: a varint, or length-prefixed bytes.
std::string number_field(std::uint32_t number, std::uint64_t value);
std::string bytes_field(std::uint32_t number, const std::string& content);
// A small valid model, as bytes.
std::string good_model();

}  // namespace hone::hostile
