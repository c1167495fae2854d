// The element evaluator's state for one function in one run: sizes, operand values, and the
// elements found so far. Internal to ref.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <unordered_set>

#include "ir/function.h"
#include "ops/eval.h"
#include "ref/element_value.h"
#include "ref/evaluate.h"

namespace hone {

// Operands with few elements each, kept for a node that is evaluated element by element.
struct SmallOperands {
  std::vector<Wide> operands;
  std::vector<const Wide*> inputs;
  std::vector<Type> types;
};

// Elements by row-major position. A value may have many; each is written once and read often. A
// hash table with open addressing, in which a free slot has the key -1.
class ElementMap {
 public:
  // Null when absent. Valid only until the next add().
  const ElementOfModes* find(std::int64_t flat) const {
    if (keys_.empty()) return nullptr;
    const std::size_t at = place(flat);
    return keys_[at] == flat ? &elements_[at] : nullptr;
  }
  // Does nothing if the key exists.
  void add(std::int64_t flat, const ElementOfModes& e) {
    if (2 * count_ >= keys_.size()) grow();
    const std::size_t at = place(flat);
    if (keys_[at] == flat) return;
    keys_[at] = flat;
    elements_[at] = e;
    ++count_;
  }

 private:
  // The slot of the key, or the free slot for it.
  std::size_t place(std::int64_t flat) const {
    const std::size_t mask = keys_.size() - 1;
    std::size_t at = (static_cast<std::uint64_t>(flat) * 0x9e3779b97f4a7c15ull) >> 32 & mask;
    while (keys_[at] != flat && keys_[at] != -1) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    ElementMap larger;
    larger.keys_.assign(std::max<std::size_t>(4 * keys_.size(), 64), -1);
    larger.elements_.resize(larger.keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (keys_[i] != -1) larger.add(keys_[i], elements_[i]);
    *this = std::move(larger);
  }

  std::vector<std::int64_t> keys_;
  std::vector<ElementOfModes> elements_;
  std::size_t count_ = 0;
};

struct Frame {
  Function function;  // core ops only
  Sizing sizing;
  bool rounds_sums = false;  // in strict mode: to f32 after every term
  Frame* outer = nullptr;    // for a branch: its parameter i is operand i + 1 of `call` in `outer`
  NodeId call = 0;
  std::vector<ElementMap> memo;           // by slot
  std::vector<std::uint32_t> first_slot;  // by node
  std::vector<const Array*> leaves;  // by node: the array of a constant or an outermost parameter
  std::vector<SmallOperands> small;  // by node
  std::vector<Sizes> known_dims;     // by slot; empty when not computed yet, or rank 0
  // By node, strict and wide: results of ops that are evaluated as whole tensors.
  std::vector<std::array<std::vector<Wide>, 2>> whole;
  std::unordered_map<NodeId, std::array<Frame*, 2>> branches;  // else, then
  std::unordered_set<NodeId> has_no_boxes;  // reductions that are evaluated element by element

  const Graph& graph() const { return function.graph(); }
  std::size_t slot(Value v) const { return first_slot[v.node()] + v.index(); }
  Sizes sizes(const Dims&) const;
  const Sizes& dims(NodeId, std::uint32_t result);
  const Sizes& dims(Value v) { return dims(v.node(), v.index()); }
};

// The index of a row-major position, and the reverse.
inline Sizes index_of(std::int64_t flat, const Sizes& dims) {
  Sizes index(dims.size());
  for (std::size_t i = dims.size(); i-- > 0; flat /= dims[i]) index[i] = flat % dims[i];
  return index;
}

inline std::int64_t flat_of(const Sizes& index, const Sizes& dims) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + index[i];
  return flat;
}

inline Element element_of(const Array& a, std::int64_t i) {
  if (a.dtype() == DType::f32) return {a.as<float>()[static_cast<std::size_t>(i)], 0};
  return is_float(a.dtype()) ? Element{a.real(i), 0} : Element{0, a.integer(i)};
}

// An element to compute.
struct Task {
  Frame* frame;
  Value value;
  std::int64_t flat;
};

// Reads operand elements for a rule, in one mode; elements that are not known yet are recorded, and
// the rule runs again later.
class Reader {
 public:
  Reader(Frame& frame, NodeId node, std::vector<Task>& missing, bool is_strict)
      : frame(frame), node(node), is_strict(is_strict), missing_(missing) {}

  // A default element when it is not known yet.
  Element operand(std::size_t i, std::int64_t flat) { return read(frame, input(i), flat); }
  Element read(Frame&, Value, std::int64_t flat);
  bool complete() const { return complete_; }
  // Whether everything read so far is the same in both modes.
  bool modes_agree() const { return modes_agree_; }
  void expect_modes_to_differ() { modes_agree_ = false; }
  // Whether a sum in this dtype is rounded to f32 after every term.
  bool rounds_sums(DType t) {
    if (!frame.rounds_sums || !is_float(t) || t == DType::f64) return false;
    expect_modes_to_differ();
    return is_strict;
  }
  // Operand `i` as an array; null when it is computed.
  const Array* leaf(std::size_t i) const { return frame.leaves[input(i).node()]; }

  Value input(std::size_t i) const { return frame.graph().operands(node)[i]; }
  std::size_t input_count() const { return frame.graph().operands(node).size(); }
  const Attrs& attrs() const { return frame.graph().attrs(node); }
  const Op& op() const { return frame.graph().op(node); }
  const Type& type(std::size_t i = 0) const { return frame.graph().type(node, i); }
  const Sizes& input_dims(std::size_t i) const { return frame.dims(input(i)); }
  const Sizes& result_dims(std::uint32_t i = 0) const { return frame.dims(node, i); }

  Frame& frame;
  const NodeId node;
  const bool is_strict;
  std::int64_t reads = 0;  // number of elements read so far

 private:
  std::vector<Task>& missing_;
  bool complete_ = true, modes_agree_ = true;
};

// The element at `flat` of result `result`; valid only if the reader is complete afterwards.
using ElementRule = Element (*)(Reader&, std::uint32_t result, std::int64_t flat);
// Null: an elementwise op, or one that is evaluated as a whole tensor.
ElementRule element_rule(const Op&);
// The elements of a result of an elementwise op; valid under the same condition.
std::vector<Element> elementwise(Reader&, std::uint32_t result, std::span<const std::int64_t> flat);

}  // namespace hone
