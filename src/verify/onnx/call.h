// A node as seen by the code that evaluates it. Internal to verify/onnx.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "verify/onnx/numbers.h"

namespace hone::onnx {

using Sizes = std::vector<std::int64_t>;

class Noise;

// Thrown for cases that are not covered here.
struct NotJudged {};

std::int64_t product(const Sizes&);
Sizes strides_of(const Sizes& dims);
// Results of more elements than this are not evaluated.
inline constexpr double most_of_result = 1 << 24;
// Calls f with every index in row-major order.
void for_index(const Sizes& dims, const std::function<void(const Sizes&)>& f);
std::int64_t place(const Sizes& index, const Sizes& strides);
double at(const Numbers&, const Sizes& index);

class Call {
 public:
  Call(const Node& node, std::int64_t opset, std::span<const Numbers* const> inputs,
       const NumbersByName& outer, Noise* noise = nullptr)
      : node_(node),
        opset_(opset),
        inputs_(inputs),
        outer_(outer),
        noise_(noise),
        read_(node.attributes.size(), false) {}

  std::string_view op() const { return node_.op; }
  std::int64_t opset() const { return opset_; }
  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return node_.outputs.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i]; }
  const Numbers& in(std::size_t i) const {
    if (!has(i)) throw NotJudged();
    return *inputs_[i];
  }
  int rank() const { return static_cast<int>(in(0).dims.size()); }

  bool has_attribute(std::string_view name) const { return node_.find(name); }
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  double real(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string otherwise);
  std::optional<Sizes> integers(std::string_view name);
  // Empty if omitted.
  std::vector<double> reals(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  std::optional<Numbers> tensor(std::string_view name);
  const Graph& graph(std::string_view name);
  // A value from outside of the node's graphs.
  const Numbers* outer(std::string_view name) const { return outer_ ? outer_(name) : nullptr; }
  // Changes what subgraphs compute; null: nothing does.
  Noise* noise() const { return noise_; }
  // Contents of an operand that holds integers.
  Sizes list(std::size_t input) const;
  // An attribute in older opsets, an operand in newer ones; empty if omitted.
  std::optional<Sizes> list(std::string_view name, std::size_t input);
  // Counted from the front.
  std::size_t axis(std::int64_t axis, std::int64_t rank) const;
  std::size_t axis(std::string_view name, std::int64_t otherwise) {
    return axis(integer(name, otherwise), rank());
  }
  // The node as another operator, which reads its attributes.
  Node as(std::string_view op);
  // Whether every attribute was read; the results do not reflect unread ones.
  bool all_read() const;

 private:
  const Attribute* find(std::string_view name, Attribute::Kind kind);

  const Node& node_;
  std::int64_t opset_;
  std::span<const Numbers* const> inputs_;
  const NumbersByName& outer_;
  Noise* noise_;
  std::vector<bool> read_;
};

using Meaning = std::vector<Numbers> (*)(Call&);
enum class Kind : std::uint8_t {
  computes,  // in several steps: results depend on the order of roundings and may enlarge them
  rounds,    // at most once: any evaluation gives the same
  copies,    // elements of operands, or asks about them: NaN is an element like others
};
struct MeaningRow {
  std::string_view op;  // with its domain in front, unless that is ONNX's own
  Meaning meaning;
  Kind kind = Kind::computes;
};
std::span<const MeaningRow> elementwise_meanings();
std::span<const MeaningRow> movement_meanings();
std::span<const MeaningRow> sum_meanings();
std::span<const MeaningRow> window_meanings();
std::span<const MeaningRow> resize_meanings();
std::span<const MeaningRow> recurrent_meanings();
std::span<const MeaningRow> control_meanings();
std::span<const MeaningRow> quantized_meanings();
std::span<const MeaningRow> sample_meanings();
std::span<const MeaningRow> signal_meanings();
std::span<const MeaningRow> attention_meanings();
std::span<const MeaningRow> loss_meanings();
std::span<const MeaningRow> learned_meanings();
std::span<const MeaningRow> contrib_meanings();
std::span<const MeaningRow> text_meanings();
std::span<const MeaningRow> region_meanings();

// Sums of more products than this are not evaluated.
inline constexpr double most_products = 2e6;
inline void check_work(double products) {
  if (products > most_products) throw NotJudged();
}

}  // namespace hone::onnx
