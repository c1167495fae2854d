// Indices out of range are refused with the node, the number and the range, never clamped.
#include "support.h"

namespace hone {
namespace {

struct Indexing {
  const char* op;
  std::vector<std::int64_t> x, index, updates;  // sizes; if updates is empty: a gather
  std::int64_t size;                            // of the indexed axis
};

const Indexing all[] = {
    {"Gather", {5, 3}, {2, 2}, {}, 5},        {"GatherElements", {5, 3}, {4, 3}, {}, 5},
    {"GatherND", {5, 3}, {4, 1}, {}, 5},      {"ScatterElements", {5, 3}, {2, 3}, {2, 3}, 5},
    {"ScatterND", {5, 3}, {2, 1}, {2, 3}, 5},
};

Array indices(const Indexing& i, std::int64_t last) {
  Array a = Array::zeros(DType::i64, i.index);
  for (std::int64_t k = 0; k < a.count(); ++k) a.set_integer(k, k % 2);
  a.set_integer(a.count() - 1, last);
  return a;
}

std::vector<std::string> sizes_as_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> out;
  for (std::int64_t n : sizes) out.push_back(cat(n));
  return out;
}

// The message of a run; "fine" if it succeeds.
std::string said(const Indexing& i, std::int64_t last, bool is_constant) {
  ModelBuilder b;
  std::vector<Array> inputs = {Array::zeros(DType::f32, i.x)};
  std::vector<std::string> names = {"x", "index"};
  b.input("x", DType::f32, sizes_as_text(i.x));
  if (is_constant) {
    b.constant("index", indices(i, last));
  } else {
    b.input("index", DType::i64, sizes_as_text(i.index));
    inputs.push_back(indices(i, last));
  }
  if (!i.updates.empty()) {
    names.push_back("updates");
    b.input("updates", DType::f32, sizes_as_text(i.updates));
    inputs.push_back(Array::zeros(DType::f32, i.updates));
  }
  b.node(i.op, names, {"y"});
  b.output("y");
  try {
    b.run(inputs);
  } catch (const UserError& e) {
    return e.what();
  }
  return "fine";
}

TEST(Indices, OutOfRangeAreRefusedWithTheNodeTheNumberAndTheRange) {
  for (const Indexing& i : all)
    for (bool is_constant : {false, true}) {
      SCOPED_TRACE(cat(i.op, is_constant ? " of a constant" : ""));
      for (std::int64_t fine : {i.size - 1, -i.size}) EXPECT_EQ(said(i, fine, is_constant), "fine");
      for (std::int64_t bad : {i.size, -i.size - 1, std::int64_t{1} << 40}) {
        const std::string message = said(i, bad, is_constant);
        expect_contains(message, cat("node 0 '", i.op, "_0' (", i.op, "): index is ", bad,
                                     ", expected -5 to 4"));
      }
    }
}

TEST(Indices, OneHotGivesOffForThem) {
  ModelBuilder b;
  b.input("index", DType::i64, {"3"});
  b.constant("depth", Array::scalar_int(4, DType::i64));
  b.constant("values", Array::of<float>(DType::f32, {2}, std::vector<float>{0, 1}));
  b.node("OneHot", {"index", "depth", "values"}, {"y"});
  b.output("y");
  const std::vector<std::int64_t> index = {1, 9, -9};
  const Array y = b.run({Array::from_ints(index)}).at(0);
  for (std::int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(y.real(i), i == 1 ? 1 : 0) << i;
}

}  // namespace
}  // namespace hone
