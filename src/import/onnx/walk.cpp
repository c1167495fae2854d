#include "import/onnx/walk.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "base/amount.h"
#include "base/checked.h"
#include "import/common/build.h"
#include "import/onnx/declared.h"
#include "import/onnx/dtypes.h"
#include "import/onnx/file/sorted.h"
#include "import/onnx/given_weights.h"
#include "import/onnx/input_types.h"
#include "import/onnx/node/known.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/operators/sequence.h"
#include "import/onnx/unsupported.h"
#include "ir/located.h"
#include "ir/measured.h"

namespace hone::onnx {

bool Reading::is_unsupported() const {
  return missing_operators > 0 || std::any_of(failures.begin(), failures.end(),
                                              [](const Failure& f) { return f.unsupported; });
}

namespace {

// A limit was exceeded: reading on would only take time.
struct PastLimit : UserError {
  using UserError::UserError;
};

// The context of a graph or a function body: how its nodes are interpreted and who called it.
struct Frame {
  const std::vector<Opset>* opsets;
  std::map<std::string_view, const Attribute*> attributes = {};  // of the call, by name
  const Frame* caller = nullptr;
  Origin call = {};  // the calling node, in the caller
  int depth = 0;

  // The outermost call: the model's node that contains everything inside.
  const Origin& root() const {
    const Frame* f = this;
    while (f->caller->caller) f = f->caller;
    return f->call;
  }
};

// Walks one graph (the model's, a branch, a function body) into a Function.
class Walk : public Bodies {
 public:
  Walk(Reading& reading, const Frame& frame, Function& function, Walk* outer)
      : reading_(reading), frame_(frame), function_(function), outer_(outer) {}

  void inputs(const onnx::Graph& g);
  Value input(const ValueInfo& v, const Type& type);
  Value input_elements(const ValueInfo& v);
  void initializers(const onnx::Graph& g);
  void nodes(const std::vector<Node>& nodes);
  // The value of a graph output. Invalid if it depends on a failure.
  Value output(std::string_view name);

  // Empty: no such name. Invalid: it depends on a failure. A value of an enclosing Function becomes
  // a parameter of this one.
  std::optional<Value> find(std::string_view name);
  void define(std::string_view name, Value v);
  // Outer values that became parameters, in the order of the parameters.
  const Values& captures() const { return captures_; }
  // From this graph, its branches and the functions that it calls.
  std::optional<Dumped> find_to_dump(const std::string& name);

 private:
  hone::Graph& graph() const { return function_.graph(); }
  Value capture(Value v, std::string_view name);
  void ask_for_contents(Value v) const override;
  std::optional<std::int64_t> stated_limit(std::string_view node) const override;
  bool is_of_inputs(const Dim& d) const override;
  std::optional<Value> named(std::string_view name) override { return find(name); }
  Dim measured(Value n, const Dim& most, std::string_view node) override;
  Dim new_size(std::int64_t low, std::int64_t high, std::string_view node) override;
  // Whether the caller specifies the input although it has an initializer.
  bool is_replaced(std::string_view input) const {
    const ImportOptions& o = reading_.source.options;
    return o.contents.contains(std::string(input)) || o.shapes.contains(std::string(input));
  }
  bool is_given(std::string_view name) const { return given_.contains(name); }
  bool is_absent(std::string_view name) const {
    return absent_.contains(name) || (outer_ && !values_.contains(name) && outer_->is_absent(name));
  }
  void node(const std::vector<Node>& nodes, std::size_t index);
  void check_count(std::int64_t nodes) const;
  std::optional<Values> operands(const std::vector<Node>& nodes, std::size_t index);
  Values results(const Node& n, std::int64_t index, Values operands);
  // Calls and branches recurse through results(); a separate function keeps its stack frame small.
  [[gnu::noinline]] Values import(const Node& n, Values operands);
  Body closed(const onnx::Graph&, const std::vector<Type>& inputs,
              const std::set<std::size_t>& stacks) override;
  Values inlined(const onnx::Graph&, const Values& inputs) override;
  void bind_inputs(const onnx::Graph&, const Values& inputs);
  Place place();
  Values call(const Node& n, std::int64_t index, const LocalFunction& f, const Values& operands);
  [[gnu::noinline]] Values choose(const Node& n, Values operands);
  Values inlined(const onnx::Graph& g);
  Values by_data(NodeContext&, Value condition, const onnx::Graph& yes, const onnx::Graph& no);
  void keep_to_dump(const Walk& inner, const std::string& prefix);
  Node bound(const Node& n) const;

  Reading& reading_;
  const Frame& frame_;
  Function& function_;
  Walk* outer_;
  std::unordered_map<std::string_view, Value> values_;
  std::unordered_map<std::string, Dumped> inner_;  // of branches and calls; for `dump`
  Values captures_;
  std::size_t first_capture_ = 0;      // the parameter of the first capture
  std::set<std::string_view> given_;   // inputs that replace initializers
  std::set<std::string_view> absent_;  // inputs of a function that the call omits
  std::unordered_map<std::string_view, const ValueInfo*> declared_;  // inputs with an initializer
};

// ==== names

void Walk::define(std::string_view name, Value v) {
  if (name.empty()) return;
  if (!values_.emplace(name, v).second)
    throw UserError("value '", name, "' is defined twice in one graph; names must be unique");
}

// Constants and sizes are created again, so that values derived from them stay known inside; so are
// sequences and optionals, from their elements.
Value Walk::capture(Value v, std::string_view name) {
  if (is_carried(v))
    throw Unsupported(
        "value '", name,
        "': a graph inside the body of a loop uses a sequence that the loop carries for "
        "more iterations than are unrolled");
  if (!v.type().is_tensor()) {
    Values elements;
    for (const Value& e : v.operands())
      elements.push_back(capture(e, cat(name, ".", elements.size())));
    return graph().intern(v.op(), elements, v.attrs());
  }
  if (v.op().kind == OpKind::leaf && !v.is(ops::param))
    return graph().intern(v.op(), {}, v.attrs());
  captures_.push_back(v);
  return function_.add_param(v.type(), std::string(name));
}

// Throws NeedsContents when given input contents may determine v. Only values that determine sizes
// and shapes of results are requested, and these are small.
void Walk::ask_for_contents(Value v) const {
  constexpr std::int64_t most_elements = 64;
  NeedsContents needed;
  const Walk* w = this;
  for (Values params = params_of(v); !params.empty();) {
    while (w->outer_ && &w->outer_->graph() == &w->graph()) w = w->outer_;
    Values further;
    for (const Value& p : params) {
      const auto index = static_cast<std::size_t>(p.attrs().integer("index"));
      if (w->outer_) {
        if (index < w->first_capture_) return;
        for (const Value& q : params_of(w->captures_[index - w->first_capture_]))
          further.push_back(q);
        continue;
      }
      const std::string& name = w->function_.params()[index].name;
      auto given = reading_.source.options.contents.find(name);
      if (given == reading_.source.options.contents.end() || p.rank() > 1 ||
          p.dtype() == DType::text || given->second.count() > most_elements ||
          reading_.read_inputs.contains(name))
        return;
      needed.inputs.push_back(name);
    }
    params = std::move(further);
    w = w->outer_;
  }
  if (!needed.inputs.empty()) throw needed;
}

constexpr std::string_view measured_ending = ".n";

std::string measured_name(std::string_view node) {
  return cat(fit_size_name(node), measured_ending);
}

// Whether a node may measure a size of that name: NAME.n, or NAME.n_2, ... if it measures several.
bool may_be_measured(std::string_view name) {
  const std::string_view stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
  if (stem.size() < name.size() && stem.ends_with('_')) name = stem.substr(0, stem.size() - 1);
  return name.ends_with(measured_ending);
}

std::optional<std::int64_t> Walk::stated_limit(std::string_view node) const {
  const std::map<std::string, ImportOptions::Range>& dims = reading_.source.options.dims;
  const auto given = dims.find(measured_name(node));
  return given == dims.end() ? std::nullopt : std::optional(given->second.high);
}

bool Walk::is_of_inputs(const Dim& d) const {
  return d.is_number() || std::ranges::none_of(d.symbols(), [&](const Dim& s) {
           return reading_.measured.contains(s.name());
         });
}

Dim Walk::new_size(std::int64_t low, std::int64_t high, std::string_view node) {
  constexpr std::size_t most_measured = 4096;
  if (reading_.measured.size() >= most_measured)
    throw UserError("the model has more than ", most_measured,
                    " sizes that depend on data; at most ", most_measured, " are supported");
  const std::string name = unused_name(measured_name(node), reading_.sizes);
  reading_.measured.insert(name);
  const std::map<std::string, ImportOptions::Range>& dims = reading_.source.options.dims;
  if (const auto given = dims.find(name); given != dims.end())
    high = std::max(high, given->second.high);
  return Dim::symbol(name, low, high);
}

Dim Walk::measured(Value n, const Dim& most, std::string_view node) {
  const std::int64_t bound = std::max<std::int64_t>(most.high(), 0);
  const Dim size = new_size(0, bound, node);
  ops::measure(n,
               {{"symbol", Dims{size}}, {"high", Dims{size.high() > bound ? size.high() : most}}});
  return size.low() == size.high() ? Dim(size.low()) : size;
}

std::optional<Value> Walk::find(std::string_view name) {
  if (auto it = values_.find(name); it != values_.end()) return it->second;
  if (!outer_) return std::nullopt;
  std::optional<Value> v = outer_->find(name);
  if (!v || !*v || &v->graph() == &graph()) return v;
  Value here = capture(*v, name);
  values_.emplace(name, here);
  return here;
}

Value Walk::output(std::string_view name) {
  std::optional<Value> v = find(name);
  if (v) return *v;
  reading_.failures.push_back({cat("graph output '", name, "' is not computed by any node")});
  return {};
}

std::optional<Dumped> Walk::find_to_dump(const std::string& name) {
  if (auto it = values_.find(name); it != values_.end()) return Dumped{it->second, {}};
  auto it = inner_.find(name);
  return it == inner_.end() ? std::nullopt : std::optional(it->second);
}

// Keeps the named values of `inner`, a part of this function.
void Walk::keep_to_dump(const Walk& inner, const std::string& prefix) {
  if (reading_.source.options.dump.empty()) return;
  for (const auto& [name, v] : inner.values_) inner_.try_emplace(cat(prefix, name), Dumped{v, {}});
  for (const auto& [name, v] : inner.inner_) inner_.try_emplace(prefix + name, v);
}

// ==== nodes

void Walk::initializers(const onnx::Graph& g) {
  const auto add = [&](std::string_view name, const auto& tensor) {
    if (is_given(name)) return;
    try {
      std::optional<Array> given;
      if constexpr (std::is_same_v<std::decay_t<decltype(tensor)>, Tensor>)
        given = given_weight(reading_.source.options, tensor);
      Value v = constant_value(graph(), given ? *given : reading_.source.files.array(tensor));
      if (const auto it = declared_.find(name);
          it != declared_.end() && !fits(*it->second, v.type()))
        throw UserError("initializer '", name, "' is ", v.type(),
                        ", but the input of this name is declared ", text_of(*it->second),
                        "; correct the one that is wrong");
      define(name, v);
    } catch (const UserError& e) {
      values_.emplace(name, Value());
      reading_.failures.push_back({e.what()});
    }
  };
  for (const Tensor& t : g.initializers) add(t.name, t);
  for (const SparseTensor& t : g.sparse_initializers) add(t.values.name, t);
}

void Walk::nodes(const std::vector<Node>& nodes) {
  values_.reserve(values_.size() + nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) node(nodes, i);
}

// Checks the bytes of values with known sizes; others are checked once their sizes are known.
void check_size(const Value& v, std::int64_t most) {
  std::int64_t bytes = byte_size(v.dtype());
  for (const Dim& d : v.shape().dims) {
    if (!d.is_number()) continue;
    std::optional<std::int64_t> more = try_mul(bytes, d.number());
    if (!more)
      throw UserError(
          "a result is ", v.type(),
          ", whose size in bytes does not fit in 64 bits; is a size in the model wrong?");
    bytes = *more;
  }
  if (bytes > most)
    throw UserError("a result is ", v.type(), " of ", amount(bytes, "byte", "bytes"),
                    ", expected at most ", most, "; give smaller sizes or raise the limit");
}

void Walk::check_count(std::int64_t nodes) const {
  if (nodes <= reading_.source.options.most_nodes) return;
  throw PastLimit("the model has more than ", reading_.source.options.most_nodes,
                  " nodes with its functions expanded; raise the limit if that is intended");
}

Origin origin_of(const Node& n, std::int64_t index) {
  return {index, std::string(node_name(n)), std::string(n.op)};
}

// Records errors and continues; values that are not computed are defined as invalid.
void Walk::node(const std::vector<Node>& nodes, std::size_t index) {
  const Node& n = nodes[index];
  check_count(++reading_.nodes);
  const std::int64_t number = place_of(n, index);
  std::vector<Origin> origins;
  origins.reserve(2);
  if (frame_.caller) origins.push_back(frame_.root());
  origins.push_back(origin_of(n, number));
  OriginScope scope(graph(), graph().origin_list(std::move(origins)));
  Values made;
  try {
    if (std::optional<Values> given = operands(nodes, index))
      made = results(n, number, std::move(*given));
    else
      ++reading_.left_out;
    for (const Value& v : made)
      if (v) check_size(v, reading_.source.options.most_value_bytes);
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
      define(n.outputs[i], i < made.size() ? made[i] : Value());
  } catch (const NotRead&) {
    for (std::string_view name : n.outputs) values_.emplace(name, Value());
  } catch (OpenQuestion& q) {
    // Variants are chosen before a run, so run-time values come too late.
    std::string asked;
    for (const Dim& s : q.condition.symbols())
      if (reading_.measured.contains(s.name())) asked = s.name();
    if (q.asker.empty()) q.asker = cat(origin_of(n, number));
    if (asked.empty()) throw;
    reading_.failures.push_back(
        {cat(q.asker, ": a rank depends on whether ", q.condition, ", but the size ", asked,
             " is known only when the model runs; ranks must be known before"),
         true});
    for (std::string_view name : n.outputs) values_.emplace(name, Value());
  } catch (const PastLimit&) {
    throw;
  } catch (const UserError& e) {
    auto* depends = dynamic_cast<const DependsOnData*>(&e);
    if (depends) ask_for_contents(depends->value);
    bool unsupported = dynamic_cast<const Unsupported*>(&e);
    std::string where = cat(origin_of(n, number));
    for (const Frame* f = &frame_; f->caller; f = f->caller) where += cat(", called by ", f->call);
    reading_.failures.push_back({located(where, n.op, e.what()), unsupported, depends != nullptr});
    for (std::string_view name : n.outputs) values_.emplace(name, Value());
  }
}

// Empty when an operand depends on a failure: this node is skipped silently.
std::optional<Values> Walk::operands(const std::vector<Node>& nodes, std::size_t index) {
  Values out;
  out.reserve(nodes[index].inputs.size());
  bool good = true;
  for (std::string_view name : nodes[index].inputs) {
    const bool is_left_out = name.empty() || is_absent(name);
    std::optional<Value> v = is_left_out ? Value() : find(name);
    if (!v && !reading_.source.model.is_sorted) throw NotSorted();
    if (!v) throw UserError("input '", name, "' ", reading_.undefined.why(nodes, index, name));
    good = good && (*v || is_left_out);
    out.push_back(*v);
  }
  if (!good) return std::nullopt;
  while (!out.empty() && !out.back()) out.pop_back();
  return out;
}

Values Walk::results(const Node& n, std::int64_t index, Values operands) {
  bool refers = std::any_of(n.attributes.begin(), n.attributes.end(),
                            [](const Attribute& a) { return !a.reference.empty(); });
  if (refers) return results(bound(n), index, std::move(operands));
  if (const LocalFunction* f = reading_.source.local_function(n))
    return call(n, index, *f, operands);
  if (normal_domain(n.domain).empty() && n.op == "If") return choose(n, std::move(operands));
  return import(n, std::move(operands));
}

// Sequences and optionals are only allowed for operators that support them, bodies, and Identity.
void check_tensors(const Node& n, const ImportEntry& entry, const Values& operands) {
  auto holds = [&](std::span<const ImportEntry> table) {
    return &entry >= table.data() && &entry < table.data() + table.size();
  };
  if (n.op == "Identity" || holds(sequence_imports()) || holds(loop_imports())) return;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && !operands[i].type().is_tensor())
      throw UserError("input ", i, " (value '", n.inputs[i], "') is ", operands[i].type(),
                      ", expected a tensor");
}

Values Walk::import(const Node& n, Values operands) {
  const std::int64_t opset = opset_of(*frame_.opsets, n.domain);
  const ImportEntry* entry = find_import(normal_domain(n.domain), n.op, opset);
  if (!entry) {
    ++reading_.missing_operators;
    return {};
  }
  if (reading_.source.observer) reading_.source.observer(n, *frame_.opsets, operands);
  check_tensors(n, *entry, operands);
  check_dtypes(n, opset, operands);
  const Place here = place();
  NodeContext context(n, opset, std::move(operands), here);
  Values out = entry->same ? import_same(context, *entry->same) : entry->import(context);
  context.check_all_read();
  for (std::size_t i = out.size(); i < n.outputs.size(); ++i)
    if (context.wants(i))
      context.unsupported(
          cat("output ", i, " ('", n.outputs[i], "') of this operator is not supported"));
  return out;
}

Place Walk::place() {
  return {graph(), reading_.source.files, reading_.assumptions,
          *this,   reading_.nodes,        reading_.turns};
}

// ==== graphs that nodes hold

void Walk::bind_inputs(const onnx::Graph& g, const Values& inputs) {
  if (g.inputs.size() != inputs.size())
    throw UserError("graph '", g.name, "' has ", amount(g.inputs.size(), "input", "inputs"),
                    ", expected ", inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) define(g.inputs[i].name, inputs[i]);
}

Body Walk::closed(const onnx::Graph& g, const std::vector<Type>& inputs,
                  const std::set<std::size_t>& stacks) {
  const std::size_t failures = reading_.failures.size(), missing = reading_.missing_operators;
  Body out{std::make_shared<Function>(), {}};
  Walk inner(reading_, frame_, *out.function, this);
  Values params;
  for (const Type& t : inputs) {
    const Value v = out.function->add_param(t, "");
    const bool is_stack = stacks.contains(params.size());
    params.push_back(is_stack ? stacked_sequence(out.function->graph(), v) : v);
  }
  inner.first_capture_ = params.size();
  inner.bind_inputs(g, params);
  inner.initializers(g);
  inner.nodes(g.nodes);
  bool is_whole = true;  // an output may be an outer value that failed before
  for (const ValueInfo& v : g.outputs) {
    const Value found = inner.output(v.name);
    if (found) out.function->add_result(found, std::string(v.name));
    is_whole = is_whole && found;
  }
  if (!is_whole || reading_.failures.size() != failures || reading_.missing_operators != missing)
    throw NotRead();
  out.captures = inner.captures_;
  return out;
}

Values Walk::inlined(const onnx::Graph& g, const Values& inputs) {
  const std::size_t failures = reading_.failures.size(), missing = reading_.missing_operators;
  Walk inner(reading_, frame_, function_, this);
  inner.bind_inputs(g, inputs);
  inner.initializers(g);
  inner.nodes(g.nodes);
  Values results;
  bool is_whole = true;
  for (const ValueInfo& v : g.outputs) {
    results.push_back(inner.output(v.name));
    is_whole = is_whole && results.back();
  }
  if (!is_whole || reading_.failures.size() != failures || reading_.missing_operators != missing)
    throw NotRead();
  return results;
}

// ==== functions of the model

// The node with references to the caller's attributes resolved; absent ones are removed.
Node Walk::bound(const Node& n) const {
  Node out = n;
  std::erase_if(out.attributes, [&](const Attribute& a) {
    return !a.reference.empty() && !frame_.attributes.contains(a.reference);
  });
  for (Attribute& a : out.attributes) {
    if (a.reference.empty()) continue;
    std::string_view name = a.name;
    a = *frame_.attributes.at(a.reference);
    a.name = name;
    a.reference = {};
  }
  return out;
}

Frame frame_of_call(const Frame& caller, const Node& n, const LocalFunction& f) {
  Frame frame{.opsets = &f.opsets, .caller = &caller, .depth = caller.depth + 1};
  for (const Attribute& a : f.defaults) frame.attributes[a.name] = &a;
  for (const Attribute& a : n.attributes) frame.attributes[a.name] = &a;
  return frame;
}

Values Walk::call(const Node& n, std::int64_t index, const LocalFunction& f,
                  const Values& operands) {
  if (frame_.depth >= most_calls)
    throw PastLimit(cat(origin_of(n, index)),
                    ": calls of the model's functions are nested more than ", most_calls,
                    " deep; does one call itself?");
  if (operands.size() > f.inputs.size())
    throw UserError("the node has ", amount(operands.size(), "input", "inputs"),
                    ", but its function takes ", f.inputs.size());
  if (f.outputs.empty())
    throw UserError("its function has no outputs, so the call computes nothing");
  check_count(reading_.nodes + reading_.source.nodes_of_call.at(&f));
  Frame frame = frame_of_call(frame_, n, f);
  frame.call = origin_of(n, index);
  Walk inner(reading_, frame, function_, nullptr);
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    if (i < operands.size() && operands[i])
      inner.define(f.inputs[i], operands[i]);
    else
      inner.absent_.insert(f.inputs[i]);
  }
  inner.nodes(f.nodes);
  Values out;
  for (std::string_view name : f.outputs) out.push_back(inner.output(name));
  keep_to_dump(inner, cat(node_name(n), "/"));
  return out;
}

// ==== If

Values Walk::choose(const Node& n, Values operands) {
  const Place here = place();
  NodeContext context(n, opset_of(*frame_.opsets, ""), std::move(operands), here);
  const onnx::Graph &yes = context.body("then_branch"), &no = context.body("else_branch");
  Value condition = context.in(0);
  context.check_all_read();
  if (condition.dtype() != DType::b1) context.bad_input(0, "cond", "one bool");
  std::optional<Dims> known = contents_of(condition);
  // Choosing sequences and optionals at run time is avoided where possible.
  auto is_list = [](const ValueInfo& v) {
    return v.kind == ValueInfo::Kind::sequence || v.kind == ValueInfo::Kind::optional;
  };
  if (std::ranges::any_of(yes.outputs, is_list) && !context.decides(0)) known = context.contents(0);
  if (known && known->size() == 1)
    return inlined(reading_.assumptions.holds((*known)[0]) ? yes : no);
  return by_data(context, reshape_to(condition, {}), yes, no);
}

Values Walk::inlined(const onnx::Graph& g) {
  Walk inner(reading_, frame_, function_, this);
  inner.initializers(g);
  inner.nodes(g.nodes);
  Values results;
  for (const ValueInfo& v : g.outputs) results.push_back(inner.output(v.name));
  keep_to_dump(inner, "");
  return results;
}

// Failures since `failures_before` make the branch refused; unsupported features stay recorded.
void settle(Reading& reading, Branch& b, std::size_t failures_before, std::size_t missing_before) {
  auto first = reading.failures.begin() + static_cast<std::ptrdiff_t>(failures_before);
  auto last = reading.failures.end();
  b.failed = reading.missing_operators > missing_before ||
             std::any_of(first, last, [](const Failure& f) { return f.unsupported; });
  if (b.failed || first == last) return;
  std::string why = first->what;
  reading.failures.erase(first, last);
  b = {};
  b.refused = std::move(why);
}

Branch read_branch(Reading& reading, const Frame& frame, const onnx::Graph& g, Walk* outer) {
  const std::size_t failures = reading.failures.size(), missing = reading.missing_operators;
  Branch b;
  Walk inner(reading, frame, b.function, outer);
  inner.initializers(g);
  inner.nodes(g.nodes);
  bool is_whole = true;  // an output may depend on an outer value that failed before
  for (const ValueInfo& v : g.outputs) {
    const Value found = inner.output(v.name);
    if (found) b.outputs.push_back({found, std::string(v.name)});
    is_whole = is_whole && found;
  }
  for (const std::string& name : reading.source.options.dump)
    if (std::optional<Dumped> found = inner.find_to_dump(name))
      if (found->value && found->value.type().is_tensor()) b.dumped.emplace(name, *found);
  b.captures = inner.captures();
  settle(reading, b, failures, missing);
  b.failed = b.failed || (b.refused.empty() && !is_whole);
  return b;
}

Values Walk::by_data(NodeContext& context, Value condition, const onnx::Graph& yes,
                     const onnx::Graph& no) {
  Branch a = read_branch(reading_, frame_, yes, this), b = read_branch(reading_, frame_, no, this);
  if (a.failed || b.failed) return {};
  if (!a.refused.empty() && !b.refused.empty())
    throw UserError("both branches are invalid: then_branch: ", a.refused,
                    "; else_branch: ", b.refused);
  std::vector<std::string> dumped;
  for (const std::string& name : reading_.source.options.dump)
    if (a.dumped.contains(name) || b.dumped.contains(name)) dumped.push_back(name);
  const std::vector<OutputForm> forms = [&] {
    try {
      return add_outputs(a, b);
    } catch (const Unsupported& e) {
      throw DependsOnData(condition, e.what());
    }
  }();
  for (const std::string& name : dumped) add_dumped(name, a, b);
  for (Branch* one : {&a, &b}) {
    if (one->refused.empty()) continue;
    reading_.warnings.push_back(
        cat("one branch of an If is invalid, and a run that takes it fails: ", one->refused));
    refuse_like(*one, one == &a ? b.function : a.function);
  }
  Values all = a.captures;
  for (const Value& v : b.captures)
    if (std::find(all.begin(), all.end(), v) == all.end()) all.push_back(v);
  // In order of definition, not of first use in the branches.
  std::ranges::sort(all, {}, [](const Value& v) { return std::pair(v.node(), v.index()); });
  const std::vector<ChosenSizes> sizes = [&] {
    try {
      return chosen_sizes(a.function, b.function, reading_.branches_may_differ);
    } catch (const Unsupported& e) {
      throw DependsOnData(condition, e.what());
    }
  }();
  for (const ChosenSizes& s : sizes)
    reading_.has_unproven_branches = reading_.has_unproven_branches || s.is_unproven;
  Values operands = {condition};
  operands.insert(operands.end(), all.begin(), all.end());
  Value made = ops::if_else(
      operands, {{"then", closed_branch(a, all, sizes)}, {"else", closed_branch(b, all, sizes)}});
  std::size_t next = sizes.size();
  Values chosen;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Value v = made.result(i);
    if (sizes[i].is_open()) v = from_room(context, v, made.result(next++), sizes[i].open);
    chosen.push_back(v);
  }
  const std::size_t before = chosen.size() - 2 * dumped.size();
  for (std::size_t i = 0; i < dumped.size(); ++i) {
    const std::size_t at = before + 2 * i;
    inner_[dumped[i]] = {chosen[at], chosen[at + 1]};
  }
  return outputs_of(graph(), forms, chosen);
}

// ==== inputs

// An option for a size that the model does not have would be lost silently. Data-dependent sizes
// are known only after all nodes are read.
void check_given_sizes(const Reading& reading, bool all_nodes_are_read) {
  for (const auto& [name, range] : reading.source.options.dims) {
    if (reading.sizes.contains(name)) continue;
    if (may_be_measured(name) && !all_nodes_are_read) continue;
    std::string list;
    for (const std::string& s : reading.sizes) list += cat(list.empty() ? "" : ", ", s);
    throw UserError("size '", name, "' is given, but the model has no such size; ",
                    list.empty() ? "all its sizes are fixed" : "its open sizes are " + list);
  }
}

// A parameter; if its contents are read, a constant is used instead.
Value Walk::input(const ValueInfo& v, const Type& type) {
  if (!reading_.read_inputs.contains(v.name)) return function_.add_param(type, std::string(v.name));
  const Array& given = reading_.source.options.contents.at(std::string(v.name));
  bool fits = given.dtype() == type.dtype && given.rank() == type.rank();
  for (int i = 0; fits && i < type.rank(); ++i)
    fits = prove_equal(type.shape[i], given.dims()[static_cast<std::size_t>(i)]) != false;
  if (!fits) throw UserError("input '", v.name, "' is ", given.type(), ", expected ", type);
  function_.add_param(given.type(), std::string(v.name), false, given);
  return constant(graph(), given);
}

// A sequence or optional with each element as a parameter.
Value Walk::input_elements(const ValueInfo& v) {
  using Kind = ValueInfo::Kind;
  auto given = reading_.source.options.elements.find(std::string(v.name));
  const bool is_known = v.kind == Kind::sequence || v.kind == Kind::optional;
  if (!is_known || given == reading_.source.options.elements.end())
    throw Unsupported(
        "input '", v.name, "': ",
        is_known ? "a sequence or optional of unknown length is not supported; give its elements "
                   "(ImportOptions::elements), or export the model with a tensor for each of them"
                 : "only tensors, sequences and optionals are supported");
  Values elements;
  for (const Type& t : given->second) {
    if (dtype_of(v.data_type) != t.dtype || !t.is_tensor())
      throw UserError("input '", v.name, "': an element is ", t, ", expected a tensor of ",
                      data_type_name(v.data_type));
    elements.push_back(function_.add_param(t, cat(v.name, ".", elements.size())));
  }
  if (v.kind == Kind::sequence) return sequence_of(graph(), elements);
  if (v.element == Kind::sequence) return optional_of(graph(), sequence_of(graph(), elements));
  if (elements.size() > 1)
    throw UserError("input '", v.name, "': the optional has ",
                    amount(elements.size(), "element", "elements"), ", expected at most one");
  return optional_of(graph(), elements.empty() ? Value() : elements[0]);
}

void Walk::inputs(const onnx::Graph& g) {
  check_shapes(g, reading_.source.options);
  const std::vector<std::string_view> names_given = initializer_names(g);
  const std::set<std::string_view> initialized(names_given.begin(), names_given.end());
  InputTypes types(reading_.source.options, reading_.sizes);
  for (const ValueInfo& v : g.inputs) {
    // IR version 3 lists all initializers among the inputs; later versions only replaceable ones.
    if (initialized.contains(v.name) && !is_replaced(v.name)) {
      declared_.emplace(v.name, &v);
      continue;
    }
    if (initialized.contains(v.name)) given_.insert(v.name);
    try {
      if (const std::optional<Array> given = given_weight(reading_.source.options, v)) {
        define(v.name, constant_value(graph(), *given));
        continue;
      }
      const bool is_tensor = v.kind == ValueInfo::Kind::tensor;
      define(v.name, is_tensor ? input(v, types.of(v)) : input_elements(v));
    } catch (const UserError& e) {
      bool unsupported = dynamic_cast<const Unsupported*>(&e);
      reading_.failures.push_back({e.what(), unsupported});
      values_.emplace(v.name, Value());
    }
  }
  check_given_sizes(reading_, false);
}

}  // namespace

namespace {

// The elements of a sequence or optional become results NAME.K.
void add_results(Function& f, Value v, std::string_view name) {
  if (v.type().is_tensor()) return f.add_result(v, std::string(name));
  if (is_parts(v))
    throw Unsupported("output '", name,
                      "' is a sequence of an unknown number of parts of an axis, expected a number "
                      "of them; give sizes with --dim or inputs");
  if (is_stacked(v) && !v.operand(0).shape()[0].is_number())
    throw Unsupported("output '", name, "' is a sequence of ", v.operand(0).shape()[0],
                      " elements, expected a number of them; give sizes with --dim or inputs, or "
                      "concatenate the sequence in the model");
  Values elements;
  add_elements(v, elements);
  for (std::size_t i = 0; i < elements.size(); ++i) f.add_result(elements[i], cat(name, ".", i));
}

}  // namespace

Function read_function(Reading& reading) {
  const Model& model = reading.source.model;
  const onnx::Graph& g = *model.graph;
  Function f;
  Frame frame{&model.opsets};
  Walk walk(reading, frame, f, nullptr);
  walk.inputs(g);
  walk.initializers(g);
  walk.nodes(g.nodes);
  if (reading.failures.empty()) {
    check_given_sizes(reading, true);
    if (g.outputs.empty() && reading.source.options.dump.empty())
      throw UserError("the graph has no outputs, so the model computes nothing");
  }
  for (const ValueInfo& v : g.outputs) try {
      if (Value found = walk.output(v.name)) add_results(f, found, v.name);
    } catch (const Unsupported& e) {
      reading.failures.push_back({e.what(), true});
    }
  for (const std::string& name : reading.source.options.dump)
    reading.dumped.push_back(walk.find_to_dump(name));
  return f;
}

}  // namespace hone::onnx
