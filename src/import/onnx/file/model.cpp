#include "import/onnx/file/model.h"

#include <bit>
#include <concepts>
#include <cstring>

#include "base/amount.h"
#include "base/error.h"

namespace hone::onnx {

namespace {

// A field with an unexpected wire type is treated as unknown, and unknown fields are skipped: both
// as protobuf does.
void set(const WireField& f, std::string_view& to) {
  if (f.is_bytes()) to = f.text();
}
void set(const WireField& f, std::int64_t& to) {
  if (f.type == WireType::varint) to = static_cast<std::int64_t>(f.value);
}
void set(const WireField& f, std::int32_t& to) {
  if (f.type == WireType::varint) to = static_cast<std::int32_t>(f.value);
}
void set(const WireField& f, float& to) {
  if (f.type == WireType::fixed32) to = std::bit_cast<float>(static_cast<std::uint32_t>(f.value));
}

template <class List>
  requires std::same_as<typename List::value_type, std::string_view>
void add(const WireField& f, List& to) {
  if (f.is_bytes()) to.push_back(f.text());
}

void add(const WireReader& r, const WireField& f, std::vector<std::int64_t>& to) {
  if (f.type == WireType::varint) to.push_back(static_cast<std::int64_t>(f.value));
  if (!f.is_bytes()) return;
  PackedVarints numbers(r.file(), f.bytes);
  for (std::uint64_t n; numbers.next(n);) to.push_back(static_cast<std::int64_t>(n));
}

// A message with unused fields must still be well-formed.
void skim(const WireReader& r, const WireField& f) {
  if (!f.is_bytes()) return;
  WireReader inner = r.inside(f);
  for (WireField unused; inner.next(unused);) continue;
}

void expect_whole(const WireReader& r, const WireField& f, std::size_t element) {
  if (f.bytes.size() % element != 0)
    r.file().fail(f.bytes.data(),
                  cat("a list of numbers has ", amount(f.bytes.size(), "byte", "bytes"),
                      ", expected a multiple of ", element));
}

void add(const WireReader& r, const WireField& f, std::vector<float>& to) {
  if (f.type == WireType::fixed32)
    to.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(f.value)));
  if (!f.is_bytes()) return;
  expect_whole(r, f, sizeof(float));
  std::size_t before = to.size();
  to.resize(before + f.bytes.size() / sizeof(float));
  if (!f.bytes.empty()) std::memcpy(to.data() + before, f.bytes.data(), f.bytes.size());
}

class Parser {
 public:
  Parser(WireFile& file, std::int64_t most_nodes) : file_(file), nodes_left_(most_nodes) {}

  void read(WireReader, Model&);
  void read(WireReader, Tensor&);

 private:
  void read(WireReader, Graph&);
  void read(WireReader, Node&);
  void read(WireReader, Attribute&);
  void read(WireReader, ValueInfo&);
  void read_type(WireReader, ValueInfo&);
  void read_tensor_type(WireReader, ValueInfo&);
  void read_element_type(WireReader, ValueInfo&);
  void read_shape(WireReader, ValueInfo&);
  void read(WireReader, Size&);
  void read(WireReader, LocalFunction&);
  void read(WireReader, Opset&);
  void read(WireReader, std::pair<std::string_view, std::string_view>&);
  void read(WireReader, SparseTensor&);
  void add_typed(WireReader&, const WireField&, Tensor&, TypedData::Kind);

  // A message that is not repeated. Further occurrences are merged, as protobuf does.
  template <class T>
  void one(WireReader& r, const WireField& f, std::optional<T>& to) {
    if (f.is_bytes()) read(r.inside(f), to ? *to : to.emplace());
  }
  template <class T>
  void one(WireReader& r, const WireField& f, std::shared_ptr<T>& to) {
    if (!f.is_bytes()) return;
    file_.charge(f.bytes.data(), sizeof(T));
    if (!to) to = std::make_shared<T>();
    read(r.inside(f), *to);
  }
  template <class List>
  void each(WireReader& r, const WireField& f, List& to) {
    if (!f.is_bytes()) return;
    file_.charge(f.bytes.data(), sizeof(typename List::value_type));
    read(r.inside(f), to.emplace_back());
  }
  void each_node(WireReader& r, const WireField& f, std::vector<Node>& to);

  WireFile& file_;
  std::int64_t nodes_left_, most_nodes_ = nodes_left_;
};

void Parser::read(WireReader r, Model& to) {
  for (WireField f; r.next(f);) switch (f.number) {
      case 1:
        set(f, to.ir_version);
        break;
      case 2:
        set(f, to.producer);
        break;
      case 3:
        set(f, to.producer_version);
        break;
      case 7:
        one(r, f, to.graph);
        break;
      case 8:
        each(r, f, to.opsets);
        break;
      case 14:
        each(r, f, to.metadata);
        break;
      case 25:
        each(r, f, to.functions);
        break;
    }
}

void Parser::read(WireReader r, Graph& to) {
  for (WireField f; r.next(f);) switch (f.number) {
      case 1:
        each_node(r, f, to.nodes);
        break;
      case 2:
        set(f, to.name);
        break;
      case 5:
        each(r, f, to.initializers);
        break;
      case 11:
        each(r, f, to.inputs);
        break;
      case 12:
        each(r, f, to.outputs);
        break;
      case 15:
        each(r, f, to.sparse_initializers);
        break;
    }
}

void Parser::read(WireReader r, SparseTensor& to) {
  for (WireField f; r.next(f);) {
    if (f.number == 1 && f.is_bytes()) read(r.inside(f), to.values);
    if (f.number == 2 && f.is_bytes()) read(r.inside(f), to.places);
    if (f.number == 3) add(r, f, to.dims);
  }
}

void Parser::each_node(WireReader& r, const WireField& f, std::vector<Node>& to) {
  if (f.is_bytes() && nodes_left_-- <= 0)
    file_.fail(f.bytes.data(), cat("the model has more than ", most_nodes_,
                                   " nodes; raise the limit if that is intended"));
  each(r, f, to);
}

void Parser::read(WireReader r, Node& to) {
  for (WireField f; r.next(f);) switch (f.number) {
      case 1:
        add(f, to.inputs);
        break;
      case 2:
        add(f, to.outputs);
        break;
      case 3:
        set(f, to.name);
        break;
      case 4:
        set(f, to.op);
        break;
      case 5:
        each(r, f, to.attributes);
        break;
      case 7:
        set(f, to.domain);
        break;
      case 8:
        set(f, to.overload);
        break;
    }
}

void Parser::read(WireReader r, Attribute& to) {
  for (WireField f; r.next(f);) switch (f.number) {
      case 1:
        set(f, to.name);
        break;
      case 2:
        set(f, to.real);
        break;
      case 3:
        set(f, to.integer);
        break;
      case 4:
        set(f, to.text);
        break;
      case 5:
        one(r, f, to.tensor);
        break;
      case 6:
        one(r, f, to.graph);
        break;
      case 7:
        add(r, f, to.reals);
        break;
      case 8:
        add(r, f, to.integers);
        break;
      case 9:
        add(f, to.texts);
        break;
      case 20:
        set(f, to.kind);
        break;
      case 21:
        set(f, to.reference);
        break;
      case 22:
        one(r, f, to.sparse);
        break;
    }
}

void Parser::add_typed(WireReader& r, const WireField& f, Tensor& to, TypedData::Kind kind) {
  const std::size_t width = kind == TypedData::Kind::f32 ? 4 : kind == TypedData::Kind::f64 ? 8 : 0;
  const WireType single = width == 4   ? WireType::fixed32
                          : width == 8 ? WireType::fixed64
                                       : WireType::varint;
  if (f.is_bytes() && width != 0) expect_whole(r, f, width);
  if (f.is_bytes() && width == 0) {
    PackedVarints numbers(file_, f.bytes);
    for (std::uint64_t n; numbers.next(n);) continue;
  }
  if (!f.is_bytes() && f.type != single) return;
  if (!f.is_bytes()) file_.charge(file_.bytes().data(), sizeof(TypedData));
  to.typed.push_back({kind, f.type, f.bytes, f.value});
}

void Parser::read(WireReader r, Tensor& to) {
  for (WireField f; r.next(f);) switch (f.number) {
      case 1:
        add(r, f, to.dims);
        break;
      case 2:
        set(f, to.data_type);
        break;
      case 3:
        to.segment = to.segment || f.is_bytes();
        skim(r, f);
        break;
      case 4:
        add_typed(r, f, to, TypedData::Kind::f32);
        break;
      case 5:
        add_typed(r, f, to, TypedData::Kind::i32);
        break;
      case 6:
        add(f, to.strings);
        break;
      case 7:
        add_typed(r, f, to, TypedData::Kind::i64);
        break;
      case 8:
        set(f, to.name);
        break;
      case 9:
        if (f.is_bytes()) to.raw = f.bytes;
        break;
      case 10:
        add_typed(r, f, to, TypedData::Kind::f64);
        break;
      case 11:
        add_typed(r, f, to, TypedData::Kind::u64);
        break;
      case 13:
        each(r, f, to.external_data);
        break;
      case 14:
        if (f.type == WireType::varint) to.external = f.value == 1;
        break;
    }
}

void Parser::read(WireReader r, std::pair<std::string_view, std::string_view>& to) {
  for (WireField f; r.next(f);) {
    if (f.number == 1) set(f, to.first);
    if (f.number == 2) set(f, to.second);
  }
}

void Parser::read(WireReader r, ValueInfo& to) {
  for (WireField f; r.next(f);) {
    if (f.number == 1) set(f, to.name);
    if (f.number == 2 && f.is_bytes()) read_type(r.inside(f), to);
  }
}

// The kinds exclude each other: the last one in the file counts.
void Parser::read_type(WireReader r, ValueInfo& to) {
  using Kind = ValueInfo::Kind;
  for (WireField f; r.next(f);) {
    Kind kind = f.number == 1   ? Kind::tensor
                : f.number == 4 ? Kind::sequence
                : f.number == 5 ? Kind::map
                : f.number == 8 ? Kind::sparse_tensor
                : f.number == 9 ? Kind::optional
                                : Kind::none;
    if (kind == Kind::none || !f.is_bytes()) continue;
    if (kind != to.kind) to = {.name = to.name, .kind = kind, .sizes = {}};
    if (kind == Kind::tensor)
      read_tensor_type(r.inside(f), to);
    else if (kind == Kind::sequence || kind == Kind::optional)
      read_element_type(r.inside(f), to);
    else
      skim(r, f);
  }
}

void Parser::read_element_type(WireReader r, ValueInfo& to) {
  for (WireField f; r.next(f);) {
    if (f.number != 1 || !f.is_bytes()) continue;
    ValueInfo element;
    read_type(r.inside(f), element);
    to.element = element.kind;
    to.data_type = element.data_type;
  }
}

void Parser::read_tensor_type(WireReader r, ValueInfo& to) {
  for (WireField f; r.next(f);) {
    if (f.number == 1) set(f, to.data_type);
    if (f.number != 2 || !f.is_bytes()) continue;
    to.has_shape = true;
    read_shape(r.inside(f), to);
  }
}

void Parser::read_shape(WireReader r, ValueInfo& to) {
  for (WireField f; r.next(f);)
    if (f.number == 1) each(r, f, to.sizes);
}

void Parser::read(WireReader r, Size& to) {
  for (WireField f; r.next(f);) {
    if (f.number == 1 && f.type == WireType::varint) to = {static_cast<std::int64_t>(f.value), {}};
    if (f.number == 2 && f.is_bytes()) to = {std::nullopt, f.text()};
  }
}

void Parser::read(WireReader r, Opset& to) {
  for (WireField f; r.next(f);) {
    if (f.number == 1) set(f, to.domain);
    if (f.number == 2) set(f, to.version);
  }
}

void Parser::read(WireReader r, LocalFunction& to) {
  for (WireField f; r.next(f);) switch (f.number) {
      case 1:
        set(f, to.name);
        break;
      case 4:
        add(f, to.inputs);
        break;
      case 5:
        add(f, to.outputs);
        break;
      case 6:
        add(f, to.attributes);
        break;
      case 7:
        each_node(r, f, to.nodes);
        break;
      case 9:
        each(r, f, to.opsets);
        break;
      case 10:
        set(f, to.domain);
        break;
      case 11:
        each(r, f, to.defaults);
        break;
      case 13:
        set(f, to.overload);
        break;
    }
}

}  // namespace

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::vector<std::string_view> initializer_names(const Graph& g) {
  std::vector<std::string_view> out;
  for (const Tensor& t : g.initializers) out.push_back(t.name);
  for (const SparseTensor& t : g.sparse_initializers) out.push_back(t.values.name);
  return out;
}

Model parse_model(std::span<const std::byte> bytes, const std::string& name,
                  std::int64_t most_nodes) {
  WireFile file(name, bytes);
  Model model;
  Parser(file, most_nodes).read(WireReader(file), model);
  return model;
}

Tensor parse_tensor(std::span<const std::byte> bytes, const std::string& name) {
  WireFile file(name, bytes);
  Tensor tensor;
  Parser(file, 0).read(WireReader(file), tensor);
  return tensor;
}

}  // namespace hone::onnx
