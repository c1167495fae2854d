// What kind of file the command line names, found by its content: what cannot be read is refused
// early, in words about the file and not about its bytes.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace hone::cli {

enum class FileKind {
  onnx,         // or anything else that is binary: the importer says what is wrong with it
  plan,         // a .hone file, by its name or by what it holds
  safetensors,  // tensors only, as the next two
  shards,       // the index of safetensors in several files
  gguf,
};

struct ModelFile {
  std::filesystem::path path;
  FileKind kind = FileKind::onnx;
  bool is_plan() const { return kind == FileKind::plan; }
  bool has_only_tensors() const { return !is_plan() && kind != FileKind::onnx; }
};

// A directory stands for the model.onnx or model.hone in it. Throws UserError when there is no such
// file, or when it is empty, text, or a page that a download left in its place.
ModelFile model_file(const std::string& given);

// Throws UserError when no file can be written there.
void check_writable(const std::filesystem::path& file, const std::string& option);

struct OutputFile {
  std::string option;  // that named it
  std::filesystem::path file;
};
// Throws when one of them is the model, a file that was read for it, or another output.
void check_outputs(std::span<const OutputFile>, const std::filesystem::path& model);

}  // namespace hone::cli
