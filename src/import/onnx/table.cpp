#include "import/onnx/table.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

// The format's numbers of element types.
constexpr std::int32_t f32 = 1, u8 = 2, i32 = 6, i64 = 7, text = 8, b1 = 9;

// An operand of a probe, identified by a letter: an input of the model, or a constant.
struct Operand {
  char letter;
  std::int32_t type;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> contents = {};  // i64 constants
};
const Operand operands[] = {
    {'a', f32, {1, 4, 8, 8}},
    {'w', f32, {4, 4, 3, 3}},
    {'m', f32, {4, 4}},
    {'v', f32, {4}},
    {'s', f32, {}},
    {'t', f32, {3, 2, 4}},
    {'L', f32, {1, 16, 4}},
    {'G', f32, {1, 12, 4}},
    {'R', f32, {1, 4, 4}},
    {'b', b1, {4, 4}},
    {'c', b1, {}},
    {'k', i32, {4, 4}},
    {'u', u8, {4, 4}},
    {'z', u8, {}},
    {'x', text, {4}},
    {'i', i64, {4}},
    {'I', i64, {4, 4}},
    {'0', i64, {1}, {0}},
    {'1', i64, {1}, {1}},
    {'2', i64, {2}, {2, 2}},
    {'4', i64, {2}, {4, 4}},
    {'p', i64, {4}, {0, 0, 1, 1}},
    {'n', i64, {}, {2}},
    {'r', i64, {4}, {1, 4, 16, 16}},
};
// Operand lists to try; a blank is an omitted operand.
constexpr std::string_view operand_lists[] = {
    "m",   "mm",  "a",   "aw",    "aww",      "mmm", "b",   "bb",    "bmm", "k",   "kk",  "kI",
    "u",   "uu",  "mi",  "mI",    "mIm",      "m0",  "m2",  "m4",    "m01", "mp",  "mn",  "ms",
    "mss", "msz", "usz", "uszsz", "uszuszsz", "av",  "avv", "avvvv", "tLL", "tGG", "tRR", "a  r",
    "ar",  "4",   "nnn", "inv",   "i",        "I",   "mv",  "mvv",   "mk",  "mb",  "aas", "tt",
    "ttt", "",    "n",   "v",     "s",        "av4", "Im",  "aI",    "x",   "xx",
};

struct Attributes {
  std::string_view name;
  onnx::Attribute::Kind kind;
  std::vector<std::int64_t> integers;
  std::string_view text = {};
};
using Kind = onnx::Attribute::Kind;
// Tried one at a time; the first is empty.
const Attributes attribute_lists[] = {
    {"", Kind::undefined, {}},
    {"axis", Kind::integer, {0}},
    {"axes", Kind::integers, {0}},
    {"to", Kind::integer, {f32}},
    {"kernel_shape", Kind::integers, {2, 2}},
    {"blocksize", Kind::integer, {2}},
    {"hidden_size", Kind::integer, {4}},
    {"num_groups", Kind::integer, {2}},
    {"size", Kind::integer, {3}},
    {"shape", Kind::integers, {4, 4}},
    {"value_ints", Kind::integers, {1, 2}},
    {"num_outputs", Kind::integer, {2}},
    {"equation", Kind::text, {}, "ij,jk->ik"},
    {"direction", Kind::text, {}, "RIGHT"},
};

// A model with one node.
struct Probe {
  onnx::Model model;

  Probe(const onnx::ImportEntry& entry, std::string_view list, const Attributes& given) {
    model.ir_version = 10;
    // The newest version of other domains is unknown; the first one works as well.
    const std::int64_t newest = std::min(entry.until, onnx::ImportEntry::newest_opset);
    model.opsets.push_back({entry.domain, entry.domain.empty() ? newest : entry.since});
    onnx::Graph& g = model.graph.emplace();
    onnx::Node& node = g.nodes.emplace_back();
    node.op = entry.op;
    node.domain = entry.domain;
    node.outputs = {"y"};
    for (std::size_t i = 0; i < list.size(); ++i) {
      static constexpr std::string_view names = "ABCDEFGHIJ";
      node.inputs.push_back(list[i] == ' ' ? std::string_view() : names.substr(i, 1));
      if (list[i] != ' ') add(g, names.substr(i, 1), list[i]);
    }
    g.outputs.emplace_back().name = "y";
    if (given.kind == Kind::undefined) return;
    onnx::Attribute& a = node.attributes.emplace_back();
    a.name = given.name;
    a.kind = static_cast<std::int32_t>(given.kind);
    a.text = given.text;
    a.integers = given.integers;
    if (given.kind == Kind::integer) a.integer = given.integers[0];
  }

  static void add(onnx::Graph& g, std::string_view name, char letter) {
    const Operand& o = *std::ranges::find(operands, letter, &Operand::letter);
    if (!o.contents.empty()) {
      onnx::Tensor& t = g.initializers.emplace_back();
      t.name = name;
      t.data_type = o.type;
      t.dims = o.dims;
      t.raw = std::as_bytes(std::span(o.contents));
      return;
    }
    onnx::ValueInfo& v = g.inputs.emplace_back();
    v.name = name;
    v.kind = onnx::ValueInfo::Kind::tensor;
    v.data_type = o.type;
    v.has_shape = true;
    for (std::int64_t n : o.dims) v.sizes.push_back({n, {}});
  }
};

bool is_plumbing(const Op* op) {
  return op == &ops::param || op == &ops::constant || op == &ops::dims;
}

// The operations that a probe becomes; empty when it is rejected.
std::optional<std::vector<const Op*>> imported(const onnx::Model& model) {
  const ImportOptions options;
  onnx::TensorFiles files(nullptr);
  const onnx::Source source(model, files, options);
  onnx::Reading reading{source, onnx::Assumptions({})};
  Function f;
  try {
    f = onnx::read_function(reading);
  } catch (const InternalError&) {
    throw;
  } catch (...) {  // rejected, or requires a second reading
    return std::nullopt;
  }
  if (!reading.failures.empty() || reading.missing_operators > 0) return std::nullopt;
  std::vector<const Op*> out;
  for (const NodeId id : live_nodes(f)) {
    const Op* op = &f.graph().op(id);
    if (!is_plumbing(op) && std::ranges::find(out, op) == out.end()) out.push_back(op);
  }
  return out;
}

// The first probe that is imported and computes something; smaller ones show less.
std::vector<const Op*> becomes(const onnx::ImportEntry& entry) {
  for (const Attributes& attributes : attribute_lists)
    for (std::string_view list : operand_lists)
      if (auto found = imported(Probe(entry, list, attributes).model); found && !found->empty())
        return *found;
  return {};
}

}  // namespace

std::vector<OnnxOperator> onnx_operators() {
  std::vector<OnnxOperator> out;
  for (const onnx::ImportEntry* e : onnx::all_imports()) {
    const bool is_open = e->until >= onnx::ImportEntry::newest_opset;
    out.push_back({e->op, e->domain.empty() ? "ai.onnx" : e->domain, e->since,
                   is_open ? std::nullopt : std::optional(e->until), becomes(*e)});
  }
  out.push_back({"If", "ai.onnx", 1});  // the walk over a model chooses a branch or keeps both
  std::ranges::stable_sort(out, {},
                           [](const OnnxOperator& o) { return std::pair(o.domain, o.name); });
  return out;
}

}  // namespace hone
