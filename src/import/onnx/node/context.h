// The interface of one ONNX operator's import function: its node, typed operands, attributes, and
// the graph to build in. Not the walk over the model.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "import/common/build.h"
#include "import/common/options.h"
#include "import/onnx/file/model.h"
#include "import/onnx/file/tensor.h"
#include "ir/function.h"
#include "ops/common.h"

namespace hone::onnx {

using namespace build;

// A valid model uses a feature that the importer does not support.
struct Unsupported : UserError {
  using UserError::UserError;
};

// The contents of a value are required but not known.
struct DependsOnData : Unsupported {
  template <class... Parts>
  explicit DependsOnData(Value v, const Parts&... parts) : Unsupported(parts...), value(v) {}
  Value value;
};

// Thrown when the model must be read again with the given contents of these inputs.
struct NeedsContents {
  std::vector<std::string> inputs;
};

// Thrown when the assumptions do not answer a question about sizes: the model is read again, once
// for each answer.
struct OpenQuestion {
  Dim condition;
  std::string asker = {};  // the node, as named in errors
};

// The answers assumed during one reading of the model.
class Assumptions {
 public:
  // `are_equal`: sizes that meet in a broadcast are equal; otherwise one of them may be 1.
  explicit Assumptions(std::vector<Assumption> list, bool are_equal = true)
      : list_(std::move(list)), are_equal_(are_equal) {}
  // Whether a condition (a Dim that is 0 or 1) is 1. Throws OpenQuestion when it is undecided.
  bool holds(const Dim& condition) const;
  // Whether this reading takes two sizes that meet in a broadcast as equal, which is then noted.
  bool take_as_equal(const Dim& a, const Dim& b) const;
  // 1 where all sizes that were taken as equal are equal. Empty: there are none.
  std::optional<Dim> all_equal() const;

 private:
  std::vector<Assumption> list_;
  bool are_equal_;
  mutable Dims taken_as_equal_;  // conditions
};

// A graph attribute of a node as a closed Function: its parameters are those of the graph, then the
// outer values that it reads.
struct Body {
  std::shared_ptr<Function> function;
  Values captures;
};

// Reads graph attributes of nodes in their scope. Both functions throw NotRead after recording the
// errors inside.
struct NotRead {};
class Bodies {
 public:
  // Inputs listed in `stacks` are tensors whose slices are the elements of a sequence that the
  // graph expects.
  virtual Body closed(const Graph&, const std::vector<Type>& inputs,
                      const std::set<std::size_t>& stacks = {}) = 0;
  virtual Values inlined(const Graph&, const Values& inputs) = 0;
  // A new size, named after the node: the run-time value of the i64 scalar, from 0 to `most`.
  virtual Dim measured(Value, const Dim& most, std::string_view node) = 0;
  // A new size from `low` to `high`, named after the node, which a body of the node measures.
  virtual Dim new_size(std::int64_t low, std::int64_t high, std::string_view node) = 0;
  // Whether d is computed from sizes of the model's inputs alone, so that it is known before a run.
  virtual bool is_of_inputs(const Dim& d) const = 0;
  // The upper bound that the caller's options state for sizes measured by this node, if any.
  virtual std::optional<std::int64_t> stated_limit(std::string_view node) const = 0;
  // Empty: no such name in the node's scope.
  virtual std::optional<Value> named(std::string_view name) = 0;
  // Throws NeedsContents when given input contents may determine the value.
  virtual void ask_for_contents(Value) const = 0;

 protected:
  ~Bodies() = default;
};

// The position of a node in the model.
struct Place {
  hone::Graph& graph;
  TensorFiles& files;
  const Assumptions& assumptions;
  Bodies& bodies;
  std::int64_t number;  // counts all nodes read, including those of called functions
  std::int64_t& turns;  // iterations of all unrolled loops
};

// The upper bound of a data-dependent size that nothing else bounds.
inline constexpr std::int64_t most_open_size = 1 << 16;

// The longest list of sizes whose length may be data-dependent.
inline constexpr std::int64_t most_open_rank = 8;

class NodeContext {
 public:
  NodeContext(const Node& node, std::int64_t opset, Values inputs, const Place& place)
      : node_(node),
        opset_(opset),
        inputs_(std::move(inputs)),
        place_(place),
        read_(node.attributes.size(), false),
        taken_(inputs_.size(), false) {}

  const Node& node() const { return node_; }
  std::string_view op() const { return node_.op; }
  // The node's name, or that of its first output if it has none.
  std::string_view node_name() const {
    return node_.name.empty() && !node_.outputs.empty() ? node_.outputs[0] : node_.name;
  }
  std::int64_t opset() const { return opset_; }
  hone::Graph& graph() const { return place_.graph; }
  const Assumptions& assumptions() const { return place_.assumptions; }
  Bodies& bodies() const { return place_.bodies; }
  std::int64_t& unrolled_turns() const { return place_.turns; }
  // The random stream of this node; different for each node.
  std::int64_t stream() const { return place_.number; }

  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const {
    if (i >= inputs_.size()) return false;
    taken_[i] = true;
    return bool(inputs_[i]);
  }
  Value in(std::size_t i) const;  // fails when absent
  Values all_inputs() const;      // fails when one is absent
  std::size_t outputs() const { return node_.outputs.size(); }
  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }

  // Attributes. Each function fails when the attribute has a different type.
  bool has_attribute(std::string_view name) const { return node_.find(name); }
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  bool flag(std::string_view name, bool fallback = false) { return integer(name, fallback) != 0; }
  // The fallback is rounded to f32, as in the schema.
  double real(std::string_view name, double fallback);
  std::string_view text(std::string_view name, std::string_view fallback);
  std::optional<std::vector<std::int64_t>> integers(std::string_view name);
  std::optional<std::vector<float>> reals(std::string_view name);
  std::optional<std::vector<std::string_view>> texts(std::string_view name);
  std::optional<Array> tensor(std::string_view name);
  std::optional<Array> sparse(std::string_view name);  // dense
  // An integer attribute that holds an ONNX type number. Required.
  DType dtype(std::string_view name);
  const onnx::Graph& body(std::string_view name);  // fails when absent
  // For attributes that have no effect in inference.
  void ignore(std::string_view name);
  // Fails when an attribute or an input has not been read: its meaning would be lost silently.
  void check_all_read() const;

  // An integer operand's contents as sizes; fails when they depend on data.
  Dims contents(std::size_t input) const;
  // The same, but data-dependent elements become run-time sizes: element i is 0 to most[i], or to a
  // stated limit.
  Dims open_contents(std::size_t input, const Dims& most = {}) const;
  Dim open_size(std::size_t input, const Dim& most) const;
  // The elements one by one: sizes where they are known, otherwise i64 scalars.
  struct Element {
    std::optional<Dim> known;
    Value open;
  };
  std::vector<Element> elements(std::size_t input) const;
  // The value of an open size in this variant of the model. There is one variant for each value up
  // to `most`, so the size must be one of the inputs'.
  std::int64_t count_of_variant(const Dim& count, std::int64_t most, std::string_view what) const;
  // The list, cut to the number of elements that count_of_variant gives.
  Value list_of_variant(Value list, std::int64_t most, std::string_view what) const;
  // Whether the operand's contents are known; contents given by the caller do not count.
  bool knows(std::size_t input) const;
  // Whether the operand's contents are known only at run time and were not given.
  bool decides(std::size_t input) const;
  // The upper bound of a data-dependent size: what the caller's options state for this node, else
  // most_open_size, or less when `open` sizes are data-dependent at once, since memory is planned
  // for all of them.
  Dim open_limit(std::size_t open = 1) const;
  // The size that an integer scalar holds when the node runs, whether known or not.
  Dim measured(Value n, const Dim& most) const;
  // The same, when all are numbers.
  std::vector<std::int64_t> numbers(std::size_t input) const;
  // The only element of a one-element operand.
  Dim size(std::size_t input) const;
  std::int64_t number(std::size_t input) const;
  // The elements of an operand of any dtype, or its only one; fails when they depend on data.
  Array array(std::size_t input) const;
  double real_number(std::size_t input) const;
  // Attribute `name` (older opsets) or operand `input` (newer ones), as numbers.
  std::optional<std::vector<std::int64_t>> list(std::string_view name, std::size_t input);
  int axis(std::int64_t axis, int rank) const { return normal_axis(axis, rank, node_.op); }
  // Normalised, sorted, without duplicates.
  Axes axes(const std::vector<std::int64_t>& list, int rank) const;

  // The caller adds the node's name. Messages have the form `X is Y, expected Z`.
  [[noreturn]] void fail(std::string_view why) const;
  template <class T>
  [[noreturn]] void bad_attribute(std::string_view name, const T& value,
                                  std::string_view expected) const {
    fail(cat("attribute '", name, "' is ", shown(value), ", expected ", expected));
  }
  // `name` is the one in ONNX's specification.
  [[noreturn]] void bad_input(std::size_t i, std::string_view name,
                              std::string_view expected) const;
  [[noreturn]] void unsupported(std::string_view why) const;
  [[noreturn]] void depends_on_data(std::size_t input) const;
  // An input as messages name it: its number and its name in the model.
  std::string input_text(std::size_t i) const;

 private:
  const Attribute* find(std::string_view name, Attribute::Kind kind);
  static std::string shown(std::string_view text) { return cat("'", text, "'"); }
  static std::string shown(const auto& value)
    requires(!std::is_convertible_v<decltype(value), std::string_view>)
  {
    return cat(value);
  }

  const Node& node_;
  std::int64_t opset_;
  Values inputs_;
  const Place& place_;
  std::vector<bool> read_;           // by attribute
  mutable std::vector<bool> taken_;  // by operand
};

// Builds the node's results, one for each ONNX output of the operator (unsupported trailing ones
// may be left out).
using ImportNode = Values (*)(NodeContext&);

struct ImportEntry {
  std::string_view op;
  ImportNode import;
  std::int64_t since = 1, until = newest_opset;  // opsets for which the function is correct
  std::string_view domain = "";                  // ai.onnx
  // Used instead of `import`: an op whose Op::onnx declares it equivalent.
  const Op* same = nullptr;

  static constexpr std::int64_t newest_opset = 28;
};

}  // namespace hone::onnx
