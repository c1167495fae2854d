#include "import/onnx/node/context.h"

#include <algorithm>

#include "base/amount.h"
#include "import/onnx/node/known.h"

namespace hone::onnx {

bool Assumptions::holds(const Dim& condition) const {
  if (condition.is_number()) return condition.number() != 0;
  for (const Assumption& a : list_)
    if (a.condition == condition) return a.holds;
  throw OpenQuestion{condition};
}

bool Assumptions::take_as_equal(const Dim& a, const Dim& b) const {
  if (!are_equal_) return false;
  if (const Dim both = equal(a, b);
      std::ranges::find(taken_as_equal_, both) == taken_as_equal_.end())
    taken_as_equal_.push_back(both);
  return true;
}

std::optional<Dim> Assumptions::all_equal() const {
  if (taken_as_equal_.empty()) return std::nullopt;
  return product(taken_as_equal_);
}

void NodeContext::fail(std::string_view why) const { throw UserError(why); }

void NodeContext::unsupported(std::string_view why) const { throw Unsupported(why); }

void NodeContext::bad_input(std::size_t i, std::string_view name, std::string_view expected) const {
  fail(cat("input ", i, " ('", name, "') is ", in(i).type(), ", expected ", expected));
}

std::string NodeContext::input_text(std::size_t i) const {
  if (i >= node_.inputs.size() || node_.inputs[i].empty()) return cat("input ", i);
  return cat("input ", i, " (value '", node_.inputs[i], "')");
}

Value NodeContext::in(std::size_t i) const {
  if (!has(i)) fail(cat("input ", i, " is missing; it is required here"));
  return inputs_[i];
}

Values NodeContext::all_inputs() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) in(i);
  if (inputs_.empty()) fail("the node has no inputs, expected at least one");
  return inputs_;
}

namespace {

std::string kind_name(std::int32_t kind) {
  constexpr std::string_view names[] = {"undefined",
                                        "a float",
                                        "an integer",
                                        "a string",
                                        "a tensor",
                                        "a graph",
                                        "a list of floats",
                                        "a list of integers",
                                        "a list of strings",
                                        "a list of tensors",
                                        "a list of graphs",
                                        "a sparse tensor",
                                        "a list of sparse tensors",
                                        "a type",
                                        "a list of types"};
  if (kind < 0 || kind >= static_cast<std::int32_t>(std::size(names)))
    return cat("of the unknown type ", kind);
  return std::string(names[kind]);
}

}  // namespace

// The oldest files do not state the attribute's kind.
const Attribute* NodeContext::find(std::string_view name, Attribute::Kind kind) {
  const Attribute* a = node_.find(name);
  if (!a) return nullptr;
  read_[static_cast<std::size_t>(a - node_.attributes.data())] = true;
  auto expected = static_cast<std::int32_t>(kind);
  if (a->kind != expected && a->kind != 0)
    fail(cat("attribute '", name, "' is ", kind_name(a->kind), ", expected ", kind_name(expected)));
  return a;
}

std::int64_t NodeContext::integer(std::string_view name, std::int64_t fallback) {
  const Attribute* a = find(name, Attribute::Kind::integer);
  return a ? a->integer : fallback;
}

double NodeContext::real(std::string_view name, double fallback) {
  const Attribute* a = find(name, Attribute::Kind::real);
  return a ? double{a->real} : double{static_cast<float>(fallback)};
}

std::string_view NodeContext::text(std::string_view name, std::string_view fallback) {
  const Attribute* a = find(name, Attribute::Kind::text);
  return a ? a->text : fallback;
}

std::optional<std::vector<std::int64_t>> NodeContext::integers(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::integers);
  return a ? std::optional(a->integers) : std::nullopt;
}

std::optional<std::vector<float>> NodeContext::reals(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::reals);
  return a ? std::optional(a->reals) : std::nullopt;
}

std::optional<std::vector<std::string_view>> NodeContext::texts(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::texts);
  return a ? std::optional(a->texts) : std::nullopt;
}

std::optional<Array> NodeContext::tensor(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::tensor);
  if (!a) return std::nullopt;
  if (!a->tensor) fail(cat("attribute '", name, "' has no value, expected a tensor"));
  return place_.files.array(*a->tensor);
}

std::optional<Array> NodeContext::sparse(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::sparse);
  if (!a) return std::nullopt;
  if (!a->sparse) fail(cat("attribute '", name, "' has no value, expected a tensor"));
  return place_.files.array(*a->sparse);
}

DType NodeContext::dtype(std::string_view name) {
  if (!has_attribute(name)) fail(cat("attribute '", name, "' is missing; it is required"));
  auto number = static_cast<std::int32_t>(integer(name, 0));
  if (std::optional<DType> t = dtype_of(number)) return *t;
  unsupported(
      cat("attribute '", name, "' is ", data_type_name(number), ", a type that is not supported"));
}

const onnx::Graph& NodeContext::body(std::string_view name) {
  const Attribute* a = find(name, Attribute::Kind::graph);
  if (!a || !a->graph)
    fail(cat("attribute '", name, "' is missing or has no value, expected a graph"));
  return *a->graph;
}

void NodeContext::ignore(std::string_view name) {
  if (const Attribute* a = node_.find(name))
    read_[static_cast<std::size_t>(a - node_.attributes.data())] = true;
}

void NodeContext::check_all_read() const {
  for (std::size_t i = 0; i < read_.size(); ++i)
    if (!read_[i])
      unsupported(cat("attribute '", node_.attributes[i].name, "' does not exist in opset ", opset_,
                      ", or appears twice"));
  for (std::size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i] && inputs_[i]) fail(cat(input_text(i), " does not exist in opset ", opset_));
}

Dims NodeContext::contents(std::size_t input) const {
  Value v = in(input);
  if (is_float(v.dtype())) fail(cat(input_text(input), " is ", v.type(), ", expected integers"));
  if (std::optional<Dims> dims = contents_of(v)) return *dims;
  const Array a = array(input);
  Dims dims;
  for (std::int64_t i = 0; i < a.count(); ++i) dims.push_back(a.integer(i));
  return dims;
}

Dim NodeContext::measured(Value n, const Dim& most) const {
  if (std::optional<Array> known = known_array(n)) {
    const std::int64_t size = known->integer(0);
    if (size < 0 || (Dim(size) - most).low() > 0)
      fail(cat("a size is ", size, ", expected 0 to ", most));
    return size;
  }
  return place_.bodies.measured(cast_to(reshape_to(n, {}), DType::i64), most, node_name());
}

namespace {

// The parts of a list, so that known parts stay known.
Values parts_of(Value list) {
  if (!list.is(ops::concat)) return {flatten(list)};
  Values out;
  for (const Value& v : list.operands())
    for (const Value& part : parts_of(v)) out.push_back(part);
  return out;
}

bool is_known(Value v) { return contents_of(v) || known_array(v); }

}  // namespace

Dim NodeContext::open_limit(std::size_t open) const {
  if (const std::optional<std::int64_t> stated = place_.bodies.stated_limit(node_name()))
    return *stated;
  return open <= 1 ? most_open_size : std::int64_t{1} << std::max<std::size_t>(24 / open, 1);
}

bool NodeContext::knows(std::size_t input) const { return is_known(in(input)); }

bool NodeContext::decides(std::size_t input) const {
  if (knows(input)) return false;
  place_.bodies.ask_for_contents(in(input));
  return true;
}

std::int64_t NodeContext::count_of_variant(const Dim& count, std::int64_t most,
                                           std::string_view what) const {
  for (std::int64_t n = std::max<std::int64_t>(count.low(), 0); n <= most; ++n)
    if (assumptions().holds(equal(count, n))) return n;
  fail(cat("the number of ", what, " is ", count, ", expected at most ", most));
}

Value NodeContext::list_of_variant(Value list, std::int64_t most, std::string_view what) const {
  const Dim count = list.shape().count();
  const std::int64_t n = count_of_variant(count, most, what);
  graph().require_equal(count, n, cat("the number of ", what, " is ", count, ", expected ", n));
  return reshape_to(list, {n});
}

std::vector<NodeContext::Element> NodeContext::elements(std::size_t input) const {
  constexpr std::int64_t most_elements = 64;
  Value v = in(input);
  if (is_float(v.dtype())) fail(cat(input_text(input), " is ", v.type(), ", expected integers"));
  if (!v.shape().count().is_number() && decides(input))
    v = list_of_variant(v, most_open_rank, "sizes");
  const std::optional<std::int64_t> count = v.shape().count().as_number();
  std::vector<Element> out;
  if (!count || *count > most_elements || !decides(input)) {
    for (const Dim& d : contents(input)) out.push_back({d, {}});
    return out;
  }
  for (const Value& part : parts_of(v)) {
    const std::int64_t n = part.shape().count().number();
    std::optional<Dims> known = contents_of(part);
    for (std::int64_t i = 0; i < n; ++i)
      out.push_back(known ? Element{(*known)[static_cast<std::size_t>(i)], {}}
                          : Element{{}, cast_to(take_axis(part, 0, i), DType::i64)});
  }
  return out;
}

Dims NodeContext::open_contents(std::size_t input, const Dims& most) const {
  const std::vector<Element> all = elements(input);
  const auto unknown = static_cast<std::size_t>(
      std::ranges::count_if(all, [](const Element& e) { return !e.known; }));
  Dims out;
  for (const Element& e : all)
    out.push_back(e.known ? *e.known
                          : measured(e.open, out.size() < most.size() ? most[out.size()]
                                                                      : open_limit(unknown)));
  return out;
}

Dim NodeContext::open_size(std::size_t input, const Dim& most) const {
  Dims dims = open_contents(input, {most});
  if (dims.size() != 1)
    fail(cat(input_text(input), " has ", amount(dims.size(), "element", "elements"),
             ", expected one"));
  return dims[0];
}

std::vector<std::int64_t> NodeContext::numbers(std::size_t input) const {
  std::vector<std::int64_t> out;
  for (const Dim& d : contents(input)) {
    if (!d.is_number())
      unsupported(cat(input_text(input), " contains the open size ", d,
                      ", expected constants; give the size with --dim"));
    out.push_back(d.number());
  }
  return out;
}

Dim NodeContext::size(std::size_t input) const {
  Dims dims = contents(input);
  if (dims.size() != 1)
    fail(cat(input_text(input), " has ", amount(dims.size(), "element", "elements"),
             ", expected one"));
  return dims[0];
}

std::int64_t NodeContext::number(std::size_t input) const {
  Dim d = size(input);
  if (!d.is_number())
    unsupported(cat(input_text(input), " is the open size ", d,
                    ", expected a constant; give the size with --dim"));
  return d.number();
}

Array NodeContext::array(std::size_t input) const {
  if (std::optional<Array> a = known_array(in(input))) return *a;
  depends_on_data(input);
}

double NodeContext::real_number(std::size_t input) const {
  Array a = array(input);
  if (a.count() != 1)
    fail(cat(input_text(input), " has ", amount(a.count(), "element", "elements"),
             ", expected one"));
  return a.real(0);
}

void NodeContext::depends_on_data(std::size_t input) const {
  throw DependsOnData(in(input), input_text(input),
                      " depends on data; it must be constant or computed from sizes");
}

std::optional<std::vector<std::int64_t>> NodeContext::list(std::string_view name,
                                                           std::size_t input) {
  if (auto attribute = integers(name)) return attribute;
  if (has(input)) return numbers(input);
  return std::nullopt;
}

Axes NodeContext::axes(const std::vector<std::int64_t>& list, int rank) const {
  Axes out;
  for (std::int64_t a : list) out.push_back(axis(a, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    fail(cat("axes ", Shape(dims_of(list)), " name one axis twice"));
  return out;
}

}  // namespace hone::onnx
