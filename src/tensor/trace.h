// Records operations: a function under construction, inside the one around it. What stands behind
// Tensor and Program; not for users.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/derivative.h"
#include "ir/function.h"
#include "ir/program.h"
#include "tensor/tensor.h"

namespace hone {

// An error whose text begins with a line of the user's.
struct LocatedError : UserError {
  using UserError::UserError;
};

struct ProgramData {
  std::string name;
  std::uint64_t seed = 0;
  std::vector<StateVariable> states;
  std::vector<ProgramEntry> entries;
};

// A part of a trace with a derivative given by its user.
struct OwnGradient {
  Values inputs, results;
  std::function<Tensors(const Tensors& inputs, const Tensors& results, const Tensors& d)> rule;
  bool is_exact = false;  // a derivative of the results, and not what a user wants in its place
};

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  // `what` is "entry 'train'", "the body of while_loop". A trace without `outer` is an entry.
  Trace(std::string what, std::shared_ptr<ProgramData>, std::shared_ptr<Trace> outer,
        bool is_training);

  // The one that records what this thread does now. Throws UserError when there is none.
  static Trace& current();
  static Trace* current_or_null();

  const std::string& what() const { return what_; }
  Function& function() { return function_; }
  Graph& graph() const { return function_.graph(); }
  const std::shared_ptr<ProgramData>& program() const { return program_; }
  bool is_training() const { return is_training_; }
  bool is_entry() const { return !outer_; }
  Trace& entry();

  // The tensor's value here: if it is of a trace around this one, a parameter that stands for it.
  // Throws UserError for an empty tensor and for one of another entry.
  Value value(const Tensor&);
  Values values(const Tensors&);
  Tensor tensor(Value);
  Tensors tensors(const Values&);
  static const Type& type_of(const Tensor&);

  // Tensors of traces around this one that it uses, and the parameters that stand for them here.
  struct Captured {
    Tensor outer;
    Value inner;
  };
  const std::vector<Captured>& captured() const { return captured_; }
  // Adds a parameter; of an entry, an input.
  Tensor parameter(const Type&, std::string name);
  // An identity that no rule looks through and that equals no other value of the trace. Derivatives
  // end at stops, also in a copy of the trace.
  Value marked(Value);
  Value stop(Value);
  static bool is_stop(const Value&);

  // Of an entry: its states by their place in the program.
  struct StateUse {
    std::uint32_t param = 0;
    Value now;        // after the last set()
    Values versions;  // all that reads gave, the last of them last
  };
  Tensor read(std::int32_t state);
  void set(std::int32_t state, const Tensor&);
  const std::map<std::int32_t, StateUse>& states() const { return states_; }
  // Instead of reading the state; an empty tensor ends that. Returns what was set before.
  Tensor redirect(std::int32_t state, const Tensor& to);

  std::vector<OwnGradient>& own_gradients() { return own_gradients_; }
  std::vector<Derivative>& derivatives() { return derivatives_; }

 private:
  friend class TraceScope;
  StateUse& use(std::int32_t state);
  bool is_around(const Trace& inner) const;

  std::string what_;
  std::shared_ptr<ProgramData> program_;
  std::shared_ptr<Trace> outer_;
  bool is_training_;
  Function function_;
  std::vector<Captured> captured_;
  std::map<std::int32_t, StateUse> states_;
  std::map<std::int32_t, Tensor> redirected_;
  std::vector<OwnGradient> own_gradients_;
  std::vector<Derivative> derivatives_;
  std::int64_t marks_ = 0;
};

// While it lives, this thread's operations are recorded in the trace.
class TraceScope {
 public:
  explicit TraceScope(std::shared_ptr<Trace>);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  std::shared_ptr<Trace> before_;
  std::optional<Where> line_before_;
};

// One call of the API: its nodes get the caller's line. Of nested calls, the outermost counts.
class LineScope {
 public:
  explicit LineScope(Where);
  ~LineScope();
  LineScope(const LineScope&) = delete;
  bool is_outermost() const { return is_outermost_; }

 private:
  bool is_outermost_;
  Graph* graph_ = nullptr;
  std::uint32_t origins_before_ = 0;
};
std::string text_of(Where);  // "file:line"

// f(), as one call of the API made at that line: its errors begin with the line.
template <class F>
decltype(auto) located(Where at, F&& f) {
  const LineScope line(at);
  if (!line.is_outermost()) return f();
  try {
    return f();
  } catch (const LocatedError&) {
    throw;
  } catch (const UserError& e) {
    throw LocatedError(text_of(at), ": ", e.what());
  }
}

// The usual call: f(trace) gives a Value of the current trace.
template <class F>
Tensor recorded(Where at, F&& f) {
  return located(at, [&] {
    Trace& trace = Trace::current();
    return trace.tensor(f(trace));
  });
}

// x as a value of the dtype; throws UserError when a number is not representable.
Value value_of(Trace&, const Operand& x, DType, std::string_view who);

}  // namespace hone
