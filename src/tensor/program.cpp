#include "tensor/program.h"

#include <algorithm>
#include <cmath>

#include "base/amount.h"
#include "base/hash.h"
#include "base/random.h"
#include "ops/common.h"
#include "pass/drop_carried.h"
#include "tensor/trace.h"

namespace hone {

namespace {

// Numbers that follow from a seed, in the order of the elements.
void fill_random(Array& a, std::uint64_t seed, const auto& number) {
  Random random(seed);
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, number(random));
}

double normal_number(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * M_PI * random.unit());
}

std::string names_of(const auto& list) {
  std::string out;
  for (const auto& x : list) out += (out.empty() ? "'" : ", '") + x.name + "'";
  return out.empty() ? "none" : out;
}

}  // namespace

Array Start::of(const Type& type, std::uint64_t seed) const {
  if (kind_ == Kind::array) {
    if (!(array_.type() == type))
      throw UserError("the state is ", type, ", but starts with ", array_.type());
    return array_;
  }
  Array out = Array::zeros(type.dtype, type.shape.numbers());
  if (kind_ == Kind::uniform)
    fill_random(out, seed, [&](Random& r) { return a_ + (b_ - a_) * r.unit(); });
  else if (kind_ == Kind::normal)
    fill_random(out, seed, [&](Random& r) { return a_ + b_ * normal_number(r); });
  else if (a_ != 0)
    fill_random(out, seed, [&](Random&) { return a_; });
  return out;
}

const std::string& Variable::name() const {
  if (!program_) throw UserError("a Variable is empty: Program::variable() makes one");
  return program_->states[static_cast<std::size_t>(place_)].name;
}
const Type& Variable::type() const {
  static_cast<void>(name());
  return program_->states[static_cast<std::size_t>(place_)].type;
}

namespace {

// The trace's entry, which must be of the state's program.
Trace& entry_with(const ProgramData& program, const std::string& state) {
  Trace& t = Trace::current().entry();
  if (t.program().get() != &program)
    throw UserError("state '", state, "' belongs to program '", program.name, "', but ", t.what(),
                    " of program '", t.program()->name, "' is being recorded");
  return t;
}

}  // namespace

Tensor Variable::value(Where at) const {
  return located(at, [&] { return entry_with(*program_, name()).read(place_); });
}

Variable::operator Tensor() const { return Trace::current_or_null() ? value() : Tensor(); }

void Variable::set(const Operand& x) const {
  located(x.at, [&] {
    entry_with(*program_, name());
    Trace& t = Trace::current();
    const Value v = value_of(t, x, type().dtype, cat("set of state '", name(), "'"));
    const bool is_number = x.kind != Operand::Kind::tensor;
    t.set(place_, t.tensor(is_number ? broadcast_to(v, type().shape) : v));
  });
}

Tensors values(const Variables& variables, Where at) {
  Tensors out;
  for (const Variable& v : variables) out.push_back(v.value(at));
  return out;
}

bool is_training(Where at) {
  return located(at, [] { return Trace::current().entry().is_training(); });
}

Program::Program(std::string name, Options options)
    : data_(std::make_shared<ProgramData>(std::move(name), options.seed)) {}

const std::string& Program::name() const { return data_->name; }

Variable Program::variable(std::string name, const Type& type, const Start& start,
                           std::string group, Where at) {
  return located(at, [&] {
    if (name.empty()) throw UserError("a state has no name; give each one its own");
    if (std::ranges::find(data_->states, name, &StateVariable::name) != data_->states.end())
      throw UserError("state '", name, "' exists in program '", data_->name,
                      "'; give each its own name");
    if (!type.is_tensor() || !type.shape.is_static())
      throw UserError("state '", name, "' is ", type, ", expected a tensor of fixed sizes");
    Variable v;
    v.program_ = data_;
    v.place_ = static_cast<std::int32_t>(data_->states.size());
    const std::uint64_t seed = hash_text(name, data_->seed);
    data_->states.push_back({std::move(name), std::move(group), type, start.of(type, seed)});
    return v;
  });
}

Variables Program::variables() const {
  Variables out(data_->states.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].program_ = data_;
    out[i].place_ = static_cast<std::int32_t>(i);
  }
  return out;
}

namespace {

void check_arguments(const std::vector<Arg>& args, const std::string& entry) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].name.empty()) throw UserError("entry '", entry, "': argument ", i, " has no name");
    if (!args[i].type.is_tensor())
      throw UserError("entry '", entry, "': argument '", args[i].name, "' is ", args[i].type,
                      ", expected a tensor");
    for (std::size_t k = 0; k < i; ++k)
      if (args[k].name == args[i].name)
        throw UserError("entry '", entry, "': two arguments are named '", args[i].name, "'");
  }
}

void add_results(Trace& t, const Results& results) {
  const auto& all = results.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      if (all[k].first == all[i].first)
        throw UserError(t.what(), ": two results are named '", all[i].first, "'");
    t.function().add_result(t.value(all[i].second), all[i].first);
  }
}

// What each parameter of the entry is, once its states are stored.
std::vector<std::int32_t> finish_states(Trace& t) {
  for (const auto& [state, use] : t.states()) {
    Function& f = t.function();
    if (use.now == f.param(use.param)) continue;
    const std::size_t at = f.results().size();
    f.add_result(use.now, cat("next ", f.params()[use.param].name));
    f.store(at, use.param);
  }
  std::vector<std::int32_t> out(t.function().params().size(), ProgramEntry::no_state);
  for (const auto& [state, use] : t.states()) out[use.param] = state;
  return out;
}

// Rules of derivatives may hold tensors, and these the trace.
struct ForgetsRules {
  Trace& trace;
  ~ForgetsRules() { trace.own_gradients().clear(); }
};

}  // namespace

void Program::record(std::string name, const std::vector<Arg>& args, const Calls& calls,
                     EntryOptions options, Where at) {
  located(at, [&] {
    if (name.empty()) throw UserError("an entry has no name; give each one its own");
    if (std::ranges::find(data_->entries, name, &ProgramEntry::name) != data_->entries.end())
      throw UserError("entry '", name, "' exists in program '", data_->name,
                      "'; give each its own name");
    if (Trace::current_or_null())
      throw UserError("entry '", name, "' is begun inside ", Trace::current().what(),
                      "; entries follow one another");
    check_arguments(args, name);
    if (args.size() > most_arguments || !calls[args.size()])
      throw UserError("entry '", name, "': the function does not take ",
                      amount(args.size(), "tensor", "tensors"), ", one for each argument",
                      args.size() > most_arguments ? "; there may be 8" : "");
    const auto trace =
        std::make_shared<Trace>(cat("entry '", name, "'"), data_, nullptr, options.training);
    const ForgetsRules forgets{*trace};
    Tensors in;
    for (const Arg& a : args) in.push_back(trace->parameter(a.type, a.name));
    Results results;
    {
      const TraceScope recording(trace);
      results = calls[args.size()](in);
    }
    add_results(*trace, results);
    std::vector<std::int32_t> states = finish_states(*trace);
    if (trace->function().results().empty())
      throw UserError("entry '", name, "' has no results and sets no state, so it does nothing");
    data_->entries.push_back({std::move(name), drop_carried(trace->function()), std::move(states),
                              std::move(trace->derivatives()), trace->function()});
  });
}

std::string Program::text() const {
  std::string out;
  for (const StateVariable& s : data_->states)
    out += cat("state ", s.name, " (", s.group, "): ", s.type, "\n");
  for (const ProgramEntry& e : data_->entries)
    out += cat("\nentry ", e.name, "\n", print(e.function));
  return out;
}

Program Program::only(const std::vector<std::string>& entries, Where at) const {
  return located(at, [&] {
    Program out(data_->name);
    *out.data_ = *data_;
    out.data_->entries.clear();
    for (const std::string& name : entries) {
      const auto it = std::ranges::find(data_->entries, name, &ProgramEntry::name);
      if (it == data_->entries.end())
        throw UserError("program '", data_->name, "' has no entry '", name, "'; it has ",
                        names_of(data_->entries));
      out.data_->entries.push_back(*it);
    }
    return out;
  });
}

namespace {

// The entry with constants for the states that have a value. `places` are the new places of the
// others.
ProgramEntry frozen_entry(const ProgramEntry& e, const std::vector<const Array*>& values,
                          const std::vector<std::int32_t>& places) {
  ProgramEntry out{e.name, {}, {}};
  Values arguments;
  std::vector<std::uint32_t> param_of(e.states.size());
  for (std::size_t i = 0; i < e.states.size(); ++i) {
    const Function::Param& p = e.function.params()[i];
    const std::int32_t s = e.states[i];
    if (s >= 0 && values[static_cast<std::size_t>(s)]) {
      if (p.donated)
        throw UserError("frozen: entry '", e.name, "' sets state '", p.name,
                        "'; leave the entry out with only()");
      arguments.push_back(constant(out.function.graph(), *values[static_cast<std::size_t>(s)]));
      continue;
    }
    param_of[i] = static_cast<std::uint32_t>(out.states.size());
    arguments.push_back(out.function.add_param(p.value.type(), p.name));
    out.states.push_back(s < 0 ? s : places[static_cast<std::size_t>(s)]);
  }
  const Values results = inline_call(out.function.graph(), e.function, arguments);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Function::Result& r = e.function.results()[i];
    out.function.add_result(results[i], r.name);
    if (r.stored_to) out.function.store(i, param_of[*r.stored_to]);
  }
  return out;
}

}  // namespace

Program Program::frozen(const std::vector<std::pair<std::string, Array>>& states, Where at) const {
  return located(at, [&] {
    Program out(data_->name);
    out.data_->seed = data_->seed;
    std::vector<const Array*> values;
    std::vector<std::int32_t> places;
    for (const StateVariable& s : data_->states) {
      const auto it = std::ranges::find(states, s.name, [](auto& x) { return x.first; });
      values.push_back(it == states.end() ? nullptr : &it->second);
      places.push_back(static_cast<std::int32_t>(out.data_->states.size()));
      if (!values.back())
        out.data_->states.push_back(s);
      else if (!(it->second.type() == s.type))
        throw UserError("frozen: state '", s.name, "' is ", s.type, ", its value ",
                        it->second.type());
    }
    for (const ProgramEntry& e : data_->entries)
      out.data_->entries.push_back(frozen_entry(e, values, places));
    return out;
  });
}

ProgramGraph Program::graph() const { return {data_->name, data_->states, data_->entries}; }

namespace {

// Ends the redirection of states at the end of the scope.
struct Redirected {
  Trace& entry;
  std::vector<std::pair<std::int32_t, Tensor>> before = {};
  ~Redirected() {
    for (const auto& [state, to] : before) entry.redirect(state, to);
  }
};

}  // namespace

void redirect(const Variables& variables, const Tensors& to, const std::function<void()>& f,
              Where at) {
  located(at, [&] {
    if (variables.size() != to.size())
      throw UserError("with_values: ", variables.size(), " variables and ", to.size(),
                      " values, expected as many");
    Redirected redirected{Trace::current().entry()};
    for (std::size_t i = 0; i < to.size(); ++i) {
      const Variable& v = variables[i];
      entry_with(*v.program_, v.name());
      if (!(Trace::type_of(to[i]) == v.type()))
        throw UserError("with_values: state '", v.name(), "' is ", v.type(), ", its value ",
                        to[i].type(), "; give a value of its type");
      redirected.before.emplace_back(v.place_, redirected.entry.redirect(v.place_, to[i]));
    }
    const TraceScope users_lines(Trace::current().shared_from_this());
    f();
  });
}

}  // namespace hone
