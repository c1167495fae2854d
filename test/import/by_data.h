// Nodes whose operands are given in a run, compared with the same nodes with constants. Not a test
// itself.
#pragma once

#include <gtest/gtest.h>

#include "one_node.h"

namespace hone {

using Integers = std::vector<std::int64_t>;
using Set = std::function<void(onnx_pb::Node&)>;

inline Given data(std::string name, const Integers& list) {
  return {std::move(name), Array::from_ints(list), false};
}
inline Given scalar_data(std::string name, std::int64_t n) {
  return {std::move(name), Array::scalar_int(n, DType::i64), false};
}
inline Given constant(Given g) {
  g.is_constant = true;
  return g;
}
inline Set with(const std::string& attribute, std::int64_t n) {
  return [=](onnx_pb::Node& node) { set_int(node, attribute, n); };
}

// Expects equal results whether the operands after the first are constants or as given.
inline void expect_alike(const std::string& op, const std::vector<Given>& given, int outputs = 1,
                         const Set& set = nullptr) {
  std::vector<Given> known = given;
  for (std::size_t i = 1; i < known.size(); ++i) known[i].is_constant = true;
  OneNode open(op, given, outputs), closed(op, known, outputs);
  for (OneNode* n : {&open, &closed})
    if (set) set(*n->node);
  const std::vector<Array> a = open.run(), b = closed.run();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]) << op << " result " << i;
}

}  // namespace hone
