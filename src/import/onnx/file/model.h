// An ONNX file as plain structs whose strings and bytes are views into the file: the raw contents,
// without interpretation. Field numbers are those of onnx.proto (github.com/onnx/onnx).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/few.h"
#include "import/onnx/file/wire.h"

namespace hone::onnx {

// Elements in a typed tensor field, as stored in the file: packed (any number), or one.
struct TypedData {
  enum class Kind : std::uint8_t { f32, i32, i64, f64, u64 };
  Kind kind;
  WireType type;  // bytes: packed
  std::span<const std::byte> packed;
  std::uint64_t value = 0;  // not packed
};

struct Tensor {
  std::string_view name;
  std::int32_t data_type = 0;
  std::vector<std::int64_t> dims;
  std::optional<std::span<const std::byte>> raw;
  std::vector<TypedData> typed;
  std::vector<std::string_view> strings;
  bool external = false;
  bool segment = false;  // holds a part of a tensor
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
};

// Elements of a tensor that is 0 elsewhere. Indices are flat, [n], or one per axis, [n, rank].
struct SparseTensor {
  Tensor values, places;
  std::vector<std::int64_t> dims;
};

struct Graph;

struct Attribute {
  enum class Kind : std::uint8_t {  // the format's numbers
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
  std::int32_t kind = 0;             // as written: not always a Kind
  float real = 0;
  std::int64_t integer = 0;
  std::string_view text;
  std::shared_ptr<Tensor> tensor;
  std::shared_ptr<SparseTensor> sparse;
  std::shared_ptr<Graph> graph;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
};

using FewNames = Few<std::string_view, 2>;

struct Node {
  std::string_view name, op, domain, overload;
  FewNames inputs, outputs;
  std::vector<Attribute> attributes;
  std::int64_t place = -1;  // index in the file, if nodes were sorted

  const Attribute* find(std::string_view attribute) const;
};

struct Size {
  std::optional<std::int64_t> number;
  std::string_view symbol;
};

struct ValueInfo {
  enum class Kind : std::uint8_t { none, tensor, sequence, map, optional, sparse_tensor };
  std::string_view name;
  Kind kind = Kind::none;
  std::int32_t data_type = 0;
  bool has_shape = false;
  Few<Size, 4> sizes;
  Kind element = Kind::none;  // of a sequence or optional
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<SparseTensor> sparse_initializers;  // named by their `values` tensors
};

// Dense ones first, then sparse ones.
std::vector<std::string_view> initializer_names(const Graph&);

struct Opset {
  std::string_view domain;
  std::int64_t version = 0;
};

// A model-local function: nodes that call it are replaced by its body.
struct LocalFunction {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<Attribute> defaults;  // attributes with default values
  std::vector<Node> nodes;
  std::vector<Opset> opsets;
};

struct Model {
  std::int64_t ir_version = 0;
  std::string_view producer, producer_version;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  std::vector<Opset> opsets;
  std::optional<Graph> graph;
  std::vector<LocalFunction> functions;
  bool is_sorted = false;  // by sort_nodes()
};

// Views into `bytes`, which must outlive the result. `name` appears in errors. Throws UserError
// with the byte offset for an invalid message, one nested too deeply, or too many nodes.
Model parse_model(std::span<const std::byte> bytes, const std::string& name,
                  std::int64_t most_nodes);
Tensor parse_tensor(std::span<const std::byte> bytes, const std::string& name);

}  // namespace hone::onnx
