#include <bit>
#include <cstring>
#include <random>

#include "base/amount.h"
#include "base/hash.h"
#include "import/onnx/file/model.h"
#include "support.h"

namespace hone {
namespace {

// ==== a model as text, from our structs and from protobuf's messages

class Text {
 public:
  template <class... Parts>
  void line(const Parts&... parts) {
    out_ += cat(parts..., "\n");
  }
  std::string out() const { return out_; }

 private:
  std::string out_;
};

std::string hashed(std::string_view bytes) { return cat(bytes.size(), ":", hash_text(bytes)); }
std::string bits(float f) { return cat(std::bit_cast<std::uint32_t>(f)); }

// Typed data as hashes of decoded numbers, field by field.
struct TypedText {
  std::string f32, f64, i32, i64, u64;
};

void add_number(std::string& to, std::uint64_t n) {
  to.append(reinterpret_cast<const char*>(&n), sizeof n);
}

TypedText typed_text(const onnx::Tensor& t, const WireFile& file) {
  TypedText out;
  for (const onnx::TypedData& d : t.typed) {
    using Kind = onnx::TypedData::Kind;
    const std::size_t width = d.kind == Kind::f32 ? 4 : d.kind == Kind::f64 ? 8 : 0;
    std::string& to = d.kind == Kind::f32   ? out.f32
                      : d.kind == Kind::f64 ? out.f64
                      : d.kind == Kind::i32 ? out.i32
                      : d.kind == Kind::i64 ? out.i64
                                            : out.u64;
    auto add = [&](std::uint64_t n) {
      add_number(
          to, d.kind == Kind::i32 ? static_cast<std::uint64_t>(static_cast<std::int32_t>(n)) : n);
    };
    if (d.type != WireType::bytes) {
      add(d.value);
    } else if (width != 0) {
      for (std::size_t i = 0; i < d.packed.size(); i += width) {
        std::uint64_t n = 0;
        std::memcpy(&n, d.packed.data() + i, width);
        add(n);
      }
    } else {
      PackedVarints numbers(file, d.packed);
      for (std::uint64_t n; numbers.next(n);) add(n);
    }
  }
  return out;
}

TypedText typed_text(const onnx_pb::Tensor& t) {
  TypedText out;
  for (float f : t.float_data()) add_number(out.f32, std::bit_cast<std::uint32_t>(f));
  for (double f : t.double_data()) add_number(out.f64, std::bit_cast<std::uint64_t>(f));
  for (std::int32_t n : t.int32_data()) add_number(out.i32, static_cast<std::uint64_t>(n));
  for (std::int64_t n : t.int64_data()) add_number(out.i64, static_cast<std::uint64_t>(n));
  for (std::uint64_t n : t.uint64_data()) add_number(out.u64, n);
  return out;
}

void typed_lines(Text& x, const TypedText& t) {
  x.line(" typed ", hashed(t.f32), hashed(t.f64), hashed(t.i32), hashed(t.i64), hashed(t.u64));
}

// ---- ours

class Ours {
 public:
  explicit Ours(std::string_view bytes) : file_("file", std::as_bytes(std::span(bytes))) {}
  std::string text(const onnx::Model& m) {
    x_.line("model ", m.ir_version);
    opsets(m.opsets);
    if (m.graph) graph(*m.graph);
    for (const onnx::LocalFunction& f : m.functions) {
      x_.line("function ", f.name, "|", f.domain, "|", f.overload);
      for (auto* list : {&f.inputs, &f.outputs, &f.attributes}) names(*list);
      opsets(f.opsets);
      for (const onnx::Attribute& a : f.defaults) attribute(a);
      for (const onnx::Node& n : f.nodes) node(n);
    }
    return x_.out();
  }

 private:
  void names(std::span<const std::string_view> list) {
    for (std::string_view s : list) x_.line(" name ", s);
    x_.line(" end");
  }
  void opsets(const std::vector<onnx::Opset>& list) {
    for (const onnx::Opset& o : list) x_.line(" opset ", o.domain, "|", o.version);
  }
  void graph(const onnx::Graph& g) {
    x_.line("graph ", g.name);
    for (const onnx::Node& n : g.nodes) node(n);
    for (const onnx::Tensor& t : g.initializers) tensor(t);
    for (auto* list : {&g.inputs, &g.outputs})
      for (const onnx::ValueInfo& v : *list) value(v);
    for (const onnx::SparseTensor& s : g.sparse_initializers) {
      tensor(s.values);
      tensor(s.places);
      for (std::int64_t d : s.dims) x_.line(" size ", d);
    }
  }
  void node(const onnx::Node& n) {
    x_.line("node ", n.name, "|", n.op, "|", n.domain, "|", n.overload);
    names(n.inputs);
    names(n.outputs);
    for (const onnx::Attribute& a : n.attributes) attribute(a);
  }
  void attribute(const onnx::Attribute& a) {
    x_.line("attribute ", a.name, "|", a.reference, "|", a.kind, "|", bits(a.real), "|", a.integer,
            "|", hashed(a.text));
    for (float f : a.reals) x_.line(" ", bits(f));
    for (std::int64_t i : a.integers) x_.line(" ", i);
    names(a.texts);
    if (a.tensor) tensor(*a.tensor);
    if (a.graph) graph(*a.graph);
  }
  void tensor(const onnx::Tensor& t) {
    x_.line("tensor ", t.name, "|", t.data_type, "|", t.external, t.segment);
    for (std::int64_t d : t.dims) x_.line(" ", d);
    if (t.raw)
      x_.line(" raw ", hashed({reinterpret_cast<const char*>(t.raw->data()), t.raw->size()}));
    names(t.strings);
    for (auto& [key, text] : t.external_data) x_.line(" at ", key, "=", text);
    typed_lines(x_, typed_text(t, file_));
  }
  void value(const onnx::ValueInfo& v) {
    x_.line("value ", v.name, "|", static_cast<int>(v.kind), "|", v.data_type, "|", v.has_shape);
    for (const onnx::Size& s : v.sizes)
      x_.line(" size ", s.number ? cat(*s.number) : cat("'", s.symbol, "'"));
  }

  WireFile file_;
  Text x_;
};

// ---- protobuf's

class Theirs {
 public:
  std::string text(const onnx_pb::Model& m) {
    x_.line("model ", m.ir_version());
    opsets(m.opset_import());
    if (m.has_graph()) graph(m.graph());
    for (const onnx_pb::Function& f : m.functions()) {
      x_.line("function ", f.name(), "|", f.domain(), "|", f.overload());
      for (auto* list : {&f.input(), &f.output(), &f.attribute()}) names(*list);
      opsets(f.opset_import());
      for (const onnx_pb::Attribute& a : f.attribute_proto()) attribute(a);
      for (const onnx_pb::Node& n : f.node()) node(n);
    }
    return x_.out();
  }

 private:
  template <class List>
  void names(const List& list) {
    for (const std::string& s : list) x_.line(" name ", s);
    x_.line(" end");
  }
  template <class List>
  void opsets(const List& list) {
    for (const onnx_pb::Opset& o : list) x_.line(" opset ", o.domain(), "|", o.version());
  }
  void graph(const onnx_pb::Graph& g) {
    x_.line("graph ", g.name());
    for (const onnx_pb::Node& n : g.node()) node(n);
    for (const onnx_pb::Tensor& t : g.initializer()) tensor(t);
    for (auto* list : {&g.input(), &g.output()})
      for (const onnx_pb::ValueInfo& v : *list) value(v);
    for (const onnx_pb::SparseTensor& s : g.sparse_initializer()) {
      tensor(s.values());
      tensor(s.indices());
      for (std::int64_t d : s.dims()) x_.line(" size ", d);
    }
  }
  void node(const onnx_pb::Node& n) {
    x_.line("node ", n.name(), "|", n.op_type(), "|", n.domain(), "|", n.overload());
    names(n.input());
    names(n.output());
    for (const onnx_pb::Attribute& a : n.attribute()) attribute(a);
  }
  void attribute(const onnx_pb::Attribute& a) {
    x_.line("attribute ", a.name(), "|", a.ref_attr_name(), "|", a.type(), "|", bits(a.f()), "|",
            a.i(), "|", hashed(a.s()));
    for (float f : a.floats()) x_.line(" ", bits(f));
    for (std::int64_t i : a.ints()) x_.line(" ", i);
    names(a.strings());
    if (a.has_t()) tensor(a.t());
    if (a.has_g()) graph(a.g());
  }
  void tensor(const onnx_pb::Tensor& t) {
    x_.line("tensor ", t.name(), "|", t.data_type(), "|", t.data_location() == 1, t.has_segment());
    for (std::int64_t d : t.dims()) x_.line(" ", d);
    if (t.has_raw_data()) x_.line(" raw ", hashed(t.raw_data()));
    names(t.string_data());
    for (const onnx_pb::Pair& p : t.external_data()) x_.line(" at ", p.key(), "=", p.value());
    typed_lines(x_, typed_text(t));
  }
  void value(const onnx_pb::ValueInfo& v) {
    const onnx_pb::Type& type = v.type();
    int kind = type.has_tensor_type()          ? 1
               : type.has_sequence_type()      ? 2
               : type.has_map_type()           ? 3
               : type.has_optional_type()      ? 4
               : type.has_sparse_tensor_type() ? 5
                                               : 0;
    const onnx_pb::TensorType& t = type.tensor_type();
    x_.line("value ", v.name(), "|", kind, "|", t.elem_type(), "|", t.has_shape());
    for (const onnx_pb::Dimension& d : t.shape().dim())
      x_.line(" size ", d.has_dim_value() ? cat(d.dim_value()) : cat("'", d.dim_param(), "'"));
  }

  Text x_;
};

// ==== comparison

struct Outcome {
  std::optional<std::string> text;
  std::string error;
};

Outcome ours(std::string_view bytes) {
  try {
    onnx::Model m = onnx::parse_model(std::as_bytes(std::span(bytes)), "file", 1'000'000);
    return {Ours(bytes).text(m), ""};
  } catch (const UserError& e) {
    return {std::nullopt, e.what()};
  }
}

Outcome theirs(std::string_view bytes) {
  onnx_pb::Model m;
  if (!m.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  return {Theirs().text(m), ""};
}

// Same verdict and same content, except that our own limits may refuse more.
void expect_agreement(std::string_view bytes) {
  Outcome us = ours(bytes), them = theirs(bytes);
  if (!us.text) {
    EXPECT_NE(us.error.find("file: byte "), std::string::npos) << us.error;
    bool limit = us.error.find("levels deep") != std::string::npos ||
                 us.error.find("more small messages") != std::string::npos;
    EXPECT_TRUE(limit || !them.text) << us.error;
    return;
  }
  ASSERT_TRUE(them.text) << "only we accept";
  EXPECT_EQ(*us.text, *them.text);
}

// Every kind of field that the reader knows, each at least once.
std::string model_with_everything() {
  ModelBuilder b(17);
  b.input("x", DType::f32, {"2", "n", ""});
  b.output("y");
  onnx_pb::Node& n = b.node("Op", {"x", "", "w"}, {"y", ""});
  n.set_domain("some.domain");
  n.set_overload("o");
  set_int(n, "i", -5);
  set_real(n, "f", 2.5f);
  set_text(n, "s", std::string("a\0b", 3));
  set_ints(n, "is", {1, -1, std::int64_t{1} << 62});
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name("mixed");
  a->set_ref_attr_name("outer");
  a->add_floats(1.f);
  a->add_strings("t");
  ModelBuilder::add(set_graph(n, "body"), "Inner", {"x"}, {"z"});
  b.ints("w", {1, 2, 3});
  onnx_pb::Tensor* t = b.model.mutable_graph()->add_initializer();
  t->set_name("typed");
  for (int i = -3; i < 300; i += 50) {
    t->add_float_data(static_cast<float>(i));
    t->add_double_data(i);
    t->add_int32_data(i);
    t->add_int64_data(i * 1'000'000'007LL);
    t->add_uint64_data(static_cast<std::uint64_t>(i));
  }
  t->add_string_data("text");
  t->mutable_segment()->set_begin(3);
  t->set_data_location(1);
  onnx_pb::Pair* p = t->add_external_data();
  p->set_key("location");
  p->set_value("weights.bin");
  onnx_pb::Graph* g = b.model.mutable_graph();
  onnx_pb::SparseTensor* sparse = g->add_sparse_initializer();
  sparse->mutable_values()->set_name("sparse");
  sparse->mutable_indices()->add_int64_data(3);
  sparse->add_dims(7);
  g->add_input()->mutable_type()->mutable_sequence_type();
  g->add_input()->mutable_type()->mutable_optional_type();
  onnx_pb::Function* f = b.model.add_functions();
  f->set_name("F");
  f->set_domain("d");
  f->set_overload("v");
  f->add_input("a");
  f->add_output("b");
  f->add_attribute("alpha");
  f->add_attribute_proto()->set_name("beta");
  f->add_node()->set_op_type("Relu");
  f->add_opset_import()->set_version(17);
  return b.bytes();
}

TEST(OnnxModel, ReadsWhatProtobufReads) {
  expect_agreement(model_with_everything());
  for (const auto& path : real_models()) {
    SCOPED_TRACE(path);
    std::string bytes = read_text(path);
    ASSERT_GT(bytes.size(), 1000u);
    expect_agreement(bytes);
    EXPECT_TRUE(ours(bytes).text);
  }
}

TEST(OnnxModel, AgreesOnEveryTruncation) {
  for (const std::string& bytes :
       {model_with_everything(), read_text(HONE_SOURCE_DIR "/examples/digits/digits.onnx")}) {
    for (std::size_t n = 0; n < bytes.size(); n += n < 2000 ? 1 : 97)
      expect_agreement(std::string_view(bytes).substr(0, n));
  }
}

TEST(OnnxModel, AgreesOnTruncatedRealModels) {
  std::mt19937 rng(1);
  for (const auto& path : real_models()) {
    std::string bytes = read_text(path);
    for (int i = 0; i < 20; ++i)
      expect_agreement(std::string_view(bytes).substr(0, rng() % bytes.size()));
  }
}

// Bytes changed, removed, inserted and repeated.
std::string mutated(std::string bytes, std::mt19937& rng) {
  for (unsigned k = 1 + rng() % 4; k > 0; --k) {
    std::size_t at = rng() % bytes.size();
    switch (rng() % 5) {
      case 0:
        bytes[at] = static_cast<char>(rng());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng() % 8));
        break;
      case 2:
        bytes.erase(at, 1 + rng() % 3);
        break;
      case 3:
        bytes.insert(at, 1 + rng() % 3, static_cast<char>(rng()));
        break;
      case 4:
        bytes.insert(at, bytes.substr(rng() % bytes.size(), 1 + rng() % 40));
        break;
    }
    if (bytes.empty()) bytes = "x";
  }
  return bytes;
}

TEST(OnnxModel, AgreesOnMutations) {
  std::mt19937 rng(7);
  std::string small = model_with_everything();
  std::size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = mutated(small, rng);
    expect_agreement(bytes);
    accepted += ours(bytes).text.has_value();
    if (HasFailure()) {
      ADD_FAILURE() << "mutation " << i;
      return;
    }
  }
  EXPECT_GT(accepted, 1000u);  // both verdicts occur
  EXPECT_LT(accepted, 19'000u);
}

// ==== limits

std::string varint(std::uint64_t n) {
  std::string out;
  for (; n >= 128; n >>= 7) out += static_cast<char>(n | 128);
  return out + static_cast<char>(n);
}
std::string field(std::uint32_t number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

TEST(OnnxModel, LengthsBeyondTheEndAreRefused) {
  for (std::uint64_t length : {1ull, 127ull, 128ull, 1ull << 31, 1ull << 32, 1ull << 63, ~0ull}) {
    std::string bytes = varint(7 << 3 | 2) + varint(length);
    EXPECT_NE(ours(bytes).error.find(cat("a field has ", amount(length, "byte", "bytes"),
                                         ", but its message has only 0")),
              std::string::npos)
        << ours(bytes).error;
  }
}

TEST(OnnxModel, NestingIsBounded) {
  // model > graph > node > attribute > graph > ...: three levels per iteration.
  auto nested = [](int turns) {
    std::string graph = field(2, "inner");
    for (int i = 0; i < turns; ++i) graph = field(1, field(5, field(6, graph)));
    return field(7, graph);
  };
  EXPECT_TRUE(ours(nested(20)).text);
  EXPECT_NE(ours(nested(22)).error.find("nested more than 64 levels deep"), std::string::npos);
  EXPECT_NE(ours(nested(1700)).error.find("nested more than 64 levels deep"), std::string::npos);
}

TEST(OnnxModel, GroupsAreSkippedWithinTheSameLimit) {
  auto groups = [](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += varint(99 << 3 | 3);
    for (int i = 0; i < n; ++i) out += varint(99 << 3 | 4);
    return out + field(7, field(2, "g"));
  };
  EXPECT_EQ(ours(groups(3)).text, ours(groups(0)).text);
  expect_agreement(groups(3));
  EXPECT_NE(ours(groups(5000)).error.find("nested more than 64 levels deep"), std::string::npos);
  expect_agreement(varint(99 << 3 | 3));
  expect_agreement(varint(99 << 3 | 4));
}

TEST(OnnxModel, NodesAreCounted) {
  std::string graph;
  for (int i = 0; i < 11; ++i) graph += field(1, "");
  std::string bytes = field(7, graph);
  auto parse = [&](std::int64_t most) {
    return onnx::parse_model(std::as_bytes(std::span(bytes)), "m", most).graph->nodes.size();
  };
  EXPECT_EQ(parse(11), 11u);
  EXPECT_THROW(parse(10), UserError);
}

// Each message takes two bytes in the file and hundreds of bytes in memory.
TEST(OnnxModel, MemoryIsBoundedByTheSizeOfTheFile) {
  std::string attributes;
  for (int i = 0; i < 1'000'000; ++i) attributes += field(5, "");
  std::string bytes = field(7, field(1, attributes));
  EXPECT_NE(ours(bytes).error.find("far more small messages than an ONNX model"),
            std::string::npos);
}

TEST(OnnxModel, MessagesThatStandTwiceAreMerged) {
  std::string bytes = field(7, field(2, "a") + field(1, field(4, "Relu"))) +
                      field(7, field(2, "b") + field(1, field(4, "Tanh")));
  expect_agreement(bytes);
  onnx::Model m = onnx::parse_model(std::as_bytes(std::span(bytes)), "m", 10);
  EXPECT_EQ(m.graph->name, "b");
  EXPECT_EQ(m.graph->nodes.size(), 2u);
}

TEST(OnnxModel, TheErrorNamesFileAndOffset) {
  std::string bytes = field(7, field(2, "name"));
  bytes[3] = 100;  // the length of the name, at byte 3
  EXPECT_EQ(
      ours(bytes).error,
      "file: byte 4 of 8: a field has 100 bytes, but its message has only 4 left; the file is "
      "damaged or not an ONNX file");
}

}  // namespace
}  // namespace hone
