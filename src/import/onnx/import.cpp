#include "import/onnx/import.h"

#include "import/onnx/variants.h"

namespace hone {

namespace {

std::string model_name(const std::filesystem::path& path) {
  bool is_generic = path.stem() == "model" && path.has_parent_path();
  return (is_generic ? path.parent_path().filename() : path.stem()).string();
}

}  // namespace

Imported import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  auto file = MappedFile::open(path);
  onnx::Model model = onnx::parse_model(file->bytes(), file->path(), options.most_nodes);
  onnx::TensorFiles files(file, options.allow_links);
  Imported out;
  out.name = model_name(path);
  try {
    onnx::read_model(model, files, options, out);
  } catch (const UserError& e) {
    throw UserError(path.string(), ": ", e.what());
  }
  return out;
}

}  // namespace hone
