#include "test/onnx/tier.h"

#include <set>

#include "base/file.h"
#include "import/onnx/file/model.h"
#include "import/onnx/file/tensor.h"

namespace hone::conformance {

namespace {

// The contents of one model, by kind.
struct Traits {
  bool small_types = false, sequences = false, strings = false, ml = false, training = false;

  void note_type(std::int32_t data_type) {
    const std::string name = onnx::data_type_name(data_type);
    strings = strings || name == "STRING";
    for (std::string_view small : {"FLOAT8", "FLOAT4", "INT4", "INT2"})
      small_types = small_types || name.find(small) != name.npos;
  }
  void note(const onnx::ValueInfo& v) {
    if (v.kind == onnx::ValueInfo::Kind::tensor) return note_type(v.data_type);
    sequences = true;
  }
  void note(const onnx::Node& n) {
    ml = ml || n.domain == "ai.onnx.ml";
    training = training || n.domain == "ai.onnx.preview.training";
    for (const onnx::Attribute& a : n.attributes) {
      if (a.name == "to" || a.name == "dtype") note_type(static_cast<std::int32_t>(a.integer));
      if (a.tensor) note_type(a.tensor->data_type);
      if (a.graph) note(*a.graph);
    }
  }
  void note(const onnx::Graph& g) {
    for (const onnx::Node& n : g.nodes) note(n);
    for (const onnx::ValueInfo& v : g.inputs) note(v);
    for (const onnx::ValueInfo& v : g.outputs) note(v);
    for (const onnx::Tensor& t : g.initializers) note_type(t.data_type);
  }
};

}  // namespace

std::string tier_of(const Case& c) {
  const std::string kind = c.name.substr(0, c.name.find('/'));
  if (kind != "node") return kind;
  auto file = MappedFile::open(c.model);
  onnx::Model model = onnx::parse_model(file->bytes(), file->path(), 1 << 20);
  Traits t;
  if (model.graph) t.note(*model.graph);
  if (t.training) return "node: training";
  if (t.ml) return "node: ai.onnx.ml";
  if (t.strings) return "node: strings";
  if (t.sequences) return "node: sequences";
  if (t.small_types) return "node: small types";
  return "node: core";
}

}  // namespace hone::conformance
