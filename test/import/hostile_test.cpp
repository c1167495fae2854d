// Random models, most of them invalid: reading one either works or reports what is wrong. Anything
// else (a failed assertion, another exception, a crash) is a bug in Hone.
#include <random>

#include "import/onnx/operators/list.h"
#include "support.h"

namespace hone {
namespace {

using Rng = std::mt19937;

template <class T>
const T& pick(const std::vector<T>& list, Rng& rng) {
  return list[rng() % list.size()];
}

std::vector<std::string> all_operators() {
  std::vector<std::string> out = {"If"};
  for (auto table : {onnx::elementwise_imports(), onnx::shape_imports(), onnx::network_imports()})
    for (const onnx::ImportEntry& e : table) out.emplace_back(e.op);
  return out;
}

std::int64_t any_integer(Rng& rng) {
  static const std::vector<std::int64_t> odd = {0,
                                                1,
                                                2,
                                                3,
                                                4,
                                                8,
                                                -1,
                                                -2,
                                                -3,
                                                7,
                                                1 << 20,
                                                std::int64_t{1} << 32,
                                                std::int64_t{1} << 62,
                                                std::numeric_limits<std::int64_t>::max(),
                                                std::numeric_limits<std::int64_t>::min()};
  return rng() % 4 == 0 ? pick(odd, rng) : static_cast<std::int64_t>(rng() % 5) - 1;
}

std::vector<std::int64_t> any_integers(Rng& rng) {
  std::vector<std::int64_t> out(rng() % 5);
  for (std::int64_t& n : out) n = any_integer(rng);
  return out;
}

// Values of all kinds to use as operands.
std::vector<std::string> add_values(ModelBuilder& b, Rng& rng) {
  std::vector<std::string> names;
  auto name = [&] { return names.emplace_back(cat("v", names.size())); };
  const std::vector<std::string> sizes = {"n", "m", "1", "2", "3",
                                          "4", "6", "0", "",  "1099511627776"};
  const std::vector<DType> dtypes = {DType::f32, DType::f32, DType::f32, DType::f16, DType::i64,
                                     DType::i32, DType::b1,  DType::u8,  DType::f64};
  for (int i = 0; i < 6; ++i) {
    std::vector<std::string> dims;
    for (int rank = static_cast<int>(rng() % 5); rank > 0; --rank)
      dims.push_back(sizes[rng() % (rng() % 8 ? 7 : sizes.size())]);
    b.input(name(), pick(dtypes, rng), dims);
  }
  // Shapes that image, matrix and sequence operators accept.
  b.input(name(), DType::f32, {"n", "4", "6", "6"});
  b.input(name(), DType::f32, {"2", "4", "3", "3"});
  b.input(name(), DType::f32, {"n", "4"});
  b.input(name(), DType::f32, {"4", "3"});
  b.input(name(), DType::f32, {"4"});
  b.constant(name(), Array::scalar_int(1, DType::b1));
  for (int i = 0; i < 4; ++i) b.ints(name(), any_integers(rng));
  b.constant(name(), Array::scalar_int(any_integer(rng), DType::i64));
  b.constant(name(), Array::scalar(1.5, DType::f32));
  b.node("Shape", {pick(names, rng)}, {name()});
  names.emplace_back("");
  return names;
}

void add_attribute(onnx_pb::Node& n, Rng& rng) {
  static const std::vector<std::string> names = {"axis",
                                                 "axes",
                                                 "perm",
                                                 "keepdims",
                                                 "kernel_shape",
                                                 "strides",
                                                 "dilations",
                                                 "pads",
                                                 "group",
                                                 "auto_pad",
                                                 "ceil_mode",
                                                 "count_include_pad",
                                                 "to",
                                                 "alpha",
                                                 "beta",
                                                 "epsilon",
                                                 "transA",
                                                 "value",
                                                 "value_int",
                                                 "value_ints",
                                                 "value_float",
                                                 "shape",
                                                 "allowzero",
                                                 "split",
                                                 "num_outputs",
                                                 "starts",
                                                 "ends",
                                                 "mode",
                                                 "direction",
                                                 "hidden_size",
                                                 "batch_dims",
                                                 "blocksize",
                                                 "upper",
                                                 "min",
                                                 "max",
                                                 "reduction",
                                                 "noop_with_empty_axes",
                                                 "start",
                                                 "end",
                                                 "num_groups",
                                                 "select_last_index",
                                                 "fmod",
                                                 "exclusive",
                                                 "broadcast",
                                                 "then_branch"};
  const std::string& name = pick(names, rng);
  switch (rng() % 6) {
    case 0:
    case 1:
      return set_int(n, name, any_integer(rng));
    case 2:
    case 3:
      return set_ints(n, name, any_integers(rng));
    case 4:
      return set_real(n, name, static_cast<float>(any_integer(rng)));
    default:
      return set_text(n, name, rng() % 2 ? "SAME_UPPER" : "reflect");
  }
}

void add_branches(onnx_pb::Node& n, const std::vector<std::string>& names, Rng& rng) {
  static const std::vector<std::string> ops = {"Relu", "Shape", "Squeeze", "Neg", "Add", "Nothing"};
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx_pb::Graph& g = set_graph(n, branch);
    ModelBuilder::add(g, pick(ops, rng), {pick(names, rng)}, {"inner"});
    g.add_output()->set_name(rng() % 8 ? "inner" : pick(names, rng));
  }
}

ModelBuilder random_model(const std::string& op, Rng& rng) {
  ModelBuilder b(rng() % 3 ? 21 : 1 + rng() % 27);
  std::vector<std::string> names = add_values(b, rng);
  std::vector<std::string> last = {pick(names, rng)};
  const std::vector<std::string> ops = {op, "Squeeze", "Reshape", "Add", "Slice", "Concat"};
  for (int i = 0, count = 1 + static_cast<int>(rng() % 2); i < count; ++i) {
    std::vector<std::string> inputs;
    for (unsigned k = rng() % (rng() % 4 ? 4 : 7); k > 0; --k)
      inputs.push_back(rng() % 3 ? pick(names, rng) : last.back());
    std::string out = cat("r", i);
    onnx_pb::Node& n = b.node(i == 0 ? op : pick(ops, rng), inputs, {out});
    for (unsigned k = rng() % 3 ? 0 : rng() % 4; k > 0; --k) add_attribute(n, rng);
    if (n.op_type() == "If") add_branches(n, names, rng);
    if (rng() % 8 == 0) n.add_output(cat("second", i));
    last.push_back(out);
    b.output(out);
  }
  return b;
}

TEST(Hostile, RandomModelsAreReadOrRefused) {
  const char* given = std::getenv("HONE_TEST_MODELS_PER_OPERATOR");
  const unsigned each = given ? static_cast<unsigned>(std::atoi(given)) : 40;
  int read = 0, refused = 0;
  unsigned first = 0;
  for (const std::string& op : all_operators()) {
    first += each;
    for (unsigned seed = first; seed < first + each; ++seed) {
      Rng rng(seed);
      SCOPED_TRACE(cat(op, " of seed ", seed));
      try {
        Imported m = random_model(op, rng).import();
        for (const ImportedVariant& v : m.variants) verify(v.function);
        ++read;
      } catch (const UserError&) {
        ++refused;
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  RecordProperty("read", read);
  RecordProperty("refused", refused);
  EXPECT_GT(read, refused / 100);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace hone
