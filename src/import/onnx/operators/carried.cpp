#include "import/onnx/operators/carried.h"

#include <algorithm>

#include "import/common/build.h"
#include "import/onnx/file/sorted.h"
#include "import/onnx/operators/sequence.h"

namespace hone::onnx {

namespace {

// Whether a graph does more with a sequence than append elements and return it.
bool reads(const onnx::Graph& g, std::string_view sequence) {
  std::set<std::string_view> names = {sequence};
  for (const Node& n : g.nodes) {
    const bool hands_on = (n.op == "SequenceInsert" && n.inputs.size() == 2) || n.op == "Identity";
    if (hands_on && !n.inputs.empty() && !n.outputs.empty() && names.contains(n.inputs[0])) {
      names.insert(n.outputs[0]);
      continue;
    }
    bool is_read = false;
    for_each_read(n, [&](std::string_view name) { is_read = is_read || names.contains(name); });
    if (is_read) return true;
  }
  return false;
}

}  // namespace

CarriedSequences::CarriedSequences(NodeContext& c, const onnx::Graph& body, const Values& carried,
                                   std::size_t first_input, std::size_t first_output)
    : c_(c),
      body_(body),
      carried_(carried),
      first_input_(first_input),
      first_output_(first_output) {
  for (std::size_t i = 0; i < carried_.size(); ++i) {
    const Value v = carried_[i];
    if (v.type().is_tensor()) {
      tensors_.push_back(v);
    } else if (reads(body_, body_.inputs[first_input_ + i].name)) {
      tensors_.push_back(stack_of(c, v));
      read_.insert(i);
    }
  }
}

Body CarriedSequences::read(const std::vector<Type>& inputs) {
  if (std::ranges::all_of(carried_, [](const Value& v) { return v.type().is_tensor(); }))
    return c_.bodies().closed(body_, inputs);
  std::vector<Type> all = inputs;
  std::set<std::size_t> stacks;
  for (std::size_t i = 0; i < carried_.size(); ++i) {
    if (is_appended_to(i))
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(first_input_ + i), carried_[i].type());
    if (read_.contains(i)) stacks.insert(first_input_ + i);
  }
  const Body whole = c_.bodies().closed(body_, all, stacks);
  Body out{std::make_shared<Function>(), whole.captures};
  Function& f = *out.function;
  Values given;
  for (const Function::Param& p : whole.function->params())
    given.push_back(p.value.type().is_tensor() ? f.add_param(p.value.type(), p.name)
                                               : sequence_of(f.graph(), {}));
  const Values made = inline_call(f.graph(), *whole.function, given);
  appended_.assign(carried_.size(), 0);
  Values elements;
  for (std::size_t r = 0; r < made.size(); ++r) {
    const std::size_t i = r - first_output_;
    const bool is_carried_value = r >= first_output_ && i < carried_.size();
    if (is_carried_value && read_.contains(i)) {
      if (!is_stacked(made[r]))
        c_.unsupported(cat("loop-carried value ", i,
                           " is a sequence of elements that may differ in size after an iteration, "
                           "and the loop has more iterations than are unrolled"));
      f.add_result(made[r].operand(0), whole.function->results()[r].name);
    } else if (is_carried_value && is_appended_to(i)) {
      const Value before = whole.function->result(r);
      if (!is_carried(before) ||
          carried_parts(before).from != whole.function->param(first_input_ + i))
        c_.unsupported(
            cat("loop-carried value ", i,
                " is another sequence after an iteration; a loop of more iterations than "
                "are unrolled can only append to a sequence"));
      const Values appended = carried_parts(made[r]).appended;
      appended_[i] = appended.size();
      elements.insert(elements.end(), appended.begin(), appended.end());
    } else if (!made[r].type().is_tensor()) {
      c_.unsupported(cat("output ", r, " of the body is ", made[r].type(), ", expected a tensor"));
    } else {
      f.add_result(made[r], whole.function->results()[r].name);
    }
  }
  for (const Value& v : elements) {
    if (!v.type().is_tensor())
      c_.unsupported(cat("an element is ", v.type(), ", expected a tensor"));
    f.add_result(v, "");
  }
  return out;
}

namespace {

// Stacks whose slices alternate in the result.
Value alternating(const Values& stacks) {
  if (stacks.size() == 1) return stacks[0];
  Values parts;
  for (const Value& v : stacks) parts.push_back(unsqueeze(v, {1}));
  const Value joined = concat_values(parts, 1);
  Dims dims = joined.shape().dims;
  dims[1] = dims[0] * dims[1];
  dims.erase(dims.begin());
  return reshape_to(joined, dims);
}

}  // namespace

Values CarriedSequences::finished(const Values& tensors, Values& outputs) const {
  std::size_t appended = 0;
  for (const std::size_t n : appended_) appended += n;
  Values stacks(outputs.end() - static_cast<std::ptrdiff_t>(appended), outputs.end()), out;
  outputs.resize(outputs.size() - appended);
  auto next = stacks.begin();
  for (std::size_t i = 0, tensor = 0; i < carried_.size(); ++i) {
    if (!is_appended_to(i)) {
      const Value v = tensors[tensor++];
      out.push_back(read_.contains(i) ? stacked_sequence(v.graph(), v) : v);
      continue;
    }
    if (appended_[i] == 0) {
      out.push_back(carried_[i]);
      continue;
    }
    const auto last = next + static_cast<std::ptrdiff_t>(appended_[i]);
    const Values own(next, last);
    next = last;
    for (const Value& v : own)
      if (v.type() != own[0].type())
        c_.unsupported(cat("the body appends ", own[0].type(), " and ", v.type(),
                           " to one sequence, expected equal types"));
    out.push_back(extended_sequence(c_, carried_[i], alternating(own)));
  }
  return out;
}

}  // namespace hone::onnx
