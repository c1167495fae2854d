// Operators with data-dependent result sizes, compared with plain loops. Each model is imported
// once and run by the reference with different data.
#include <algorithm>
#include <functional>

#include "support.h"

namespace hone {
namespace {

using Numbers = std::vector<std::int64_t>;

Array floats(const std::vector<float>& v) {
  return reals({static_cast<std::int64_t>(v.size())}, v);
}
Array list(const Numbers& numbers) { return Array::from_ints(numbers); }
Array whole(std::int64_t n) { return Array::scalar_int(n, DType::i64); }

Numbers integers_of(const Array& a) {
  Numbers out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.integer(i));
  return out;
}

std::string refusal(const Function& f, const std::vector<Array>& inputs) {
  try {
    evaluate(f, inputs);
  } catch (const UserError& e) {
    return e.what();
  }
  return "ran without an error";
}

// A model of one node, imported once.
struct Node {
  explicit Node(const std::string& op, std::int64_t opset = 21) : builder(opset), op(op) {}

  Node& in(DType dtype, const std::vector<std::string>& sizes) {
    names.push_back(cat("x", names.size()));
    builder.input(names.back(), dtype, sizes);
    return *this;
  }
  Function function(int outputs = 1, const std::function<void(onnx_pb::Node&)>& set = nullptr) {
    std::vector<std::string> out;
    for (int i = 0; i < outputs; ++i) out.push_back(cat("y", i));
    onnx_pb::Node& n = builder.node(op, names, out);
    if (set) set(n);
    for (const std::string& o : out) builder.output(o);
    return builder.import().variants.at(0).function;
  }

  ModelBuilder builder;
  std::string op;
  std::vector<std::string> names;
};

TEST(Dynamic, NonZeroGivesOnePlaceForEachAxis) {
  const Function f = Node("NonZero").in(DType::f32, {"n", "2"}).function();
  for (const std::vector<float>& x :
       {std::vector<float>{1, 0, 0, 2, 3, 0}, {0, 0, 0, 0}, {5, 6}, {0, 0, 0, 0, 0, 0, 0, 1}}) {
    Numbers rows, columns;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != 0) rows.push_back(std::int64_t(i / 2)), columns.push_back(std::int64_t(i % 2));
    const auto n = static_cast<std::int64_t>(rows.size());
    rows.insert(rows.end(), columns.begin(), columns.end());
    const Array y = evaluate(f, std::vector{reals({std::int64_t(x.size() / 2), 2}, x)}).at(0);
    EXPECT_EQ(y.dims(), (Numbers{2, n}));
    EXPECT_EQ(integers_of(y), rows);
  }
  const Function scalar = Node("NonZero").in(DType::f32, {}).function();
  EXPECT_EQ(evaluate(scalar, std::vector{reals({}, {3})}).at(0).dims(), (Numbers{0, 1}));
}

TEST(Dynamic, CompressTakesWhatHolds) {
  const Function f = Node("Compress")
                         .in(DType::f32, {"3", "2"})
                         .in(DType::b1, {"n"})
                         .function(1, [](onnx_pb::Node& n) { set_int(n, "axis", -2); });
  const Array x = reals({3, 2}, {1, 2, 3, 4, 5, 6});
  auto choose = [&](const std::vector<int>& flags) {
    Array c = Array::zeros(DType::b1, {static_cast<std::int64_t>(flags.size())});
    for (std::size_t i = 0; i < flags.size(); ++i)
      c.set_integer(static_cast<std::int64_t>(i), flags[i]);
    return evaluate(f, std::vector{x, c}).at(0);
  };
  EXPECT_EQ(numbers_of(choose({0, 1, 1})), (std::vector<double>{3, 4, 5, 6}));
  EXPECT_EQ(numbers_of(choose({1})), (std::vector<double>{1, 2}));
  EXPECT_EQ(choose({0, 0, 0}).dims(), (Numbers{0, 2}));
}

TEST(Dynamic, UniqueNumbersItsGroups) {
  for (bool sorted : {true, false}) {
    const Function f = Node("Unique").in(DType::f32, {"n"}).function(4, [&](onnx_pb::Node& n) {
      set_int(n, "sorted", sorted);
    });
    for (const std::vector<float>& x :
         {std::vector<float>{2, 1, 1, 3, 4, 3}, {7}, {5, 5, 5}, {4, 3, 2, 1}}) {
      std::vector<float> values;
      Numbers first, of, counts;
      std::vector<float> order = x;
      if (sorted) std::sort(order.begin(), order.end());
      for (float v : order)
        if (std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v);
      for (float v : values) {
        first.push_back(std::find(x.begin(), x.end(), v) - x.begin());
        counts.push_back(std::count(x.begin(), x.end(), v));
      }
      for (float v : x) of.push_back(std::find(values.begin(), values.end(), v) - values.begin());
      const std::vector<Array> y = evaluate(f, std::vector{floats(x)});
      EXPECT_EQ(numbers_of(y[0]), std::vector<double>(values.begin(), values.end()));
      EXPECT_EQ(integers_of(y[1]), first);
      EXPECT_EQ(integers_of(y[2]), of);
      EXPECT_EQ(integers_of(y[3]), counts);
    }
  }
}

TEST(Dynamic, UniqueComparesSlices) {
  const Function f = Node("Unique").in(DType::i64, {"n", "2"}).function(2, [](onnx_pb::Node& n) {
    set_int(n, "axis", 0);
  });
  const Array x = Array::of<std::int64_t>(DType::i64, {4, 2}, Numbers{2, 1, 0, 9, 2, 0, 0, 9});
  const std::vector<Array> y = evaluate(f, std::vector{x});
  EXPECT_EQ(integers_of(y[0]), (Numbers{0, 9, 2, 0, 2, 1}));
  EXPECT_EQ(integers_of(y[1]), (Numbers{1, 2, 0}));
}

TEST(Dynamic, RangeCountsInTheRun) {
  const Function f =
      Node("Range").in(DType::i64, {}).in(DType::i64, {}).in(DType::i64, {}).function();
  auto range = [&](std::int64_t a, std::int64_t b, std::int64_t step) {
    return integers_of(evaluate(f, std::vector{whole(a), whole(b), whole(step)}).at(0));
  };
  EXPECT_EQ(range(1, 8, 3), (Numbers{1, 4, 7}));
  EXPECT_EQ(range(10, 4, -2), (Numbers{10, 8, 6}));
  EXPECT_EQ(range(4, 4, 1), Numbers{});
  EXPECT_EQ(range(4, 0, 1), Numbers{});
  for (auto [end, step] : {std::pair(5, 0), {1 << 21, 1}})
    EXPECT_NE(refusal(f, {whole(0), whole(end), whole(step)}).find("number of elements"),
              std::string::npos);
  const Function g =
      Node("Range").in(DType::f32, {}).in(DType::f32, {}).in(DType::f32, {}).function();
  EXPECT_EQ(
      numbers_of(evaluate(g, std::vector{reals({}, {1}), reals({}, {2}), reals({}, {0.25})})[0]),
      (std::vector<double>{1, 1.25, 1.5, 1.75}));
  const Array nan = reals({}, {std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(refusal(g, {reals({}, {0}), nan, reals({}, {1})}),
            "node 0 'Range_0' (Range): the number of elements (-1: delta is 0 or an input is NaN) "
            "is -1, expected 0 to "
            "1048576; check the values of the inputs");
}

TEST(Dynamic, SliceTakesBoundsOfTheRun) {
  for (std::int64_t step : {1, 2, -1, -3}) {
    Node node("Slice");
    node.in(DType::f32, {"n"}).in(DType::i64, {"1"}).in(DType::i64, {"1"});
    node.builder.ints("axes", {0});
    node.builder.ints("steps", {step});
    node.names.insert(node.names.end(), {"axes", "steps"});
    const Function f = node.function();
    const Array x = floats({0, 1, 2, 3, 4, 5, 6});
    for (std::int64_t start : {-9, -3, 0, 2, 6, 7, 100})
      for (std::int64_t end : {-100, -4, 0, 3, 7, 100}) {
        const std::int64_t n = 7, last = step > 0 ? n : n - 1, least = step > 0 ? 0 : -1;
        auto bound = [&](std::int64_t at) { return std::clamp(at < 0 ? at + n : at, least, last); };
        std::vector<double> expected;
        for (std::int64_t i = std::max<std::int64_t>(bound(start), 0);
             step > 0 ? i < bound(end) : i > bound(end); i += step)
          expected.push_back(static_cast<double>(i));
        EXPECT_EQ(numbers_of(evaluate(f, std::vector{x, list({start}), list({end})}).at(0)),
                  expected)
            << start << " to " << end << " by " << step;
      }
  }
}

TEST(Dynamic, ShapesOfTheRun) {
  const Function reshape = Node("Reshape").in(DType::f32, {"6"}).in(DType::i64, {"2"}).function();
  const Array six = floats({1, 2, 3, 4, 5, 6});
  for (const Numbers& shape : {Numbers{2, 3}, {-1, 2}, {0, 1}, {1, -1}})
    EXPECT_EQ(evaluate(reshape, std::vector{six, list(shape)}).at(0).count(), 6);
  EXPECT_NE(refusal(reshape, {six, list({4, 2})}), "ran without an error");
  EXPECT_NE(refusal(reshape, {six, list({-2, -3})}), "ran without an error");
  const Function filled = Node("ConstantOfShape").in(DType::i64, {"2"}).function();
  EXPECT_EQ(evaluate(filled, std::vector{list({3, 4})}).at(0).dims(), (Numbers{3, 4}));
  EXPECT_NE(refusal(filled, {list({3, std::int64_t{1} << 40})}).find("expected 0 to"),
            std::string::npos);
  EXPECT_NE(refusal(filled, {list({-3, 4})}).find("expected 0 to"), std::string::npos);
  const Function top = Node("TopK").in(DType::f32, {"n"}).in(DType::i64, {"1"}).function(2);
  EXPECT_EQ(numbers_of(evaluate(top, std::vector{six, list({2})}).at(0)),
            (std::vector<double>{6, 5}));
  EXPECT_NE(refusal(top, {six, list({7})}), "ran without an error");
}

TEST(Dynamic, PadsAndSizesOfTheRun) {
  const Array four = floats({1, 2, 3, 4});
  const auto given = [&](const Function& f, const Numbers& list_of) {
    return numbers_of(evaluate(f, std::vector{four, list(list_of)}).at(0));
  };
  using Reals = std::vector<double>;
  const Function pad = Node("Pad").in(DType::f32, {"4"}).in(DType::i64, {"2"}).function();
  EXPECT_EQ(given(pad, {1, 2}), (Reals{0, 1, 2, 3, 4, 0, 0}));
  EXPECT_EQ(given(pad, {0, 0}), (Reals{1, 2, 3, 4}));
  EXPECT_EQ(given(pad, {-1, 0}), (Reals{2, 3, 4}));
  EXPECT_NE(refusal(pad, {four, list({-3, -2})}).find("expected 0 to"), std::string::npos);
  const Function crop =
      Node("CenterCropPad").in(DType::f32, {"4"}).in(DType::i64, {"1"}).function();
  EXPECT_EQ(given(crop, {2}), (Reals{2, 3}));
  EXPECT_EQ(given(crop, {7}), (Reals{0, 1, 2, 3, 4, 0, 0}));
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.input("sizes", DType::i64, {"1"});
  set_text(b.node("Resize", {"x", "", "", "sizes"}, {"y"}), "coordinate_transformation_mode",
           "asymmetric");
  b.output("y");
  const Function resize = std::move(b.import().variants.at(0).function);
  EXPECT_EQ(given(resize, {8}), (Reals{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(given(resize, {2}), (Reals{1, 3}));
  EXPECT_EQ(given(resize, {4}), (Reals{1, 2, 3, 4}));
}

// Sizes that depend on sizes: the elements that NonZero finds are gathered, and their number is
// used as an operand.
TEST(Dynamic, SizesGoThroughOtherNodes) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n"});
  b.node("NonZero", {"x"}, {"places"});
  b.node("Shape", {"places"}, {"shape"});
  b.ints("one", {1});
  b.ints("two", {2});
  b.ints("zero", {0});
  b.node("Slice", {"shape", "one", "two"}, {"count"});
  b.node("Expand", {"count", "count"}, {"counts"});
  b.ints("minus", {-1});
  b.node("Reshape", {"places", "minus"}, {"flat"});
  b.node("Gather", {"x", "flat"}, {"found"});
  b.node("ReduceSum", {"found", "zero"}, {"sum"});
  b.node("NonZero", {"found"}, {"again"});
  for (const char* name : {"counts", "found", "sum", "again"}) b.output(name);
  const Function f = b.import().variants.at(0).function;
  const std::vector<Array> y = evaluate(f, std::vector{floats({0, 4, 0, 5, 6})});
  EXPECT_EQ(integers_of(y[0]), (Numbers{3, 3, 3}));
  EXPECT_EQ(numbers_of(y[1]), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(numbers_of(y[2]), std::vector<double>{15});
  EXPECT_EQ(integers_of(y[3]), (Numbers{0, 1, 2}));
}

// Plain non-maximum suppression: take the best box, drop those that overlap it, repeat.
Numbers suppressed(const std::vector<float>& boxes, const std::vector<float>& scores,
                   std::int64_t most, double overlap, double least) {
  const std::size_t n = scores.size();
  std::vector<std::size_t> order(n), kept;
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  auto shared = [&](std::size_t a, std::size_t b, std::size_t axis) {
    return std::max(0.0, double(std::min(boxes[4 * a + axis + 2], boxes[4 * b + axis + 2])) -
                             std::max(boxes[4 * a + axis], boxes[4 * b + axis]));
  };
  auto area = [&](std::size_t a) {
    return double(boxes[4 * a + 2] - boxes[4 * a]) * (boxes[4 * a + 3] - boxes[4 * a + 1]);
  };
  Numbers out;
  for (std::size_t i : order) {
    if (!(scores[i] > least) || static_cast<std::int64_t>(kept.size()) >= most) continue;
    const bool good = std::none_of(kept.begin(), kept.end(), [&](std::size_t k) {
      const double both = shared(i, k, 0) * shared(i, k, 1);
      return both > overlap * (area(i) + area(k) - both);
    });
    if (!good) continue;
    kept.push_back(i);
    out.insert(out.end(), {0, 0, static_cast<std::int64_t>(i)});
  }
  return out;
}

TEST(Dynamic, NonMaxSuppressionKeepsTheBest) {
  const Function f = Node("NonMaxSuppression")
                         .in(DType::f32, {"1", "n", "4"})
                         .in(DType::f32, {"1", "1", "n"})
                         .in(DType::i64, {"1"})
                         .in(DType::f32, {"1"})
                         .in(DType::f32, {"1"})
                         .function();
  std::srand(3);
  for (std::int64_t n : {1, 6, 30}) {
    std::vector<float> boxes, scores;
    for (std::int64_t i = 0; i < n; ++i) {
      const float y = float(std::rand() % 20), x = float(std::rand() % 20);
      boxes.insert(boxes.end(),
                   {y, x, y + 3 + float(std::rand() % 9), x + 3 + float(std::rand() % 9)});
      scores.push_back(float(std::rand() % 100) / 100);
    }
    for (std::int64_t most : {0, 2, 100})
      for (float overlap : {0.1f, 0.5f}) {
        const Array y = evaluate(f, std::vector{reals({1, n, 4}, boxes), reals({1, 1, n}, scores),
                                                list({most}), floats({overlap}), floats({0.3f})})
                            .at(0);
        EXPECT_EQ(integers_of(y), suppressed(boxes, scores, most, overlap, 0.3f));
      }
  }
}

// x doubles until it passes the limit, and each value is an output.
TEST(Dynamic, LoopsStackWhatDataLetsThemTurn) {
  ModelBuilder b;
  b.input("x", DType::f32, {});
  b.input("limit", DType::f32, {});
  b.constant("on", Array::scalar_int(1, DType::b1));
  b.constant("most", whole(12));
  onnx_pb::Node& loop = b.node("Loop", {"most", "on", "x"}, {"last", "all"});
  onnx_pb::Graph& g = set_graph(loop, "body");
  ModelBuilder::fill(g.add_input(), "turn", DType::i64, {});
  ModelBuilder::fill(g.add_input(), "go", DType::b1, {});
  ModelBuilder::fill(g.add_input(), "v", DType::f32, {});
  ModelBuilder::add(g, "Add", {"v", "v"}, {"next"});
  ModelBuilder::add(g, "Less", {"next", "limit"}, {"goes_on"});
  for (const char* name : {"goes_on", "next", "next"}) g.add_output()->set_name(name);
  b.output("last");
  b.output("all");
  const Function f = b.import().variants.at(0).function;
  auto run = [&](float x, float limit) {
    return numbers_of(evaluate(f, std::vector{reals({}, {x}), reals({}, {limit})}).at(1));
  };
  EXPECT_EQ(run(1, 10), (std::vector<double>{2, 4, 8, 16}));
  EXPECT_EQ(run(3, 1), (std::vector<double>{6}));
  EXPECT_EQ(run(1, 1e9).size(), 12u);
}

TEST(Dynamic, GramsAreCounted) {
  Node node("TfIdfVectorizer", 9);
  const Function f = node.in(DType::i64, {"n"}).function(1, [](onnx_pb::Node& n) {
    set_text(n, "mode", "TF");
    set_int(n, "min_gram_length", 1);
    set_int(n, "max_gram_length", 2);
    set_int(n, "max_skip_count", 1);
    set_ints(n, "ngram_counts", {0, 2});
    set_ints(n, "ngram_indexes", {1, 0, 2});
    set_ints(n, "pool_int64s", {5, 7, 5, 7});
  });
  // 5 occurs twice and 7 once; "5 7" occurs once adjacent and once with one element between.
  EXPECT_EQ(numbers_of(evaluate(f, std::vector{list({5, 5, 7})}).at(0)),
            (std::vector<double>{1, 2, 2}));
  EXPECT_EQ(numbers_of(evaluate(f, std::vector{list({7})}).at(0)), (std::vector<double>{1, 0, 0}));
}

}  // namespace
}  // namespace hone
