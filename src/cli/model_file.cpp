#include "cli/model_file.h"

#include <algorithm>
#include <fstream>

#include "base/amount.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/run/arguments.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t looked_at = 4096;
// A plan and a safetensors file begin with eight bytes of length; a model of ONNX has more.
constexpr std::size_t least_bytes = 8;

std::string head(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(path.string(), ": cannot be opened; check that this user may read it");
  std::string text(looked_at, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

bool is_text(const std::string& bytes) {
  return std::ranges::all_of(bytes, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

// Eight bytes of length, then the JSON header.
bool is_safetensors(const std::string& bytes) {
  return bytes.size() > 9 && bytes[8] == '{' &&
         std::all_of(bytes.begin() + 5, bytes.begin() + 8, [](char c) { return c == 0; });
}

// The field ir_version, a small number, comes first in what every exporter writes.
bool is_onnx(const std::string& bytes) {
  return bytes.size() > 2 && bytes[0] == 0x08 && bytes[1] > 0 && bytes[1] < 0x20;
}

bool is_index(const std::string& bytes) {
  return bytes.starts_with('{') && bytes.find("\"weight_map\"") != bytes.npos;
}

[[noreturn]] void refuse_text(const fs::path& path, const std::string& bytes) {
  std::string what = "is a text file, not a model";
  if (bytes.starts_with("version https://git-lfs"))
    what = "is a git-lfs pointer, not the model itself; run `git lfs pull`";
  else if (bytes.find("<html") != bytes.npos || bytes.find("<!DOCTYPE") != bytes.npos)
    what = "is an HTML page, not a model; download the file again and read what the server says";
  else
    what += ": it starts with '" + bytes.substr(0, std::min<std::size_t>(bytes.find('\n'), 40)) +
            "'; give an ONNX model or a plan (.hone)";
  throw UserError(path.string(), ": ", what);
}

fs::path resolve(const std::string& given) {
  const fs::path path = given;
  const fs::file_status status = fs::status(path);
  if (!fs::exists(status))
    throw UserError(given,
                    ": does not exist; give an ONNX model, a plan (.hone), or a directory "
                    "that holds model.onnx");
  if (fs::is_regular_file(status)) return path;
  if (!fs::is_directory(status))
    throw UserError(given, ": is a ",
                    fs::is_fifo(status)     ? "pipe"
                    : fs::is_socket(status) ? "socket"
                                            : "device",
                    ", and models are mapped, not streamed; save it to a file first");
  for (const char* name : {"model.onnx", "model.hone"})
    if (fs::exists(path / name)) return resolve((path / name).string());
  throw UserError(given, ": is a directory without model.onnx or model.hone; give the file");
}

// PyTorch's files contain a pickle, a program that runs when it is loaded: refused.
void refuse_archive(const fs::path& path, const std::string& bytes) {
  const bool is_zip = bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06");
  const bool is_pickle = bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
  if (!is_zip && !is_pickle) return;
  throw UserError(path.string(), is_zip ? ": is a zip archive" : ": is a pickle",
                  ", as PyTorch writes (.pt, .pth, .bin), which may hold code and is never read; "
                  "write the model as ONNX (torch.onnx.export), or its weights as safetensors");
}

}  // namespace

ModelFile model_file(const std::string& given) {
  ModelFile out{resolve(given)};
  const std::string bytes = head(out.path);
  if (bytes.empty())
    throw UserError(out.path.string(), ": is empty; was its download or copy interrupted?");
  if (bytes.size() < least_bytes)
    throw UserError(out.path.string(), ": has ", amount(bytes.size(), "byte", "bytes"),
                    ", too few for a model; was its download or copy interrupted?");
  if (is_safetensors(bytes))
    out.kind =
        bytes.find("\"hone.version\"") != bytes.npos ? FileKind::plan : FileKind::safetensors;
  else if (bytes.starts_with("GGUF"))
    out.kind = FileKind::gguf;
  else if (is_index(bytes) || out.path.string().ends_with(".safetensors.index.json"))
    out.kind = FileKind::shards;
  else if (is_text(bytes))
    refuse_text(out.path, bytes);
  else
    refuse_archive(out.path, bytes);
  // A damaged file, known only by its name.
  const bool is_unknown = out.kind == FileKind::onnx && !is_onnx(bytes);
  if (is_unknown && out.path.extension() == ".hone") out.kind = FileKind::plan;
  if (is_unknown && out.path.extension() == ".safetensors") out.kind = FileKind::safetensors;
  return out;
}

void check_writable(const fs::path& file, const std::string& option) {
  if (const std::string why = why_not_writable(file); !why.empty())
    throw UserError(option, " ", file.string(), ": ", why);
}

void check_outputs(std::span<const OutputFile> outputs, const fs::path& model) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, file] = outputs[i];
    if (is_same_file(file, model))
      throw UserError(option, " ", file.string(), ": is the model itself; give another file");
    if (is_mapped(file))
      throw UserError(option, " ", file.string(),
                      ": is an input of this command; give another file");
    for (std::size_t k = 0; k < i; ++k)
      if (is_same_file(file, outputs[k].file) && !fs::is_character_file(file))
        throw UsageError(cat(option, " ", file.string(), ": is also given as ", outputs[k].option,
                             "; give each a different file"));
  }
}

}  // namespace hone::cli
