// Shared by the import tests: models built with libprotobuf, temporary directories, and running a
// Function with the reference. Not a test itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/onnx/file/tensor.h"
#include "onnx.pb.h"
#include "ops/ops.h"
#include "ref/evaluate.h"

namespace hone {

// A directory that is removed with the test.
class TempDirectory {
 public:
  TempDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "hone_import_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The directory of the real models; a test that needs them fails if they are missing.
inline std::filesystem::path models_directory() {
  const char* given = std::getenv("HONE_MODELS");
  std::filesystem::path dir = given ? given : HONE_SOURCE_DIR "/../shared/models";
  if (!std::filesystem::is_directory(dir))
    throw UserError(dir.string(), ": the models of the tests are not there; set HONE_MODELS");
  return dir;
}

inline std::vector<std::filesystem::path> real_models() {
  std::vector<std::filesystem::path> out = {HONE_SOURCE_DIR "/examples/digits/digits.onnx"};
  for (const char* name : {"magika_v3_3", "silero_vad", "squeezenet_fp16", "ultraface_rfb_320"})
    out.push_back(models_directory() / name / "model.onnx");
  return out;
}

// Builds a model node by node.
class ModelBuilder {
 public:
  explicit ModelBuilder(std::int64_t opset = 21) {
    model.set_ir_version(10);
    onnx_pb::Opset* o = model.add_opset_import();
    o->set_domain("");
    o->set_version(opset);
  }

  // Each size is a number or a name, or "" if the file does not name it.
  void input(const std::string& name, DType dtype, const std::vector<std::string>& sizes) {
    fill(model.mutable_graph()->add_input(), name, dtype, sizes);
  }
  void output(const std::string& name) { model.mutable_graph()->add_output()->set_name(name); }
  onnx_pb::Node& node(const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
    return add(*model.mutable_graph(), op, inputs, outputs);
  }
  void constant(const std::string& name, const Array& a) {
    fill(model.mutable_graph()->add_initializer(), name, a);
  }
  void ints(const std::string& name, const std::vector<std::int64_t>& values) {
    constant(name, Array::from_ints(values));
  }

  static onnx_pb::Node& add(onnx_pb::Graph& g, const std::string& op,
                            const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs) {
    onnx_pb::Node* n = g.add_node();
    n->set_op_type(op);
    n->set_name(cat(op, "_", g.node_size() - 1));
    for (const std::string& i : inputs) n->add_input(i);
    for (const std::string& o : outputs) n->add_output(o);
    return *n;
  }
  static void fill(onnx_pb::Tensor* t, const std::string& name, const Array& a) {
    t->set_name(name);
    t->set_data_type(onnx::data_type_of(a.dtype()));
    for (std::int64_t d : a.dims()) t->add_dims(d);
    t->set_raw_data(a.bytes().data(), a.bytes().size());
  }
  static void fill(onnx_pb::ValueInfo* v, const std::string& name, DType dtype,
                   const std::vector<std::string>& sizes) {
    v->set_name(name);
    onnx_pb::TensorType* t = v->mutable_type()->mutable_tensor_type();
    t->set_elem_type(onnx::data_type_of(dtype));
    t->mutable_shape();
    for (const std::string& s : sizes) {
      onnx_pb::Dimension* d = t->mutable_shape()->add_dim();
      if (s.empty()) continue;
      if (std::isdigit(static_cast<unsigned char>(s[0])))
        d->set_dim_value(std::stoll(s));
      else
        d->set_dim_param(s);
    }
  }

  std::string bytes() const { return model.SerializeAsString(); }
  Imported import(const ImportOptions& options = {}) const {
    return import_onnx(directory_->write("test.onnx", bytes()), options);
  }
  // The message that importing fails with.
  std::string failure(const ImportOptions& options = {}) const {
    try {
      import(options);
    } catch (const UserError& e) {
      return e.what();
    }
    return "imported without an error";
  }
  std::vector<Array> run(const std::vector<Array>& inputs) const {
    return evaluate(import().variants.at(0).function, inputs);
  }
  const std::filesystem::path& directory() const { return directory_->path(); }

  onnx_pb::Model model;

 private:
  std::shared_ptr<const TempDirectory> directory_ = std::make_shared<TempDirectory>();
};

inline void set_int(onnx_pb::Node& n, const std::string& name, std::int64_t value) {
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name(name);
  a->set_type(2);
  a->set_i(value);
}
inline void set_real(onnx_pb::Node& n, const std::string& name, float value) {
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name(name);
  a->set_type(1);
  a->set_f(value);
}
inline void set_text(onnx_pb::Node& n, const std::string& name, const std::string& value) {
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name(name);
  a->set_type(3);
  a->set_s(value);
}
inline void set_ints(onnx_pb::Node& n, const std::string& name,
                     const std::vector<std::int64_t>& values) {
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name(name);
  a->set_type(7);
  for (std::int64_t v : values) a->add_ints(v);
}
inline onnx_pb::Graph& set_graph(onnx_pb::Node& n, const std::string& name) {
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name(name);
  a->set_type(5);
  return *a->mutable_g();
}

inline Array reals(std::vector<std::int64_t> dims, const std::vector<float>& values) {
  return Array::of<float>(DType::f32, std::move(dims), values);
}
inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}
inline std::vector<double> numbers_of(const Array& a) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.real(i));
  return out;
}

// The variant whose assumptions hold for inputs of these sizes; null when none does.
inline const ImportedVariant* variant_for(const Imported& model, const std::vector<Array>& inputs) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const Array& a : inputs) dims.push_back(a.dims());
  for (const ImportedVariant& v : model.variants) {
    Sizing sizing = bind_sizes(v.function, dims);
    bool fits = true;
    for (const Assumption& a : v.assumptions)
      fits = fits && (size_of(a.condition, sizing) != 0) == a.holds;
    if (fits) return &v;
  }
  return nullptr;
}

}  // namespace hone
