#include "tensor/trace.h"

#include <algorithm>
#include <cmath>

#include "ops/common.h"

namespace hone {

namespace {

// TraceScope has an owner on each thread; the API's functions find it here, as values that come
// from nothing (zeros, states) have no operand that could name it.
thread_local std::shared_ptr<Trace> innermost;
thread_local std::optional<Where> line;

// Numbers of `replay` from here on are those of stops.
constexpr std::int64_t first_stop = std::int64_t{1} << 32;

}  // namespace

Trace::Trace(std::string what, std::shared_ptr<ProgramData> program, std::shared_ptr<Trace> outer,
             bool is_training)
    : what_(std::move(what)),
      program_(std::move(program)),
      outer_(std::move(outer)),
      is_training_(is_training) {}

Trace* Trace::current_or_null() { return innermost.get(); }

Trace& Trace::current() {
  if (!innermost)
    throw UserError(
        "no entry is being recorded: operations are called from the function given to "
        "Program::entry()");
  return *innermost;
}

Trace& Trace::entry() {
  Trace* t = this;
  while (t->outer_) t = t->outer_.get();
  return *t;
}

bool Trace::is_around(const Trace& inner) const {
  for (const Trace* t = inner.outer_.get(); t; t = t->outer_.get())
    if (t == this) return true;
  return false;
}

Value Trace::value(const Tensor& t) {
  if (t.is_empty())
    throw UserError("a tensor is empty, expected the result of an operation or an argument");
  if (t.trace_.get() == this) return {&graph(), t.node_, t.index_};
  if (!t.trace_->is_around(*this))
    throw UserError("a tensor (", t.type(), ") belongs to ", t.trace_->what(), " of program '",
                    t.trace_->program()->name, "', but is used in ", what(), " of program '",
                    program_->name, "'; give it as an argument, a carried value or a state");
  const auto same = [&](const Captured& c) {
    return c.outer.trace_ == t.trace_ && c.outer.node_ == t.node_ && c.outer.index_ == t.index_;
  };
  const auto it = std::ranges::find_if(captured_, same);
  if (it != captured_.end()) return it->inner;
  const Value inner = function_.add_param(t.type(), cat("captured", captured_.size()));
  captured_.push_back({t, inner});
  return inner;
}

Values Trace::values(const Tensors& tensors) {
  Values out;
  for (const Tensor& t : tensors) out.push_back(value(t));
  return out;
}

Tensor Trace::tensor(Value v) {
  Tensor t;
  t.trace_ = shared_from_this();
  t.node_ = v.node();
  t.index_ = v.index();
  return t;
}

Tensors Trace::tensors(const Values& values) {
  Tensors out;
  for (const Value& v : values) out.push_back(tensor(v));
  return out;
}

const Type& Trace::type_of(const Tensor& t) {
  if (t.is_empty()) throw UserError("the tensor is empty: it has no type");
  return t.trace_->graph().type(t.node_, t.index_);
}

Tensor Trace::parameter(const Type& type, std::string name) {
  return tensor(function_.add_param(type, std::move(name)));
}

Value Trace::marked(Value v) { return ops::replay(v, {{"number", ++marks_}}); }
Value Trace::stop(Value v) { return ops::replay(v, {{"number", first_stop + ++marks_}}); }
bool Trace::is_stop(const Value& v) {
  return v.is(ops::replay) && v.attrs().integer("number") >= first_stop;
}

Trace::StateUse& Trace::use(std::int32_t state) {
  const auto it = states_.find(state);
  if (it != states_.end()) return it->second;
  const StateVariable& s = program_->states[static_cast<std::size_t>(state)];
  StateUse u;
  u.param = static_cast<std::uint32_t>(function_.params().size());
  u.now = function_.add_param(s.type, s.name);
  return states_.emplace(state, std::move(u)).first->second;
}

Tensor Trace::read(std::int32_t state) {
  const auto to = redirected_.find(state);
  if (to != redirected_.end()) return to->second;
  StateUse& u = use(state);
  if (std::ranges::find(u.versions, u.now) == u.versions.end()) u.versions.push_back(u.now);
  return tensor(u.now);
}

void Trace::set(std::int32_t state, const Tensor& t) {
  const StateVariable& s = program_->states[static_cast<std::size_t>(state)];
  if (!is_entry())
    throw UserError("state '", s.name, "' is set in ", what_,
                    "; carry the value and set the state after it");
  const Value v = value(t);
  if (v.dtype() != s.type.dtype || v.rank() != s.type.rank())
    throw UserError("state '", s.name, "' is ", s.type, ", but is set to ", v.type(),
                    "; cast or reshape the value");
  for (int i = 0; i < v.rank(); ++i)
    if (prove_equal(v.shape()[i], s.type.shape[i]) != true)
      throw UserError("state '", s.name, "' is ", s.type, ", but is set to ", v.type(),
                      "; a state has fixed sizes");
  use(state).now = v;
}

Tensor Trace::redirect(std::int32_t state, const Tensor& to) {
  const Tensor before = redirected_.contains(state) ? redirected_.at(state) : Tensor();
  if (to.is_empty())
    redirected_.erase(state);
  else
    redirected_[state] = to;
  return before;
}

TraceScope::TraceScope(std::shared_ptr<Trace> trace)
    : before_(std::exchange(innermost, std::move(trace))),
      line_before_(std::exchange(line, std::nullopt)) {}

TraceScope::~TraceScope() {
  innermost = std::move(before_);
  line = line_before_;
}

LineScope::LineScope(Where at) : is_outermost_(!line) {
  if (!is_outermost_) return;
  line = at;
  if (!innermost) return;
  graph_ = &innermost->graph();
  origins_before_ = graph_->set_origins(graph_->origin_list({{at.line(), at.file_name(), ""}}));
}

LineScope::~LineScope() {
  if (!is_outermost_) return;
  line.reset();
  if (graph_) graph_->set_origins(origins_before_);
}

std::string text_of(Where at) { return cat(at.file_name(), ":", at.line()); }

namespace {

Value number(Trace& trace, const Operand& x, DType t, std::string_view who) {
  const auto refuse = [&](const auto& given, std::string_view why) {
    throw UserError(who, ": the number ", given, " meets a tensor of dtype ", t, why);
  };
  if (t == DType::b1 && x.kind != Operand::Kind::boolean)
    refuse(x.real, "; compare it, or cast the tensor");
  if (is_float(t)) return scalar(trace.graph(), x.real, t);
  if (x.kind == Operand::Kind::real && x.real != std::trunc(x.real))
    refuse(x.real, ", which cannot hold it; cast the tensor to a float dtype");
  const auto whole = x.kind == Operand::Kind::real ? static_cast<std::int64_t>(x.real) : x.integer;
  const Array a = Array::scalar_int(whole, t);
  if (a.integer(0) != whole) refuse(whole, ", which cannot hold it");
  return constant(trace.graph(), a);
}

}  // namespace

Value value_of(Trace& trace, const Operand& x, DType t, std::string_view who) {
  if (x.kind != Operand::Kind::tensor) return number(trace, x, t, who);
  const Value v = trace.value(x.tensor);
  if (v.dtype() != t)
    throw UserError(who, ": the tensors are ", t, " and ", v.dtype(),
                    ", expected equal dtypes; use cast(x, dtype)");
  return v;
}

}  // namespace hone
