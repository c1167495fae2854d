// Operands of one node whose sizes must be equal, or may broadcast, are open in some and numbers in
// others.
#include <cmath>

#include "ir/verify.h"
#include "one_node.h"
#include "ops/common.h"
#include "pass/expand.h"
#include "pass/simplify.h"
#include "pass/unify.h"

namespace hone {
namespace {

// 'b': one open size for all; 'o': an open size of its own; a digit: a number; '-': left out.
using Kind = char;

Array some(std::vector<std::int64_t> dims, int seed) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_real(i, static_cast<double>((i * 37 + seed * 11) % 19 - 9) / 10);
  return a;
}

struct Recurrent {
  Recurrent(const std::string& op, const std::string& direction, std::int64_t steps,
            const std::string& kinds)
      : builder(17) {
    const std::int64_t d = direction == "bidirectional" ? 2 : 1, batch = 2, in = 4, hidden = 3;
    const std::int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
    std::vector<std::string> names = {"x", "w", "r", ""};
    const auto size = [&](Kind k, const std::string& name) {
      return k == 'b' ? std::string("b") : k == 'o' ? name + "_batch" : std::string(1, k);
    };
    builder.input("x", DType::f32, {"s", size(kinds[0], "x"), cat(in)});
    values.push_back(some({steps, batch, in}, 1));
    builder.constant("w", some({d, gates * hidden, in}, 2));
    builder.constant("r", some({d, gates * hidden, hidden}, 3));
    names.push_back(kinds[1] == '-' ? "" : "lens");
    if (kinds[1] != '-') {
      builder.input("lens", DType::i32, {size(kinds[1], "lens")});
      Array lens = Array::zeros(DType::i32, {batch});
      for (std::int64_t i = 0; i < batch; ++i) lens.set_integer(i, steps - i);
      values.push_back(lens);
    }
    for (std::size_t i = 2; i < kinds.size(); ++i) {
      const std::string name = i == 2 ? "h" : "c";
      names.push_back(kinds[i] == '-' ? "" : name);
      if (kinds[i] == '-') continue;
      builder.input(name, DType::f32, {cat(d), size(kinds[i], name), cat(hidden)});
      values.push_back(some({d, batch, hidden}, static_cast<int>(i) + 5));
    }
    std::vector<std::string> out = {"y", "yh"};
    if (op == "LSTM") out.push_back("yc");
    onnx_pb::Node& n = builder.node(op, names, out);
    set_text(n, "direction", direction);
    set_int(n, "hidden_size", hidden);
    for (const std::string& o : out) builder.output(o);
  }

  ModelBuilder builder;
  std::vector<Array> values;
};

// Every pass keeps types: a loop whose carried values change theirs is refused by the verifier.
void expect_alike_after_passes(const Recurrent& mixed, const std::vector<Array>& expected,
                               const std::string& what) {
  const Imported read = mixed.builder.import();
  ASSERT_EQ(read.variants.size(), 1u) << what;
  const Function& f = read.variants[0].function;
  const Function lowered = simplify(expand(unify_sizes(f)));
  verify(f);
  verify(lowered);
  for (const Function* one : {&f, &lowered}) {
    const std::vector<Array> got = evaluate(*one, mixed.values);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].dims(), expected[i].dims()) << what;
      for (std::int64_t k = 0; k < got[i].count(); ++k)
        EXPECT_NEAR(got[i].real(k), expected[i].real(k), 1e-6) << what << " result " << i;
    }
  }
}

TEST(MixedSizes, OfTheOperandsOfRecurrentOperators) {
  const std::string all = "bo2-";
  int number = 0;
  for (const std::string op : {"LSTM", "GRU", "RNN"})
    for (const std::string direction : {"forward", "reverse", "bidirectional"})
      for (const char x : std::string("bo2"))
        for (const char lens : all)
          for (const char h : all)
            for (const char c : op == "LSTM" ? all : std::string("-")) {
              // Each mix of two kinds occurs with every operator; not each in each direction.
              if (op == "LSTM" && ++number % 5 != 0) continue;
              const std::string kinds =
                  op == "LSTM" ? std::string{x, lens, h, c} : std::string{x, lens, h};
              std::string fixed = kinds;
              for (char& k : fixed) k = k == '-' ? '-' : '2';
              const Recurrent known(op, direction, 3, fixed);
              expect_alike_after_passes(Recurrent(op, direction, 3, kinds),
                                        known.builder.run(known.values),
                                        cat(op, " ", direction, " ", kinds));
            }
}

TEST(MixedSizes, OfRecurrentOperatorsMustBeEqual) {
  for (const std::string op : {"LSTM", "GRU", "RNN"}) {
    const Recurrent known(op, "forward", 3, "2-3");
    expect_contains(known.builder.failure(), "input 'initial_h' is f32[1,3,3], expected [1,2,3]");
    Recurrent open(op, "forward", 3, "o-3");
    open.values[1] = some({1, 3, 3}, 7);
    try {
      open.builder.run(open.values);
      ADD_FAILURE() << "ran without an error";
    } catch (const UserError& e) {
      expect_contains(e.what(), "input 'X' is f32[s,x_batch,4], expected [s,3,4]");
    }
  }
}

// Copies of nodes keep their types without a look at them, so a loop can be made whose carried
// value changes its type.
TEST(MixedSizes, OfWhatALoopCarriesAreFound) {
  const Dim b = Dim::symbol("b", 1, 9);
  const auto loop_of = [&](const Type& carried, const Type& after) {
    Function f;
    const Values operands = {f.add_param(i64({}), "count"), f.add_param(carried, "x"),
                             f.add_param(after, "z")};
    auto go = std::make_shared<Function>(), body = std::make_shared<Function>();
    for (Function* one : {go.get(), body.get()})
      for (const Value& v : operands) one->add_param(v.type(), cat("p", one->params().size()));
    go->add_result(ops::lt(go->param(0), integer_like(go->param(0), 3)));
    body->add_result(body->param(0) + integer_like(body->param(0), 1));
    body->add_result(body->param(2));
    const std::vector<Type> types = {i64({}), carried};
    const Value made = f.graph().intern_typed(
        ops::while_loop, operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(body)}},
        types);
    f.add_result(made.result(1), "y");
    return f;
  };
  EXPECT_NO_THROW(verify_bodies(loop_of(f32({b, 3}), f32({b, 3}))));
  EXPECT_THROW(verify_bodies(loop_of(f32({2, 3}), f32({b, 3}))), InternalError);
  EXPECT_THROW(verify_bodies(loop_of(f32({2, 3}), f16({2, 3}))), InternalError);
}

// ==== broadcasts

struct Broadcast {
  Broadcast(const std::string& op, const std::vector<std::vector<std::string>>& shapes,
            DType first = DType::f32) {
    std::vector<std::string> names;
    for (const std::vector<std::string>& sizes : shapes) {
      names.push_back(cat("x", names.size()));
      builder.input(names.back(), names.size() == 1 ? first : DType::f32, sizes);
    }
    builder.node(op, names, {"y"});
    builder.output("y");
  }
  ModelBuilder builder{23};
};

void expect_broadcast(const std::string& op, const std::vector<std::vector<std::string>>& open,
                      const std::vector<std::vector<std::int64_t>>& dims) {
  std::vector<std::vector<std::string>> fixed;
  std::vector<Array> inputs;
  const bool chooses = op == "Where";
  for (const std::vector<std::int64_t>& d : dims) {
    fixed.emplace_back();
    for (std::int64_t n : d) fixed.back().push_back(cat(n));
    inputs.push_back(some(d, static_cast<int>(inputs.size())));
  }
  if (chooses) {
    Array flags = Array::zeros(DType::b1, dims[0]);
    for (std::int64_t i = 0; i < flags.count(); ++i) flags.set_integer(i, i % 2);
    inputs[0] = flags;
  }
  const DType first = chooses ? DType::b1 : DType::f32;
  const Imported read = Broadcast(op, open, first).builder.import();
  const ImportedVariant* v = variant_for(read, inputs);
  ASSERT_TRUE(v) << op;
  const std::vector<Array> known = Broadcast(op, fixed, first).builder.run(inputs);
  EXPECT_EQ(evaluate(v->function, inputs)[0], known[0]) << op << " " << Shape(dims_of(dims[0]));
}

TEST(MixedSizes, OfWhichOneMayBroadcast) {
  for (const char* op : {"Add", "Mul", "Max", "Pow", "Less"})
    for (const std::vector<std::vector<std::int64_t>>& dims :
         {std::vector<std::vector<std::int64_t>>{{2, 4}, {2, 4}},
          {{1, 4}, {2, 1}},
          {{1, 4}, {2, 4}},
          {{2, 4}, {2, 1}}})
      expect_broadcast(op, {{"n", "4"}, {"2", "m"}}, dims);
  for (const std::vector<std::vector<std::int64_t>>& dims :
       {std::vector<std::vector<std::int64_t>>{{3, 5}, {3, 5}},
        {{1, 5}, {3, 5}},
        {{3, 1}, {1, 5}},
        {{3, 1}, {3, 1}},
        {{3, 5}, {1, 1}}})
    expect_broadcast("Sub", {{"a", "b"}, {"c", "d"}}, dims);
  expect_broadcast("Where", {{"b", "1"}, {"c", "t"}, {"1", "u"}}, {{2, 1}, {1, 4}, {1, 4}});
  expect_broadcast("Where", {{"b", "1"}, {"c", "t"}, {"1", "u"}}, {{2, 1}, {2, 1}, {1, 4}});
  expect_broadcast("Sum", {{"b"}, {"c"}, {"d"}}, {{1}, {1}, {3}});
  expect_broadcast("MatMul", {{"b", "2", "3"}, {"c", "3", "2"}}, {{1, 2, 3}, {4, 3, 2}});
  expect_broadcast("MatMul", {{"b", "2", "3"}, {"c", "3", "2"}}, {{4, 2, 3}, {4, 3, 2}});
  expect_broadcast("PRelu", {{"n", "4"}, {"m"}}, {{2, 4}, {1}});
  expect_broadcast("Gemm", {{"n", "4"}, {"4", "5"}, {"m", "1"}}, {{3, 4}, {4, 5}, {1, 1}});
  using Sizes = std::vector<std::int64_t>;
  const Sizes queries = {2, 3, 4, 2}, keys = {2, 3, 5, 2};
  for (const Sizes& mask : {Sizes{2, 3, 4, 5}, {2, 1, 4, 5}, {1, 3, 4, 5}, {1, 1, 1, 5}})
    expect_broadcast(
        "Attention",
        {{"b", "h", "q", "2"}, {"b", "h", "5", "2"}, {"b", "h", "5", "2"}, {"c", "i", "r", "5"}},
        {queries, keys, keys, mask});
}

TEST(MixedSizes, OfABroadcastAreEqualOrOne) {
  const Imported read = Broadcast("Add", {{"n", "4"}, {"2", "m"}}).builder.import();
  EXPECT_EQ(read.variants.size(), 2u);
  EXPECT_TRUE(read.warnings.empty());
  const std::vector<Array> wrong = {counting({3, 4}), counting({2, 4})};
  const ImportedVariant* v = variant_for(read, wrong);
  ASSERT_TRUE(v);
  try {
    evaluate(v->function, wrong);
    ADD_FAILURE() << "ran without an error";
  } catch (const UserError& e) {
    expect_contains(e.what(), "sizes must be equal or 1");
  }
  // Sizes that the same size decides are equal, so there is nothing to read twice.
  ModelBuilder skip;
  skip.input("x", DType::f32, {"1", "2", "h", "w"});
  set_ints(skip.node("MaxPool", {"x"}, {"a"}), "kernel_shape", {2, 2});
  set_ints(skip.node("AveragePool", {"x"}, {"b"}), "kernel_shape", {2, 2});
  skip.node("Add", {"a", "b"}, {"y"});
  skip.output("y");
  EXPECT_EQ(skip.import().variants.size(), 1u);
}

// ==== parts and places

TEST(MixedSizes, EqualPartsOfAnOpenAxis) {
  const auto split = [](std::int64_t opset, int parts, std::int64_t size) {
    std::vector<std::string> names;
    for (int i = 0; i < parts; ++i) names.push_back(cat("y", i));
    ModelBuilder b(opset);
    b.input("x", DType::f32, {"n"});
    onnx_pb::Node& n = b.node("Split", {"x"}, names);
    if (opset >= 18) set_int(n, "num_outputs", parts);
    for (const std::string& name : names) b.output(name);
    std::vector<std::int64_t> out;
    for (const Array& a : b.run({counting({size})})) out.push_back(a.count());
    return out;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(split(18, 2, 7), (Sizes{4, 3}));
  EXPECT_EQ(split(18, 3, 7), (Sizes{3, 3, 1}));
  EXPECT_EQ(split(18, 4, 8), (Sizes{2, 2, 2, 2}));
  EXPECT_EQ(split(18, 18, 35), Sizes([] {
              Sizes all(18, 2);
              all.back() = 1;
              return all;
            }()));
  EXPECT_EQ(split(13, 2, 8), (Sizes{4, 4}));
  EXPECT_THROW(split(13, 2, 7), UserError);
}

TEST(MixedSizes, AnOpenNumberOfIndicesOfAPlace) {
  const auto gathered = [](std::int64_t depth, const std::string& size) {
    ModelBuilder b;
    b.input("x", DType::f32, {"2", "3", "4"});
    b.input("i", DType::i64, {"2", size});
    b.node("GatherND", {"x", "i"}, {"y"});
    b.output("y");
    Array at = Array::zeros(DType::i64, {2, depth});
    for (std::int64_t i = 0; i < at.count(); ++i) at.set_integer(i, i % 2);
    const std::vector<Array> inputs = {counting({2, 3, 4}), at};
    const Imported read = b.import();
    const ImportedVariant* v = variant_for(read, inputs);
    return v ? evaluate(v->function, inputs)[0] : Array();
  };
  for (const std::int64_t depth : {1, 2, 3})
    EXPECT_EQ(gathered(depth, "k"), gathered(depth, cat(depth))) << depth;
  const auto scattered = [](std::int64_t depth, const std::string& size) {
    ModelBuilder b;
    b.input("x", DType::f32, {"2", "3"});
    b.input("i", DType::i64, {"1", size});
    b.input("u", DType::f32,
            depth == 1 ? std::vector<std::string>{"1", "3"} : std::vector<std::string>{"1"});
    b.node("ScatterND", {"x", "i", "u"}, {"y"});
    b.output("y");
    return b.run({counting({2, 3}), Array::zeros(DType::i64, {1, depth}),
                  depth == 1 ? counting({1, 3}) : counting({1})})[0];
  };
  for (const std::int64_t depth : {1, 2})
    EXPECT_EQ(scattered(depth, "k"), scattered(depth, cat(depth))) << depth;
}

// ==== matrices

TEST(MixedSizes, OfMatrices) {
  const auto run = [](const std::string& op, const std::vector<std::string>& sizes,
                      const Array& x) {
    ModelBuilder b;
    b.input("x", DType::f32, sizes);
    onnx_pb::Node& n = b.node(op, {"x"}, {"y"});
    if (op == "Inverse") n.set_domain("com.microsoft");
    onnx_pb::Opset* o = b.model.add_opset_import();
    o->set_domain("com.microsoft");
    o->set_version(1);
    b.output("y");
    return b.run({x})[0];
  };
  Array x = some({2, 3, 3}, 4);
  for (std::int64_t i = 0; i < 18; i += 9) x.set_real(i + 1, 2), x.set_real(i + 3, -1);
  const std::vector<double> det = numbers_of(run("Det", {"2", "3", "3"}, x));
  for (const std::vector<std::string>& sizes :
       {std::vector<std::string>{"b", "s", "s"}, {"2", "s", "t"}, {"2", "3", "t"}}) {
    const std::vector<double> got = numbers_of(run("Det", sizes, x));
    ASSERT_EQ(got.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], det[i], 1e-6);
    const Array y = run("Inverse", sizes, x);
    for (std::int64_t m = 0; m < 2; ++m)
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 3; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < 3; ++k)
            sum += x.real(m * 9 + i * 3 + k) * y.real(m * 9 + k * 3 + j);
          EXPECT_NEAR(sum, i == j, 1e-5);
        }
  }
  // As ONNX Runtime: infinities and NaN.
  const std::vector<double> none =
      numbers_of(run("Inverse", {"2", "2"}, reals({2, 2}, {1, 2, 2, 4})));
  EXPECT_EQ(none, (std::vector<double>{-HUGE_VAL, HUGE_VAL, HUGE_VAL, -HUGE_VAL}));
  EXPECT_THROW(run("Det", {"2", "3"}, counting({2, 3})), UserError);
  EXPECT_THROW(run("Det", {"s", "t"}, counting({2, 3})), UserError);
}

}  // namespace
}  // namespace hone
