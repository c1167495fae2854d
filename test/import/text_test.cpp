// String operators, by the reference: compared with Python's results, including strings that are
// not UTF-8.
#include "type/text.h"

#include "support.h"

namespace hone {
namespace {

using Texts = std::vector<std::string_view>;

Array texts(const Texts& all) { return text_array({std::ssize(all)}, all); }
Array text(std::string_view one) { return text_array({}, std::span(&one, 1)); }

Texts texts_of(const Array& a) {
  Texts out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(text_at(a, i));
  return out;
}

// Strings as a file stores them.
void add_texts(ModelBuilder& b, const std::string& name, const Array& a) {
  onnx_pb::Tensor* t = b.model.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(8);
  for (std::int64_t d : a.dims()) t->add_dims(d);
  for (std::string_view s : texts_of(a)) t->add_string_data(std::string(s));
}

void set_texts(onnx_pb::Node& n, const std::string& name, const Texts& all) {
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name(name);
  a->set_type(8);
  for (std::string_view s : all) a->add_strings(std::string(s));
}

// A model of one node over one list of strings.
struct OneTextNode {
  explicit OneTextNode(const std::string& op, int outputs = 1, const std::string& size = "n") {
    b.input("x", DType::text, {size});
    node =
        &b.node(op, {"x"},
                outputs == 2 ? std::vector<std::string>{"y", "z"} : std::vector<std::string>{"y"});
    for (const std::string& o : node->output()) b.output(o);
  }
  std::vector<Array> run(const Texts& x) { return b.run({texts(x)}); }

  ModelBuilder b;
  onnx_pb::Node* node;
};

TEST(TextOperators, InitializersAreJoinedToInputs) {
  ModelBuilder b;
  b.input("x", DType::text, {"2", "1"});
  add_texts(b, "w", texts({"", "\xc3\xa9", "\xff"}));
  b.node("StringConcat", {"x", "w"}, {"y"});
  b.output("y");
  const Array x = text_array({2, 1}, Texts{"a", "b"});
  const Array y = b.run({x}).at(0);
  EXPECT_EQ(y.dims(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(texts_of(y), (Texts{"a", "a\xc3\xa9", "a\xff", "b", "b\xc3\xa9", "b\xff"}));
}

TEST(TextOperators, MovementAndChoice) {
  ModelBuilder b;
  b.input("x", DType::text, {"4"});
  onnx_pb::Node& constant = b.node("Constant", {}, {"c"});
  set_text(constant, "value_string", "b");
  b.ints("shape", {2, 2});
  b.node("Equal", {"x", "c"}, {"is"});
  b.node("Where", {"is", "x", "d"}, {"chosen"});
  add_texts(b, "d", text("none"));
  b.node("Reshape", {"chosen", "shape"}, {"matrix"});
  b.node("Transpose", {"matrix"}, {"y"});
  b.output("is");
  b.output("y");
  const std::vector<Array> got = b.run({texts({"a", "b", "", "b"})});
  EXPECT_EQ(numbers_of(got[0]), (std::vector<double>{0, 1, 0, 1}));
  EXPECT_EQ(texts_of(got[1]), (Texts{"none", "none", "b", "b"}));
}

TEST(TextOperators, TextsAreNoNumbers) {
  for (const char* op : {"Add", "Less", "Max", "Mul"}) {
    ModelBuilder b;
    b.input("x", DType::text, {"4"});
    b.node(op, {"x", "x"}, {"y"});
    b.output("y");
    EXPECT_NE(b.failure().find("text"), std::string::npos) << op << ": " << b.failure();
  }
  for (const char* op : {"Abs", "ReduceMax", "Softmax", "Unique"}) {
    OneTextNode one(op);
    EXPECT_NE(one.b.failure().find("text"), std::string::npos) << op << ": " << one.b.failure();
  }
  OneTextNode cast("Cast");
  set_int(*cast.node, "to", 9);
  EXPECT_NE(cast.b.failure().find("casting strings to bool"), std::string::npos)
      << cast.b.failure();
}

TEST(TextOperators, SplitsAreAsWideAsTheTextOfMostPieces) {
  const auto split = [](const std::string& size) {
    OneTextNode n("StringSplit", 2, size);
    set_text(*n.node, "delimiter", ",");
    return n.b.import().variants.at(0).function;
  };
  const Function any = split("n"), none = split("0");
  struct {
    Texts x;
    std::vector<std::int64_t> dims;
    Texts pieces;
    std::vector<double> counts;
  } cases[] = {
      {{"a,b", "c"}, {2, 2}, {"a", "b", "c", ""}, {2, 1}},
      {{"", ",,"}, {2, 3}, {"", "", "", "", "", ""}, {1, 3}},
      {{}, {0, 0}, {}, {}},
  };
  for (const auto& c : cases) {
    const std::vector<Array> got = evaluate(c.x.empty() ? none : any, {{texts(c.x)}});
    EXPECT_EQ(got[0].dims(), c.dims);
    EXPECT_EQ(texts_of(got[0]), c.pieces);
    EXPECT_EQ(numbers_of(got[1]), c.counts);
  }
  std::string many(5000, ',');
  EXPECT_THROW(evaluate(any, {{texts({many})}}), UserError);
}

TEST(TextOperators, Matches) {
  OneTextNode match("RegexFullMatch");
  set_text(*match.node, "pattern", "(\\w+)@(\\w+)\\.com");
  EXPECT_EQ(numbers_of(match.run({"a@b.com", "a@b.comm", "", "\xff@b.com"}).at(0)),
            (std::vector<double>{1, 0, 0, 0}));
  OneTextNode broken("RegexFullMatch");
  set_text(*broken.node, "pattern", "a(b");
  EXPECT_NE(broken.b.failure().find("'(' without ')'"), std::string::npos) << broken.b.failure();
}

TEST(TextOperators, NormalizerDropsStopWordsAndChangesCase) {
  struct {
    bool is_case_sensitive;
    const char* action;
    Texts stop, x, y;
  } cases[] = {
      {true, "NONE", {"monday"}, {"monday", "Monday", "x"}, {"Monday", "x"}},
      {false, "NONE", {"monday"}, {"monday", "Monday", "x"}, {"x"}},
      {false, "UPPER", {"a", "b"}, {"a", "c\xc3\xa9", "B", "d"}, {"C\xc3\x89", "D"}},
      {true, "LOWER", {"A"}, {"A", "a", "B"}, {"a", "b"}},
      {true, "LOWER", {}, {"ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, {"abcdefghijklmnopqrstuvwxyz"}},
      {true, "UPPER", {}, {"abcdefghijklmnopqrstuvwxyz"}, {"ABCDEFGHIJKLMNOPQRSTUVWXYZ"}},
      {true, "NONE", {"a"}, {"a", "a"}, {""}},
      {true, "NONE", {}, {"a", "a"}, {"a", "a"}},
      {true, "NONE", {"a"}, {}, {""}},
  };
  for (const auto& c : cases) {
    OneTextNode n("StringNormalizer", 1, c.x.empty() ? "0" : "n");
    set_int(*n.node, "is_case_sensitive", c.is_case_sensitive);
    set_text(*n.node, "case_change_action", c.action);
    if (!c.stop.empty()) set_texts(*n.node, "stopwords", c.stop);
    EXPECT_EQ(texts_of(n.run(c.x).at(0)), c.y);
  }
  OneTextNode turkish("StringNormalizer");
  set_text(*turkish.node, "locale", "tr_TR");
  EXPECT_NE(turkish.b.failure().find("locale"), std::string::npos);
}

TEST(TextOperators, FilesWhoseTextsLieAreRefused) {
  ModelBuilder b;
  add_texts(b, "w", texts({"a", "b"}));
  b.model.mutable_graph()->mutable_initializer(0)->set_dims(0, 3);
  b.node("Identity", {"w"}, {"y"});
  b.output("y");
  EXPECT_NE(b.failure().find("it has 2 strings, expected 3"), std::string::npos) << b.failure();
  b.model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(24, 'x'));
  EXPECT_NE(b.failure().find("string_data only"), std::string::npos) << b.failure();
}

}  // namespace
}  // namespace hone
