#include "test/random/onnx_makers.h"

#include <set>

#include "import/onnx/operators/list.h"

namespace hone::fuzz {

namespace {

// For nodes that have no graphs and do not need the contents of inputs.
class NoBodies : public onnx::Bodies {
 public:
  onnx::Body closed(const onnx::Graph&, const std::vector<Type>&,
                    const std::set<std::size_t>&) override {
    refuse();
  }
  Values inlined(const onnx::Graph&, const Values&) override { refuse(); }
  Dim new_size(std::int64_t, std::int64_t, std::string_view) override { return 0; }
  bool is_of_inputs(const Dim&) const override { return true; }
  std::optional<std::int64_t> stated_limit(std::string_view) const override { return std::nullopt; }
  Dim measured(Value, const Dim&, std::string_view) override { refuse(); }
  std::optional<Value> named(std::string_view) override { return std::nullopt; }
  void ask_for_contents(Value) const override {}

 private:
  [[noreturn]] static void refuse() { throw UserError("no graph of a node here"); }
};

onnx::Attribute attribute_of(const Argument& a) {
  using Kind = onnx::Attribute::Kind;
  onnx::Attribute out;
  out.name = a.name;
  Kind kind{};
  if (const auto* n = std::get_if<std::int64_t>(&a.value)) kind = Kind::integer, out.integer = *n;
  if (const auto* x = std::get_if<double>(&a.value))
    kind = Kind::real, out.real = static_cast<float>(*x);
  if (const auto* t = std::get_if<std::string_view>(&a.value)) kind = Kind::text, out.text = *t;
  if (const auto* l = std::get_if<std::vector<std::int64_t>>(&a.value))
    kind = Kind::integers, out.integers = *l;
  out.kind = static_cast<std::int32_t>(kind);
  return out;
}

}  // namespace

Values imported(Builder& b, std::string_view op, const Values& operands, const Arguments& arguments,
                int results) {
  constexpr std::int64_t opset = onnx::ImportEntry::newest_opset;
  static constexpr std::string_view names[] = {"y0", "y1", "y2", "y3", "y4"};
  const onnx::ImportEntry* entry = onnx::find_import("", op, opset);
  HONE_ASSERT(entry && results <= std::ssize(names), op, " with ", results, " results");
  onnx::Node node;
  node.op = op;
  node.outputs.assign(names, names + results);
  for (const Argument& a : arguments) node.attributes.push_back(attribute_of(a));
  onnx::TensorFiles files(nullptr);
  const onnx::Assumptions nothing({});
  NoBodies bodies;
  std::int64_t turns = 0;
  const onnx::Place place{b.graph(), files, nothing, bodies, 0, turns};
  onnx::NodeContext context(node, opset, operands, place);
  try {
    Values out = entry->import(context);
    context.check_all_read();
    return out;
  } catch (const onnx::OpenQuestion&) {
  } catch (const onnx::NeedsContents&) {
  }
  return {};
}

Value import_one(Builder& b, std::string_view op, const Values& operands,
                 const Arguments& arguments, int results) {
  const Values out = imported(b, op, operands, arguments, results);
  for (std::size_t i = 1; i < out.size(); ++i) b.keep(out[i]);
  return out.empty() ? Value() : out[0];
}

Value integers(Builder& b, const std::vector<std::int64_t>& list) {
  return constant(b.graph(), Array::from_ints(list));
}

std::vector<OnnxMaker> onnx_makers() {
  std::vector<OnnxMaker> out;
  for (auto list : {onnx_elementwise_makers(), onnx_layer_makers()})
    out.insert(out.end(), list.begin(), list.end());
  return out;
}

}  // namespace hone::fuzz
