// Finds the kind of file that the command line names, by its content. Unreadable files are refused
// early, with a message about the file and not about its bytes.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace hone::cli {

enum class FileKind {
  onnx,         // or another binary file: the importer reports what is wrong
  plan,         // a .hone file, by name or content
  safetensors,  // only tensors, as the next two
  shards,       // the index of safetensors in several files
  gguf,
};

struct ModelFile {
  std::filesystem::path path;
  FileKind kind = FileKind::onnx;
  bool is_plan() const { return kind == FileKind::plan; }
  bool has_only_tensors() const { return !is_plan() && kind != FileKind::onnx; }
};

// A directory stands for the model.onnx or model.hone in it. Throws UserError when the file is
// missing, empty, text, or an HTML page from a failed download.
ModelFile model_file(const std::string& given);

// Throws UserError when no file can be written there.
void check_writable(const std::filesystem::path& file, const std::string& option);

struct OutputFile {
  std::string option;  // the option that named it
  std::filesystem::path file;
};
// Throws when one of the files is the model, a file that was read for it, or another output.
void check_outputs(std::span<const OutputFile>, const std::filesystem::path& model);

}  // namespace hone::cli
