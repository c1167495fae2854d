// Invalid operands and attributes are refused by name, with the actual values.
#include <gtest/gtest.h>

#include "ir/function.h"
#include "ops/common.h"

namespace hone {
namespace {

// The message of building the op on parameters of these types; "" if nothing is thrown.
std::string refusal(const Op& op, const std::vector<Type>& types, Attrs attrs = {}) {
  Function f;
  Values operands;
  for (const Type& t : types) operands.push_back(f.add_param(t, "x"));
  try {
    f.graph().intern(op, operands, std::move(attrs));
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

struct Wrong {
  const Op& op;
  std::vector<Type> types;
  Attrs attrs;
  std::string message;  // a part of it
};

Attrs axes(Dims list) { return {{"axes", std::move(list)}}; }
Attrs axis(int a) { return {{"axis", a}}; }
Attrs shape(Dims list) { return {{"shape", std::move(list)}}; }

Attrs window(Dims size, Dims strides) {
  Dims one(size.size(), 1), none(size.size(), 0);
  return {{"kind", std::string("max")}, {"window", size},   {"strides", strides},
          {"dilations", one},           {"pads_low", none}, {"pads_high", none}};
}

Attrs conv(int groups, int channels_last) {
  return {{"strides", Dims{1}},   {"dilations", Dims{1}}, {"pads_low", Dims{0}},
          {"pads_high", Dims{0}}, {"groups", groups},     {"channels_last", channels_last}};
}

Attrs cut(Dims starts, Dims sizes, Dims steps) {
  return {{"starts", starts}, {"sizes", sizes}, {"steps", steps}};
}

std::vector<Wrong> elementwise_mistakes() {
  return {
      {ops::add, {f32({2})}, {}, "add: takes 2 operands, got 1 (f32[2])"},
      {ops::add, {f32({2}), f16({2})}, {}, "add: operands are f32[2] and f16[2]; cast one of them"},
      {ops::add,
       {f32({2}), f32({3})},
       {},
       "sizes at axis 0 differ: 2 against 3 in (f32[2], f32[3])"},
      {ops::add, {f32({2}), f32({1, 2})}, {}, "broadcast one of them explicitly"},
      {ops::mul, {b1({2}), b1({2})}, {}, "mul: operand 0 is bool[2], expected a numeric dtype"},
      {ops::exp, {i32({2})}, {}, "exp: operand 0 is i32[2], expected a float dtype"},
      {ops::bit_and, {f32({2}), f32({2})}, {}, "bit_and: operand 0 is f32[2]"},
      {ops::shift_left, {b1({2}), b1({2})}, {}, "expected integers"},
      {ops::lt, {b1({2}), b1({2})}, {}, "lt: operand 0 is bool[2]"},
      {ops::select,
       {f32({2}), f32({2}), f32({2})},
       {},
       "select: operand 0 is f32[2], expected bool"},
      {ops::select, {b1({2}), f32({2}), f16({2})}, {}, "cast one of them"},
      {ops::cast, {f32({2})}, {}, "cast: attribute 'dtype' is missing"},
      {ops::cast, {f32({2})}, {{"dtype", 3}}, "cast: attribute 'dtype' is of the wrong kind"},
      {ops::bitcast, {f32({2})}, {{"dtype", DType::f16}}, "bitcast: f32[2] cannot be read as f16"},
      {ops::iota,
       {},
       {{"shape", Dims{2}}, {"dtype", DType::f32}, {"axis", 1}},
       "iota: attribute 'axis' is 1"},
      {ops::random_bits, {f32({}), f32({})}, shape({2}), "expected u64[]"},
      {ops::leaky_relu,
       {f32({2})},
       {{"alpha", 1}},
       "leaky_relu: attribute 'alpha' is of the wrong kind"},
      {ops::replay, {f32({2})}, {{"number", -1}}, "replay: attribute 'number' is -1"},
  };
}

std::vector<Wrong> movement_mistakes() {
  return {
      {ops::reshape, {f32({2, 3})}, shape({4}), "reshape: f32[2,3] has 6 elements, [4] needs 4"},
      {ops::reshape,
       {f32({2})},
       shape({-1, -2}),
       "attribute 'shape' contains -1, expected at least 0"},
      {ops::transpose,
       {f32({2, 3})},
       {{"perm", Dims{0, 0}}},
       "attribute 'perm' is [0,0], expected each axis"},
      {ops::transpose,
       {f32({2, 3})},
       {{"perm", Dims{0}}},
       "attribute 'perm' is [0], expected each axis"},
      {ops::broadcast,
       {f32({2})},
       shape({3}),
       "broadcast: f32[2] does not fit in [3]: 2 against 3"},
      {ops::broadcast, {f32({2, 2})}, shape({2}), "expected at most as many axes as [2]"},
      {ops::slice,
       {f32({4})},
       cut({2}, {3}, {1}),
       "the slice at axis 0 ends at 5, expected at most 4"},
      {ops::slice,
       {f32({4})},
       cut({0}, {2}, {0}),
       "attribute 'steps' contains 0, expected at least 1"},
      {ops::slice,
       {f32({4})},
       cut({0, 0}, {2}, {1}),
       "attribute 'starts' is [0,0], expected 1 entry"},
      {ops::pad,
       {f32({2}), f32({1})},
       {{"low", Dims{0}}, {"high", Dims{0}}},
       "pad: operand 1 is f32[1] of rank 1"},
      {ops::pad,
       {f32({2}), f32({})},
       {{"low", Dims{-1}}, {"high", Dims{0}}},
       "attribute 'low' contains "},
      {ops::concat,
       {f32({2, 3}), f32({3, 3})},
       axis(1),
       "concat: sizes at axis 0 differ: 2 against 3"},
      {ops::concat, {f32({2}), i32({2})}, axis(0), "concat: operands are f32[2] and i32[2]"},
      {ops::reverse,
       {f32({2})},
       axes({1}),
       "reverse: attribute 'axes' is [1], expected ascending axes from 0 to 0"},
      {ops::gather,
       {f32({2}), f32({2})},
       axis(0),
       "gather: operand 1 is f32[2], expected integers"},
      {ops::gather,
       {f32({0}), i64({2})},
       axis(0),
       "axis 0 is empty, expected at least one element to index"},
      {ops::scatter,
       {f32({3}), i64({2}), f32({3})},
       {{"axis", 0}, {"kind", std::string("add")}},
       "sizes of the updates at axis 0 differ: 2 against 3"},
      {ops::scatter,
       {f32({3}), i64({2}), f32({2})},
       {{"axis", 0}, {"kind", std::string("xor")}},
       "attribute 'kind' is 'xor', expected one of set, add, mul, max, min"},
      {ops::scatter,
       {b1({3}), i64({2}), b1({2})},
       {{"axis", 0}, {"kind", std::string("add")}},
       "scatter: operand 0 is bool[3], expected a numeric dtype"},
      {ops::dynamic_slice,
       {f32({3}), i64({1})},
       {{"sizes", Dims{4}}},
       "the size at axis 0 is 4, expected at most 3"},
      {ops::dynamic_slice,
       {f32({3}), i64({2})},
       {{"sizes", Dims{2}}},
       "the rank and the number of starts differ"},
      {ops::dynamic_update,
       {f32({3}), f32({4}), i64({1})},
       {},
       "the size of the update at axis 0 is 4, expected at most 3"},
      {ops::tile,
       {f32({3})},
       {{"count", Dims{-1}}},
       "attribute 'count' contains -1, expected at least 0"},
      {ops::pad_reflect,
       {f32({3})},
       {{"low", Dims{3}}, {"high", Dims{0}}},
       "the padding at axis 0 is "},
      {ops::pad_edge,
       {f32({0})},
       {{"low", Dims{1}}, {"high", Dims{0}}},
       "the padding at axis 0 is "},
      {ops::one_hot,
       {f32({3}), f32({}), f32({})},
       {{"axis", 0}, {"count", Dims{2}}},
       "one_hot: operand 0 is f32[3]"},
      {ops::gather_elements,
       {f32({3, 2}), i64({3, 4})},
       axis(0),
       "the size of the indices at axis 1 is 4, expected at most 2"},
      {ops::scatter_elements,
       {f32({3}), i64({2}), f32({3})},
       {{"axis", 0}, {"kind", std::string("set")}},
       "sizes at axis 0 differ"},
      {ops::gather_nd,
       {f32({3, 2}), i64({4, 3})},
       {{"batch", 0}},
       "expected a last axis with at most one index for each further axis"},
      {ops::scatter_nd,
       {f32({3, 2}), i64({4, 2}), f32({3})},
       {{"kind", std::string("set")}},
       "sizes of the updates at axis 0 differ: 4 against 3"},
  };
}

std::vector<Wrong> other_mistakes() {
  Attrs row{{"axis", 1}, {"epsilon", 1e-5}};
  return {
      {ops::reduce_sum,
       {b1({2})},
       axes({0}),
       "reduce_sum: operand 0 is bool[2], expected a numeric dtype"},
      {ops::reduce_sum,
       {f32({2, 2})},
       axes({1, 0}),
       "attribute 'axes' is [1,0], expected ascending axes"},
      {ops::reduce_and, {i32({2})}, axes({0}), "reduce_and: operand 0 is i32[2], expected bool"},
      {ops::argmax,
       {f32({0})},
       {{"axis", 0}, {"dtype", DType::i64}},
       "axis 0 is empty, expected at least one element"},
      {ops::argmin,
       {f32({2})},
       {{"axis", 0}, {"dtype", DType::f32}},
       "attribute 'dtype' is f32, expected i64 or i32"},
      {ops::reduce_window,
       {f32({2})},
       window({4}, {1}),
       "the window at axis 0 covers 4 elements, but the padded input has 2"},
      {ops::reduce_window,
       {f32({2, 2})},
       window({1}, {1}),
       "attribute 'window' is [1], expected 2 entries"},
      {ops::cumulative,
       {f32({2})},
       {{"axis", 0}, {"kind", std::string("mean")}, {"exclusive", 0}, {"reverse", 0}},
       "attribute 'kind' is 'mean'"},
      {ops::sort,
       {f32({2})},
       {{"axis", 2}, {"descending", 0}},
       "sort: attribute 'axis' is 2, expected an axis from 0 to 0"},
      {ops::dot,
       {f32({2, 3}), f32({4, 5})},
       {{"batch", Dims{}}, {"contract", Dims{1, 0}}},
       "contracted sizes (axes 1 and 0) differ: 3 against 4"},
      {ops::dot,
       {f32({2, 3}), f32({3, 5})},
       {{"batch", Dims{}}, {"contract", Dims{1}}},
       "attribute 'contract' is [1], expected pairs of axes"},
      {ops::dot,
       {f32({2}), f32({2})},
       {{"batch", Dims{0, 0}}, {"contract", Dims{0, 0}}},
       "each axis at most once"},
      {ops::dot,
       {f32({2}), f16({2})},
       {{"batch", Dims{}}, {"contract", Dims{0, 0}}},
       "cast one of them"},
      {ops::dot,
       {Type(DType::u8, {2}), Type(DType::i8, {2})},
       {{"batch", Dims{}}, {"contract", Dims{0, 0}}, {"dtype", DType::f32}},
       "cannot be summed as f32; bytes are summed as i32"},
      {ops::dot,
       {f32({2}), f32({2})},
       {{"batch", Dims{}}, {"contract", Dims{0, 0}}, {"dtype", DType::f16}},
       "cannot be summed as f16"},
      {ops::conv,
       {f32({1, 3, 4}), f32({2, 2, 2})},
       conv(1, 0),
       "channels of the weights (times 1 groups) and of the input differ: 2 against 3"},
      {ops::conv, {f32({1, 4, 4}), f32({3, 2, 2})}, conv(2, 0), "groups as output channels"},
      {ops::conv,
       {f32({1, 2, 4}), f32({3, 2, 9})},
       conv(1, 0),
       "the window at axis 2 covers 9 elements, but the padded input has 4"},
      {ops::conv, {f32({2, 4}), f32({3, 2})}, conv(1, 0), "one to three spatial axes"},
      {ops::conv, {f32({1, 2, 4}), f32({3, 2, 2})}, {}, "conv: attribute 'groups' is missing"},
      {ops::softmax,
       {f32({})},
       axis(0),
       "softmax: attribute 'axis' is 0, but a scalar has no axes"},
      {ops::reverse, {f32({})}, axes({0}), "reverse: attribute 'axes' is [0], but a scalar has no"},
      {ops::softmax,
       {f32({2})},
       axis(-1),
       "softmax: attribute 'axis' is -1, expected an axis from 0 to 0"},
      {ops::softmax, {i64({2})}, axis(0), "softmax: operand 0 is i64[2], expected a float dtype"},
      {ops::layer_norm,
       {f32({2, 3}), f32({4})},
       row,
       "sizes of operands 0 and 1 at axis 1 differ: 3 against 4"},
      {ops::rms_norm,
       {f32({2, 3}), f32({2, 3})},
       row,
       "rms_norm: operand 1 is f32[2,3] of rank 2, expected rank 1"},
      {ops::batch_norm,
       {f32({2, 3}), f32({3}), f32({3}), f32({3}), f32({2})},
       row,
       "channels of operands 0 and 4 differ: 3 against 2"},
      {ops::mean, {i64({2})}, axes({0}), "mean: operand 0 is i64[2]"},
      {ops::matmul,
       {f32({2, 3}), f32({4, 5})},
       {},
       "matmul: inner sizes differ: [2,3] x [4,5] (3 against 4); is one operand transposed?"},
      {ops::matmul, {f32({}), f32({2})}, {}, "expected at least one axis each"},
      {ops::matmul,
       {f32({2, 2, 3}), f32({3, 3, 2})},
       {},
       "matmul: shapes [2] and [3] do not broadcast"},
      {ops::lstm_cell,
       {f32({2, 12}), f32({2, 4}), f32({2, 4}), f32({16, 4})},
       {},
       "sizes of operand 0 at axis 1 differ: 16 against 12"},
      {ops::lstm,
       {f32({2, 1, 3}), f32({8, 3}), f32({8, 2}), f32({7}), f32({1, 2}), f32({1, 2})},
       {{"reverse", 0}},
       "sizes of operand 3 at axis 0 differ: 8 against 7"},
      {ops::refuse,
       {},
       {{"dtype", DType::f32}, {"shape", Dims{}}},
       "refuse: attribute 'message' is missing"},
      {ops::require, {i32({})}, {}, "require: the operand is i32[], expected one i64"},
  };
}

TEST(OpErrors, NameTheOperationAndTheValues) {
  int checked = 0;
  for (const auto& list : {elementwise_mistakes(), movement_mistakes(), other_mistakes()})
    for (const Wrong& w : list) {
      std::string said = refusal(w.op, w.types, w.attrs);
      EXPECT_NE(said.find(w.message), std::string::npos)
          << w.op.name << " said '" << said << "', not '" << w.message << "'";
      EXPECT_EQ(said.substr(0, w.op.name.size()), w.op.name);
      ++checked;
    }
  EXPECT_GT(checked, 70);
}

// For any operands, an op returns types or throws a UserError that names it.
TEST(OpErrors, NoOperandsEverReachAnAssert) {
  const std::vector<Type> pool = {f32({}), f32({2}), i64({2}), b1({}), f32({2, 3}), f16({0, 2, 3})};
  for (const Op* op : all_ops())
    for (const Sample& s : op->samples())
      for (std::size_t n = 0; n <= s.operands.size() + 1; ++n)
        for (std::size_t k = 0; k < pool.size(); ++k) {
          std::vector<Type> types = s.operands;
          types.resize(n, pool[k]);
          if (n > 0) types[k % n] = pool[k];
          for (const Attrs& attrs : {s.attrs, Attrs()}) {
            std::string said;
            EXPECT_NO_THROW(said = refusal(*op, types, attrs)) << op->name;
            EXPECT_TRUE(said.empty() || said.find(op->name) != std::string::npos ||
                        said.starts_with("size:"))
                << op->name << ": " << said;
          }
        }
}

Function one_param(const Type& t) {
  Function f;
  f.add_param(t, "x");
  return f;
}

TEST(OpErrors, ControlFlowNamesWhatDoesNotFit) {
  auto add_one = std::make_shared<Function>(one_param(f32({2})));
  add_one->add_result(add_one->param(0) + 1.0);
  auto flat = std::make_shared<Function>(one_param(f32({2})));
  flat->add_result(reshape_to(flat->param(0), {2, 1}));
  EXPECT_NE(refusal(ops::if_else, {b1({}), f32({2})},
                    {{"then", FunctionRef(add_one)}, {"else", FunctionRef(flat)}})
                .find("result 0 is f32[2] in one branch and f32[2,1] in the other"),
            std::string::npos);
  EXPECT_NE(refusal(ops::if_else, {b1({}), f32({3})},
                    {{"then", FunctionRef(add_one)}, {"else", FunctionRef(add_one)}})
                .find("sizes at axis 0 of parameter 0 of then differ: 3 against 2"),
            std::string::npos);
  EXPECT_NE(refusal(ops::if_else, {b1({})},
                    {{"then", FunctionRef(add_one)}, {"else", FunctionRef(add_one)}})
                .find("'then' takes 1 values, got 0"),
            std::string::npos);
  EXPECT_NE(refusal(ops::while_loop, {f32({2})},
                    {{"condition", FunctionRef(add_one)}, {"body", FunctionRef(add_one)}})
                .find("the first f32[2], expected one bool[]"),
            std::string::npos);
  auto scalar_true = std::make_shared<Function>(one_param(f32({2})));
  Value x = scalar_true->param(0);
  scalar_true->add_result(reduce_axes(ops::reduce_and, ops::eq(x, x), {0}));
  EXPECT_NE(refusal(ops::while_loop, {f32({2})},
                    {{"condition", FunctionRef(scalar_true)}, {"body", FunctionRef(flat)}})
                .find("carried value 0 is f32[2] before and f32[2,1] after an iteration; its type "
                      "must not change"),
            std::string::npos);
}

}  // namespace
}  // namespace hone
