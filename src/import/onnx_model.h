// An ONNX file as plain structs whose text and data point into the memory map. Field numbers are
// those of onnx.proto (github.com/onnx/onnx, IR version 10). Structure only: nothing is typed or
// checked against operators here.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "import/wire.h"
#include "type/array.h"

namespace hone::onnx {

struct Graph;

struct Tensor {
  std::string_view name;
  std::int64_t data_type = 0;
  std::vector<std::int64_t> dims;
  std::optional<wire::Bytes> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> integers;  // int32_data, int64_data or uint64_data
  std::vector<std::string_view> strings;
  bool external = false;
  std::map<std::string_view, std::string_view> external_data;
};

struct Attribute {
  enum class Kind : std::uint8_t {
    undefined,
    real,
    integer,
    text,
    tensor,
    graph,
    reals,
    integers,
    texts,
    tensors,
    graphs,
    sparse,
    sparses,
    type,
    types,
  };
  std::string_view name, reference;  // reference: name of the enclosing function's attribute
  Kind kind = Kind::undefined;
  float real = 0;
  std::int64_t integer = 0;
  std::string_view text;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
  std::vector<Tensor> tensors;                 // one for tensor
  std::vector<std::shared_ptr<Graph>> graphs;  // one for graph
};

struct Node {
  std::string_view name, op, domain;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;
};

struct Size {
  std::optional<std::int64_t> number;
  std::string_view symbol;
};

struct ValueInfo {
  std::string_view name;
  std::int64_t data_type = 0;  // 0: not a tensor
  bool has_shape = false;
  std::vector<Size> sizes;
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
  bool has_sparse_initializers = false;
};

struct Model {
  std::shared_ptr<const MappedFile> file;
  std::filesystem::path directory;
  std::int64_t ir_version = 0;
  std::map<std::string_view, std::int64_t> opsets;  // by domain; "" and "ai.onnx" are ""
  Graph graph;
  std::size_t functions = 0;  // model-local functions

  std::int64_t opset(std::string_view domain) const;
};

// Throws UserError naming the file and, for broken bytes, the offset.
Model read_model(const std::filesystem::path&);

// A TensorProto message on its own (test_data_set files). `file` must outlive it.
Tensor read_tensor(wire::Bytes message, wire::Bytes file);

// The tensor's data; raw data is not copied but shares `owner`. External data is opened below
// `directory` only. Throws UserError naming the tensor.
Array to_array(const Tensor&, const std::shared_ptr<const void>& owner,
               const std::filesystem::path& directory);

std::optional<DType> dtype_of(std::int64_t data_type);
std::string data_type_name(std::int64_t data_type);

}  // namespace hone::onnx
