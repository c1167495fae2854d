// A program: entries (functions of the same model) over shared states (values that outlive runs).
// What a front end records; it is compiled by compile() in <hone/hone.h>.
//
//   Program p("counter");
//   Variable n = p.variable("n", i64({}));
//   p.entry("add", {{"by", i64({})}}, [&](Tensor by) {
//     n.set(n + by);                       // in order: later reads see it
//     return Results{{"now", n}};
//   });
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

struct ProgramData;
struct ProgramGraph;

// What a state is when a State is made.
class Start {
 public:
  Start() = default;                                                    // zeros
  Start(double number) : kind_(Kind::number), a_(number) {}             // NOLINT: of every element
  Start(Array array) : kind_(Kind::array), array_(std::move(array)) {}  // NOLINT: dtype as given
  // Random numbers, which follow from the program's seed and the state's name.
  static Start uniform(double low, double high) { return {Kind::uniform, low, high}; }
  static Start normal(double mean, double deviation) { return {Kind::normal, mean, deviation}; }
  Array of(const Type&, std::uint64_t seed) const;

 private:
  enum class Kind : std::uint8_t { number, array, uniform, normal };
  Start(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}
  Kind kind_ = Kind::number;
  double a_ = 0, b_ = 0;
  Array array_;
};

class Variable;
using Variables = std::vector<Variable>;
// f(), in which reading variables[i] gives values[i].
void redirect(const Variables& variables, const Tensors& values, const std::function<void()>& f,
              Where);

// A state of a program: a handle, cheap to copy.
class Variable {
 public:
  const std::string& name() const;
  const Type& type() const;
  // What it holds at this point of the entry that is being recorded.
  Tensor value(Where = Where::current()) const;
  // A state is read where a tensor is meant.
  operator Tensor() const;  // NOLINT
  // From here on, and at the next run. The type must be the state's. Not inside a loop's or
  // branch's body.
  void set(const Operand&) const;
  bool operator==(const Variable&) const = default;

 private:
  friend class Program;
  friend class VariableAccess;
  friend void redirect(const Variables&, const Tensors&, const std::function<void()>&, Where);
  std::shared_ptr<ProgramData> program_;
  std::int32_t place_ = 0;
};
std::vector<Tensor> values(const Variables&, Where = Where::current());

struct Arg {
  std::string name;
  Type type;
};

// The named results of an entry.
class Results {
 public:
  Results() = default;
  Results(std::initializer_list<std::pair<std::string, Tensor>> all) : all_(all) {}
  void add(std::string name, Tensor t) { all_.emplace_back(std::move(name), std::move(t)); }
  const std::vector<std::pair<std::string, Tensor>>& all() const { return all_; }

 private:
  std::vector<std::pair<std::string, Tensor>> all_;
};

struct EntryOptions {
  bool training = false;  // what dropout and batch norm ask for
};
// Whether the entry that is being recorded has .training.
bool is_training(Where = Where::current());

class Program {
 public:
  struct Options {
    std::uint64_t seed = 0;
  };
  explicit Program(std::string name) : Program(std::move(name), Options()) {}
  Program(std::string name, Options);

  // Names are unique in the program. The sizes are numbers. `group` is what a State of the running
  // program holds on its own: "model", "optimizer", "cache".
  Variable variable(std::string name, const Type&, const Start& = {}, std::string group = "model",
                    Where = Where::current());

  // Calls the function once, with a tensor for each argument, and records what it does: an entry of
  // that name. It returns Results, or nothing.
  template <class F>
  void entry(std::string name, const std::vector<Arg>& args, F&& f, EntryOptions options = {},
             Where at = Where::current()) {
    record(std::move(name), args, calls_of(f, std::make_index_sequence<most_arguments + 1>()),
           options, at);
  }

  const std::string& name() const;
  // In the order in which they were made.
  Variables variables() const;
  // The entries as text, one after the other.
  std::string text() const;
  // The program without the other entries. States stay.
  Program only(const std::vector<std::string>& entries, Where = Where::current()) const;
  // The program with the values given for states as weights; no entry may set one of them.
  Program frozen(const std::vector<std::pair<std::string, Array>>& states,
                 Where = Where::current()) const;
  // For the compiler, see ir/program.h.
  ProgramGraph graph() const;

 private:
  static constexpr std::size_t most_arguments = 8;
  using Call = std::function<Results(const Tensors&)>;
  using Calls = std::array<Call, most_arguments + 1>;  // by number of arguments

  template <std::size_t>
  using EachTensor = Tensor;
  template <class F, std::size_t... k>
  static Call call_of(F& f, std::index_sequence<k...>) {
    if constexpr (!std::is_invocable_v<F&, EachTensor<k>...>)
      return {};
    else if constexpr (std::is_void_v<std::invoke_result_t<F&, EachTensor<k>...>>)
      return [&f](const Tensors& in) { return f(in[k]...), Results(); };
    else
      return [&f](const Tensors& in) -> Results { return f(in[k]...); };
  }
  template <class F, std::size_t... n>
  static Calls calls_of(F& f, std::index_sequence<n...>) {
    return {call_of(f, std::make_index_sequence<n>())...};
  }
  void record(std::string name, const std::vector<Arg>&, const Calls&, EntryOptions, Where);

  std::shared_ptr<ProgramData> data_;
};

// f(), in which reading variables[i] gives values[i].
template <class F>
auto with_values(const Variables& variables, const Tensors& values, F&& f,
                 Where at = Where::current()) {
  std::invoke_result_t<F&> out;
  redirect(variables, values, [&] { out = f(); }, at);
  return out;
}

}  // namespace hone
