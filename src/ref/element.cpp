#include "ref/element.h"

#include <bit>
#include <limits>
#include <map>

#include "ir/measured.h"
#include "ops/expand.h"
#include "ops/ops.h"
#include "ref/box.h"
#include "ref/frame.h"

namespace hone {

Sizes Frame::sizes(const Dims& dims) const {
  Sizes out;
  for (const Dim& d : dims) out.push_back(size_of(d, sizing));
  return out;
}

const Sizes& Frame::dims(NodeId n, std::uint32_t result) {
  Sizes& known = known_dims[first_slot[n] + result];
  if (known.empty()) known = sizes(graph().type(n, result).shape.dims);
  return known;
}

namespace {

Element of_wide(const Wide& w, std::int64_t i) {
  auto k = static_cast<std::size_t>(i);
  return w.is_real() ? Element{w.reals[k], 0} : Element{0, w.integers[k]};
}

bool same_bits(const Element& a, const Element& b) {
  return a.integer == b.integer &&
         std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real);
}

// Resolves branch parameters to the outer value they refer to.
void resolve_param(Frame*& frame, Value& v) {
  while (v.is(ops::param) && frame->outer) {
    auto index = static_cast<std::size_t>(v.attrs().integer("index"));
    v = frame->outer->graph().operands(frame->call)[index + 1];
    frame = frame->outer;
  }
}

}  // namespace

Element Reader::read(Frame& in, Value v, std::int64_t flat) {
  ++reads;
  if (const Array* leaf = in.leaves[v.node()]) return element_of(*leaf, flat);
  const auto found = [&](const Frame& frame) { return frame.memo[frame.slot(v)].find(flat); };
  Frame* where = &in;
  const ElementOfModes* known = found(in);
  if (!known) {
    resolve_param(where, v);
    if (const Array* leaf = where->leaves[v.node()]) return element_of(*leaf, flat);
    if (v.is(ops::dims))
      return {0, size_of(v.attrs().dims("dims")[static_cast<std::size_t>(flat)], where->sizing)};
    if (where != &in) known = found(*where);
  }
  if (known) {
    modes_agree_ = modes_agree_ && same_bits(known->strict, known->wide);
    return is_strict ? known->strict : known->wide;
  }
  missing_.push_back({where, v, flat});
  complete_ = false;
  return {};
}

class ElementEvaluator::Impl {
 public:
  Impl(const Function& f, std::span<const Array> inputs, Mode rounded) : rounded_(rounded) {
    std::vector<std::vector<std::int64_t>> dims;
    for (const Array& a : inputs) dims.push_back(a.dims());
    root_ = &add_frame(f, bind_sizes(f, dims));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      root_->leaves[root_->function.param(i).node()] = &inputs[i];
    measure(*root_);
  }

  Sizes result_dims(std::size_t result) const {
    return root_->dims(root_->function.result(result));
  }

  ElementOfModes at(std::size_t result, std::int64_t flat) {
    return fetch(*root_, root_->function.result(result), flat);
  }
  std::optional<std::vector<ElementOfModes>> at(std::size_t result,
                                                std::span<const std::int64_t> flat,
                                                std::int64_t most) {
    const Value v = root_->function.result(result);
    std::vector<Task> missing;
    Reader wide(*root_, 0, missing, false);  // only reports which elements are missing
    for (std::int64_t i : flat) wide.read(*root_, v, i);
    if (!compute(std::move(missing), most)) return std::nullopt;
    std::vector<ElementOfModes> out;
    for (std::int64_t i : flat) out.push_back(fetch(*root_, v, i));
    return out;
  }

  std::int64_t reads() const { return reads_; }

 private:
  ElementOfModes fetch(Frame& frame, Value value, std::int64_t flat) {
    std::vector<Task> missing;
    for (;;) {
      // Readers without a node: they only fetch the wanted element.
      Reader strict(frame, 0, missing, true), wide(frame, 0, missing, false);
      const Element of_wide = wide.read(frame, value, flat);
      if (wide.complete()) return {strict.read(frame, value, flat), of_wide};
      compute(std::exchange(missing, {}));
    }
  }

  // Consecutive tasks of one value that read few elements each are processed as one step.
  static std::size_t last_of_one_kind(std::span<const Task> tasks) {
    constexpr std::size_t most = 256;
    const Task& last = tasks.back();
    const OpKind kind = last.value.op().kind;
    if (kind != OpKind::elementwise && kind != OpKind::movement) return 1;
    std::size_t n = 1;
    while (n < std::min(most, tasks.size()) && tasks[tasks.size() - n - 1].frame == last.frame &&
           tasks[tasks.size() - n - 1].value == last.value)
      ++n;
    return n;
  }

  // False when more than `most` elements were needed.
  bool compute(std::vector<Task> stack,
               std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    std::vector<Task> missing;
    left_ = most;
    while (!stack.empty()) {
      const std::size_t n = last_of_one_kind(stack);
      step(std::span(stack).last(n), missing);
      if (missing.empty()) stack.resize(stack.size() - n);
      left_ -= std::ssize(missing);
      if (left_ < 0) return false;
      stack.insert(stack.end(), missing.begin(), missing.end());
      missing.clear();
    }
    return true;
  }

  // Computes the data-dependent sizes, in order.
  void measure(Frame& frame) {
    for (NodeId n : live_nodes(frame.function)) {
      if (&frame.graph().op(n) != &ops::measure) continue;
      const Element size = fetch(frame, frame.graph().operands(n)[0], 0).wide;
      bind_measured(frame.function, n, size.integer, frame.sizing);
    }
  }

  Frame& add_frame(const Function& f, Sizing sizing) {
    Frame& frame = frames_.emplace_back();
    frame.function = expand_composites(f);
    frame.sizing = std::move(sizing);
    frame.rounds_sums = rounded_ == Mode::stepwise;
    check_sizes(frame.function, frame.sizing);
    const Graph& graph = frame.graph();
    std::uint32_t slots = 0;
    for (NodeId n = 0; n < graph.node_count(); ++n) {
      frame.first_slot.push_back(slots);
      slots += static_cast<std::uint32_t>(graph.result_count(n));
    }
    frame.memo.resize(slots);
    frame.known_dims.resize(slots);
    frame.whole.resize(graph.node_count());
    frame.small.resize(graph.node_count());
    frame.leaves.resize(graph.node_count());
    for (NodeId n = 0; n < graph.node_count(); ++n)
      if (&graph.op(n) == &ops::constant) frame.leaves[n] = &graph.attrs(n).get<Array>("value");
    return frame;
  }

  // Computes elements of one value, or records what they need first.
  void step(std::span<const Task> tasks, std::vector<Task>& missing) {
    Frame& frame = *tasks[0].frame;
    const Value value = tasks[0].value;
    ElementMap& memo = frame.memo[frame.slot(value)];
    std::vector<std::int64_t> wanted;
    for (const Task& t : tasks)
      if (!memo.find(t.flat)) wanted.push_back(t.flat);
    if (wanted.empty()) return;
    Reader reader(frame, value.node(), missing, false);
    const std::vector<Element> wide = elements(reader, value.index(), wanted);
    reads_ += reader.reads;
    if (!reader.complete()) return;
    std::vector<Element> strict = wide;
    const bool is_rounded = rounded_ != Mode::wide;
    if (is_rounded && !reader.modes_agree()) {
      Reader other(frame, value.node(), missing, true);
      strict = elements(other, value.index(), wanted);
      reads_ += other.reads;
      if (!other.complete()) return;
    }
    const DType t = value.dtype();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (is_rounded && is_float(t)) strict[i] = {round_real(t, strict[i].real), 0};
      memo.add(wanted[i], {strict[i], wide[i]});
    }
  }

  std::vector<Element> elements(Reader& reader, std::uint32_t result,
                                std::span<const std::int64_t> flat) {
    if (reader.op().kind == OpKind::elementwise && !element_rule(reader.op()))
      return elementwise(reader, result, flat);
    std::vector<Element> out;
    for (std::int64_t i : flat) out.push_back(element(reader, result, i));
    return out;
  }

  Element element(Reader& reader, std::uint32_t result, std::int64_t flat) {
    if (&reader.op() == &ops::if_else) return of_branch(reader, result, flat);
    if (const std::optional<Element> e = of_long_row(reader, flat)) return *e;
    if (ElementRule rule = element_rule(reader.op())) return rule(reader, result, flat);
    return of_whole(reader, result, flat);
  }

  // An element of a reduction over many elements.
  std::optional<Element> of_long_row(Reader& reader, std::int64_t flat) {
    constexpr std::int64_t least = 256;
    constexpr std::int64_t at_once = 8;  // elements that take as long as one alone
    Frame& frame = reader.frame;
    const Value v(&frame.function.graph(), reader.node);
    if (!reduces_axes(reader.op()) || frame.outer || frame.has_no_boxes.contains(v.node()))
      return std::nullopt;
    const std::int64_t results = count_of(reader.result_dims());
    if (results == 0 || count_of(reader.input_dims(0)) / results < least) return std::nullopt;
    Boxes& boxes = boxes_
                       .try_emplace({&frame, reader.is_strict}, frame,
                                    reader.is_strict ? rounded_ : Mode::wide)
                       .first->second;
    const std::int64_t before = boxes.computed();
    const std::int64_t most = left_ > std::numeric_limits<std::int64_t>::max() / 2 / at_once
                                  ? left_ / 2
                                  : left_ * at_once;
    const std::optional<Element> e = boxes.reduced(v, flat, most);
    const std::int64_t made = (boxes.computed() - before) / at_once;
    left_ -= made;
    reader.reads += made;
    reader.expect_modes_to_differ();
    if (!e && left_ > 0) frame.has_no_boxes.insert(v.node());
    return e;
  }

  Element of_branch(Reader& reader, std::uint32_t result, std::int64_t flat) {
    Element condition = reader.operand(0, 0);
    if (!reader.complete()) return {};
    const bool is_then = condition.integer != 0;
    Frame*& branch = reader.frame.branches[reader.node][is_then ? 1 : 0];
    if (!branch) {
      const FunctionRef& body = is_then ? reader.attrs().get<FunctionRef>("then")
                                        : reader.attrs().get<FunctionRef>("else");
      std::vector<std::vector<std::int64_t>> dims;
      for (std::size_t i = 1; i < reader.input_count(); ++i) dims.push_back(reader.input_dims(i));
      branch = &add_frame(*body, bind_sizes(*body, dims, reader.frame.sizing));
      branch->outer = &reader.frame;
      branch->call = reader.node;
      measure(*branch);
    }
    return reader.read(*branch, branch->function.result(result), flat);
  }

  // Loops and random numbers: all operands, then all results.
  Element of_whole(Reader& reader, std::uint32_t result, std::int64_t flat) {
    reader.expect_modes_to_differ();  // the body rounds
    std::vector<Wide>& whole = reader.frame.whole[reader.node][reader.is_strict ? 0 : 1];
    if (whole.empty()) {
      std::vector<Wide> operands;
      for (std::size_t i = 0; i < reader.input_count(); ++i) operands.push_back(all_of(reader, i));
      if (!reader.complete()) return {};
      whole = evaluate_whole(reader, operands);
    }
    return of_wide(whole[result], flat);
  }

  static Wide all_of(Reader& reader, std::size_t operand) {
    Wide w(reader.input(operand).dtype(), reader.input_dims(operand));
    for (std::int64_t i = 0; i < w.count(); ++i) {
      Element e = reader.operand(operand, i);
      if (w.is_real())
        w.reals[static_cast<std::size_t>(i)] = e.real;
      else
        w.integers[static_cast<std::size_t>(i)] = e.integer;
    }
    return w;
  }

  std::vector<Wide> evaluate_whole(Reader& reader, const std::vector<Wide>& operands) {
    std::vector<const Wide*> inputs;
    for (const Wide& w : operands) inputs.push_back(&w);
    std::vector<Type> types = reader.frame.graph().result_types(reader.node);
    const Sizing& sizing = reader.frame.sizing;
    const std::function<std::int64_t(const Dim&)> size = [&](const Dim& d) {
      return size_of(d, sizing);
    };
    const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> call =
        [&](const Function& f, std::vector<Wide> in) {
          return evaluate_in(f, std::move(in), sizing, reader.is_strict ? rounded_ : Mode::wide);
        };
    HONE_ASSERT(reader.op().eval, reader.op().name, " is not evaluated by elements");
    return reader.op().eval({reader.attrs(), inputs, types, size, call});
  }

  const Mode rounded_;
  std::int64_t reads_ = 0;
  std::int64_t left_ = std::numeric_limits<std::int64_t>::max();  // of the elements to compute
  std::deque<Frame> frames_;
  std::map<std::pair<Frame*, bool>, Boxes> boxes_;  // by frame and whether strict
  Frame* root_ = nullptr;
};

ElementEvaluator::ElementEvaluator(const Function& f, std::span<const Array> inputs, Mode rounded)
    : impl_(std::make_unique<Impl>(f, inputs, rounded)) {}

ElementEvaluator::~ElementEvaluator() = default;

std::vector<std::int64_t> ElementEvaluator::result_dims(std::size_t result) const {
  return impl_->result_dims(result);
}

ElementOfModes ElementEvaluator::at(std::size_t result, std::int64_t flat_index) {
  return impl_->at(result, flat_index);
}

std::optional<std::vector<ElementOfModes>> ElementEvaluator::all_at(
    std::size_t result, std::span<const std::int64_t> flat_indices, std::int64_t most) {
  return impl_->at(result, flat_indices, most);
}

std::int64_t ElementEvaluator::reads() const { return impl_->reads(); }

ElementOfModes ElementEvaluator::at(std::size_t result, std::span<const std::int64_t> index) {
  Sizes dims = result_dims(result);
  HONE_ASSERT(dims.size() == index.size(), "an index of ", index.size(), " axes for rank ",
              dims.size());
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + index[i];
  return at(result, flat);
}

Wide listed(DType t, std::span<const ElementOfModes> elements, Element ElementOfModes::* mode) {
  Wide out(t, {static_cast<std::int64_t>(elements.size())});
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (out.is_real())
      out.reals[i] = (elements[i].*mode).real;
    else
      out.integers[i] = (elements[i].*mode).integer;
  return out;
}

double evaluate_element(const Function& f, std::span<const Array> inputs, std::size_t result,
                        std::span<const std::int64_t> index) {
  const Element e = ElementEvaluator(f, inputs).at(result, index).strict;
  DType t = f.result(result).dtype();
  return is_float(t) ? e.real : integer_to_real(t, e.integer);
}

}  // namespace hone
