// Small files that require unbounded memory or time.
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

// x is concatenated with itself, and the result with itself, ...
void doubling(ModelBuilder& b, int times, bool is_constant) {
  if (is_constant)
    b.constant("x0", reals({1024}, std::vector<float>(1024, 1)));
  else
    b.input("x0", DType::f32, {"1024"});
  for (int i = 0; i < times; ++i)
    set_int(b.node("Concat", {cat("x", i), cat("x", i)}, {cat("x", i + 1)}), "axis", 0);
  b.output(cat("x", times));
}

// The same, reduced to a single number at the end.
void doubling_to_one(ModelBuilder& b, int times) {
  doubling(b, times, true);
  set_int(b.node("ReduceSum", {cat("x", times)}, {"sum"}), "keepdims", 0);
  b.model.mutable_graph()->clear_output();
  b.output("sum");
}

// One node with a constant and a list of sizes.
Make sized(const std::string& op, std::vector<std::int64_t> sizes) {
  return model([=](ModelBuilder& b) {
    b.constant("x", reals({1}, {1}));
    b.ints("s", sizes);
    b.node(op,
           op == "ConstantOfShape" ? std::vector<std::string>{"s"}
                                   : std::vector<std::string>{"x", "s"},
           {"y"});
    b.output("y");
  });
}

Make resized(const std::vector<float>& scales) {
  return model([=](ModelBuilder& b) {
    b.input("x", DType::f32, {"1", "1", "4", "4"});
    b.constant("s", reals({static_cast<std::int64_t>(scales.size())}, scales));
    b.node("Resize", {"x", "", "s"}, {"y"});
    b.output("y");
  });
}

// A loop of `trips` iterations; -1 means no limit. With `by_data`, the condition depends on data.
void loop(ModelBuilder& b, std::int64_t trips, bool by_data, bool stacks = false) {
  b.input("x", DType::f32, {"2"});
  if (trips >= 0) b.constant("m", Array::scalar_int(trips, DType::i64));
  b.constant("on", Array::scalar_int(1, DType::b1));
  std::vector<std::string> results = {"y"};
  if (stacks) results.emplace_back("all");
  onnx_pb::Node& n = b.node("Loop", {trips >= 0 ? "m" : "", "on", "x"}, results);
  onnx_pb::Graph& g = set_graph(n, "body");
  ModelBuilder::fill(g.add_input(), "i", DType::i64, {});
  ModelBuilder::fill(g.add_input(), "c", DType::b1, {});
  ModelBuilder::fill(g.add_input(), "v", DType::f32, {"2"});
  if (by_data) {
    ModelBuilder::fill(g.add_initializer(), "zero", Array::scalar_int(0, DType::i64));
    ModelBuilder::add(g, "GreaterOrEqual", {"i", "zero"}, {"go"});
  } else {
    ModelBuilder::add(g, "Identity", {"c"}, {"go"});
  }
  ModelBuilder::add(g, "Sin", {"v"}, {"w"});
  ModelBuilder::add(g, "Identity", {"w"}, {"each"});
  g.add_output()->set_name("go");
  g.add_output()->set_name("w");
  if (stacks) g.add_output()->set_name("each");
  for (const std::string& r : results) b.output(r);
}

// Nested loops of 16 iterations each, which are unrolled: 16^levels.
void fill_nested_loop(onnx_pb::Graph& g, const std::string& x, int levels, int level = 0) {
  const std::string m = cat("m", level), on = cat("on", level), out = cat("o", level);
  ModelBuilder::fill(g.add_initializer(), m, Array::scalar_int(16, DType::i64));
  ModelBuilder::fill(g.add_initializer(), on, Array::scalar_int(1, DType::b1));
  onnx_pb::Node& n = ModelBuilder::add(g, "Loop", {m, on, x}, {out});
  onnx_pb::Graph& body = set_graph(n, "body");
  const std::string i = cat("i", level), c = cat("c", level), v = cat("v", level);
  ModelBuilder::fill(body.add_input(), i, DType::i64, {});
  ModelBuilder::fill(body.add_input(), c, DType::b1, {});
  ModelBuilder::fill(body.add_input(), v, DType::f32, {"2"});
  ModelBuilder::add(body, "Identity", {c}, {cat("go", level)});
  if (level + 1 < levels)
    fill_nested_loop(body, v, levels, level + 1);
  else
    ModelBuilder::add(body, "Sin", {v}, {cat("o", level + 1)});
  body.add_output()->set_name(cat("go", level));
  body.add_output()->set_name(cat("o", level + 1));
}

void nested_loops(ModelBuilder& b, int levels) {
  b.input("x", DType::f32, {"2"});
  fill_nested_loop(*b.model.mutable_graph(), "x", levels);
  b.output("o0");
}

// Each step makes a sequence that holds the concatenation of the previous one twice.
void sequence_bomb(ModelBuilder& b, int turns) {
  b.input("x", DType::f32, {"2"});
  b.node("SequenceConstruct", {"x", "x"}, {"s0"});
  for (int i = 0; i < turns; ++i) {
    set_int(b.node("ConcatFromSequence", {cat("s", i)}, {cat("c", i)}), "axis", 0);
    b.node("SequenceConstruct", {cat("c", i), cat("c", i)}, {cat("s", i + 1)});
  }
  b.node("SequenceLength", {cat("s", turns)}, {"y"});
  b.output("y");
}

// A product of sizes grows with each node: (n+1)(n+2)...
void growing_sizes(ModelBuilder& b, int times) {
  b.input("x", DType::f32, {"n"});
  std::string last = "x";
  for (int i = 0; i < times; ++i) {
    b.input(cat("z", i), DType::f32, {cat("n", i), "1"});
    b.node("Add", {last, cat("z", i)}, {cat("a", i)});
    b.ints(cat("s", i), {-1});
    b.node("Reshape", {cat("a", i), cat("s", i)}, {cat("r", i)});
    last = cat("r", i);
  }
  b.output(last);
}

// Size y = y + y, repeated: its expression must not double.
void doubling_size(ModelBuilder& b, int times) {
  b.input("x", DType::f32, {"n"});
  b.node("Shape", {"x"}, {"s0"});
  for (int i = 0; i < times; ++i) b.node("Add", {cat("s", i), cat("s", i)}, {cat("s", i + 1)});
  b.node("ConstantOfShape", {cat("s", times)}, {"y"});
  b.output("y");
}

// Sizes multiplied by themselves: n^(2^times).
void squaring_size(ModelBuilder& b, int times) {
  b.input("x", DType::f32, {"n"});
  b.input("x2", DType::f32, {"m"});
  b.node("Shape", {"x"}, {"a"});
  b.node("Shape", {"x2"}, {"b"});
  b.node("Add", {"a", "b"}, {"s0"});
  for (int i = 0; i < times; ++i) b.node("Mul", {cat("s", i), cat("s", i)}, {cat("s", i + 1)});
  b.node("ConstantOfShape", {cat("s", times)}, {"y"});
  b.output("y");
}

}  // namespace

Cases size_cases() {
  return {
      {"concat_doubling_40", model([](ModelBuilder& b) { doubling(b, 40, false); }), ran,
       "bytes, expected at most 1099511627776"},
      {"concat_doubling_40_constant", model([](ModelBuilder& b) { doubling(b, 40, true); }), ran,
       "bytes, expected at most 1099511627776"},
      {"concat_doubling_40_to_one", model([](ModelBuilder& b) { doubling_to_one(b, 40); }), ran,
       "bytes, expected at most 1099511627776"},
      {"concat_doubling_100", model([](ModelBuilder& b) { doubling(b, 100, true); }), imported,
       "expected at most 1099511627776"},
      {"constant_of_shape_2_40", sized("ConstantOfShape", {big}), ran,
       "4398046511104 bytes, expected at most 1099511627776"},
      {"constant_of_shape_2_62", sized("ConstantOfShape", {huge}), imported,
       "does not fit in 64 bits"},
      {"constant_of_shape_negative", sized("ConstantOfShape", {-1}), imported, "refused: "},
      {"constant_of_shape_product", sized("ConstantOfShape", {big, big}), imported,
       "does not fit in 64 bits"},
      {"constant_of_shape_100000_axes",
       sized("ConstantOfShape", std::vector<std::int64_t>(100'000, 1)), imported, "read: "},
      {"expand_2_40", sized("Expand", {big}), ran,
       "4398046511104 bytes, expected at most 1099511627776"},
      {"expand_2_62", sized("Expand", {huge}), imported, "does not fit in 64 bits"},
      {"expand_negative", sized("Expand", {-3}), imported, "refused: "},
      {"tile_2_40", sized("Tile", {big}), ran, "refused: "},
      {"tile_most", sized("Tile", {most}), imported, "refused: "},
      {"tile_negative", sized("Tile", {-1}), imported, "refused: "},
      {"reshape_2_40", sized("Reshape", {big}), imported, "refused: "},
      {"reshape_wraps_to_1", sized("Reshape", {std::int64_t{1} << 32, std::int64_t{1} << 32, 1}),
       imported, "refused: "},
      {"reshape_two_open", sized("Reshape", {-1, -1}), imported, "refused: "},
      {"reshape_lowest", sized("Reshape", {std::numeric_limits<std::int64_t>::min()}), imported,
       "refused: "},
      {"pad_2_40", sized("Pad", {big, big}), ran, "refused: "},
      {"pad_most", sized("Pad", {most, most}), imported, "refused: "},
      {"pad_negative_past_start", sized("Pad", {-5, 0}), imported, "refused: "},
      {"range_2_40", model([](ModelBuilder& b) {
         b.constant("a", Array::scalar_int(0, DType::i64));
         b.constant("n", Array::scalar_int(big, DType::i64));
         b.constant("d", Array::scalar_int(1, DType::i64));
         b.node("Range", {"a", "n", "d"}, {"y"});
         b.output("y");
       }),
       ran, "refused: "},
      {"range_step_0", model([](ModelBuilder& b) {
         b.constant("a", Array::scalar_int(0, DType::i64));
         b.constant("n", Array::scalar_int(5, DType::i64));
         b.constant("d", Array::scalar_int(0, DType::i64));
         b.node("Range", {"a", "n", "d"}, {"y"});
         b.output("y");
       }),
       imported, "refused: "},
      {"range_of_nan", model([](ModelBuilder& b) {
         b.constant("a", Array::scalar(0, DType::f32));
         b.constant("n", Array::scalar(std::numeric_limits<double>::quiet_NaN(), DType::f32));
         b.constant("d", Array::scalar(1, DType::f32));
         b.node("Range", {"a", "n", "d"}, {"y"});
         b.output("y");
       }),
       imported, "refused: "},
      {"range_of_infinity", model([](ModelBuilder& b) {
         b.constant("a", Array::scalar(0, DType::f32));
         b.constant("n", Array::scalar(std::numeric_limits<double>::infinity(), DType::f32));
         b.constant("d", Array::scalar(1e-30, DType::f32));
         b.node("Range", {"a", "n", "d"}, {"y"});
         b.output("y");
       }),
       imported, "refused: "},
      {"resize_nan", resized({1, 1, std::numeric_limits<float>::quiet_NaN(), 2}), imported,
       "refused: "},
      {"resize_infinity", resized({1, 1, std::numeric_limits<float>::infinity(), 2}), imported,
       "refused: "},
      {"resize_0", resized({1, 1, 0, 2}), imported, "refused: "},
      {"resize_negative", resized({1, 1, -2, 2}), imported, "refused: "},
      {"resize_1e30", resized({1, 1, 1e30F, 1e30F}), imported, "refused: "},
      {"resize_2_30", resized({1, 1, 1 << 18, 1 << 18}), ran, "refused: "},
      {"resize_wrong_count", resized({1, 2}), imported, "refused: "},
      {"loop_endless", model([](ModelBuilder& b) { loop(b, -1, true); }), ran,
       "cancelled: run: its deadline passed"},
      {"loop_endless_unconditional", model([](ModelBuilder& b) { loop(b, -1, false); }), ran,
       "cancelled: run: its deadline passed"},
      {"loop_most_turns", model([](ModelBuilder& b) { loop(b, most, false); }), ran,
       "cancelled: run: its deadline passed"},
      {"loop_2_40_turns_stacked", model([](ModelBuilder& b) { loop(b, big, false, true); }), ran,
       "expected at most 1099511627776"},
      {"loop_negative_turns", model([](ModelBuilder& b) { loop(b, -2, false); }), imported,
       "read: "},
      {"loops_nested_4", model([](ModelBuilder& b) { nested_loops(b, 4); }), imported, "read: "},
      {"loops_nested_12", model([](ModelBuilder& b) { nested_loops(b, 12); }), imported, "read: "},
      {"sequences_doubling_40", model([](ModelBuilder& b) { sequence_bomb(b, 40); }), ran,
       "expected at most 1099511627776"},
      {"sizes_doubling_60", model([](ModelBuilder& b) { doubling_size(b, 60); }), imported,
       "read: "},
      {"sizes_doubling_30_run", model([](ModelBuilder& b) { doubling_size(b, 30); }), ran,
       "refused: "},
      {"sizes_squared_12", model([](ModelBuilder& b) { squaring_size(b, 12); }), imported,
       "read: 1 variants"},
      {"sizes_growing_30", model([](ModelBuilder& b) { growing_sizes(b, 30); }), imported,
       "read: "},
  };
}

}  // namespace hone::hostile
