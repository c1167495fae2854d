#include "optimize/states.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "plan/content_hash.h"
#include "plan/entry.h"

namespace hone {

namespace {

template <class List>
std::size_t place_of(const std::string& model, std::string_view what, const List& all,
                     const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return i;
    names += cat(names.empty() ? "'" : ", '", all[i].name, "'");
  }
  throw UserError(model, ": state: there is no ", what, " '", name, "'; there are ",
                  names.empty() ? "none" : names);
}

[[noreturn]] void refuse(const std::string& model, const StatePair& p, const Type& input,
                         const Type& output, const std::string& why) {
  throw UserError(model, ": state: output '", p.output, "' is ", output, ", but input '", p.input,
                  "' is ", input, "; ", why);
}

// The only axis along which two tensors differ.
std::optional<std::uint32_t> different_axis(const Type& a, const Type& b) {
  std::optional<std::uint32_t> out;
  if (!a.is_tensor() || !b.is_tensor() || a.dtype != b.dtype || a.rank() != b.rank())
    return std::nullopt;
  for (std::uint32_t i = 0; i < a.shape.dims.size(); ++i) {
    if (a.shape.dims[i] == b.shape.dims[i]) continue;
    if (out) return std::nullopt;
    out = i;
  }
  return out;
}

// None for a state that keeps its size.
std::optional<Capacity> capacity_for(const std::string& model, const StatePair& p,
                                     const Type& input, const Type& output) {
  // What an open size may be when nobody gave a range is no capacity that somebody chose.
  constexpr std::int64_t ungiven = 1 << 20;
  std::optional<Capacity> out;
  if (!(input == output)) {
    const std::optional<std::uint32_t> axis = different_axis(input, output);
    if (!axis || input.shape.dims[*axis].is_number())
      refuse(
          model, p, input, output,
          "a state keeps its type, and its sizes but for one open axis, along which it may grow");
    const Dim &from = input.shape.dims[*axis], &to = output.shape.dims[*axis];
    if (prove_less(to, from) != false)
      refuse(model, p, input, output, "a state that changes its size must not become shorter");
    if (from.high() == ungiven || to.high() > std::int64_t{1} << 40)
      refuse(
          model, p, input, output,
          cat("give ", from, " a range whose end says how much the state can hold, as with --dim ",
              from, "=0..1023"));
    out = {*axis, to.high()};
  }
  if (!input.is_tensor() || !byte_count(whole_type(input, out)).is_number())
    throw UserError(model, ": state: input '", p.input, "' is ", input,
                    ", but the other sizes of a state are fixed; give them with --dim");
  return out;
}

// What the star of the pattern stands for in the name.
std::optional<std::string> matched(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  const std::string_view before = pattern.substr(0, star), behind = pattern.substr(star + 1);
  if (name.size() < before.size() + behind.size() || !name.starts_with(before) ||
      !name.ends_with(behind))
    return std::nullopt;
  return std::string(name.substr(star, name.size() - before.size() - behind.size()));
}

std::vector<StatePair> with_full_names(const Source& source, std::span<const StatePair> pairs) {
  std::vector<StatePair> out;
  for (const StatePair& p : pairs) {
    const std::size_t star = p.output.find('*');
    if ((p.input.find('*') == std::string::npos) != (star == std::string::npos))
      throw UserError(source.name, ": state: '", p.input, "=", p.output,
                      "' has a * on one side only");
    if (star == std::string::npos) {
      out.push_back(p);
      continue;
    }
    const std::size_t before = out.size();
    for (const Function::Param& param : source.variants[0].function.params())
      if (const std::optional<std::string> text = matched(p.input, param.name))
        out.push_back({param.name, std::string(p.output).replace(star, 1, *text)});
    if (out.size() == before)
      throw UserError(source.name, ": state: no input is named like '", p.input, "'");
  }
  return out;
}

}  // namespace

std::vector<StatePair> store_states(Source& source, std::span<const StatePair> given) {
  std::vector<StatePair> pairs = with_full_names(source, given);
  std::set<std::string> inputs, outputs;
  for (const StatePair& p : pairs)
    if (!inputs.insert(p.input).second || !outputs.insert(p.output).second)
      throw UserError(source.name, ": state: '", p.input, "' or '", p.output,
                      "' is named twice; each input and output belongs to one state");
  for (SourceVariant& v : source.variants)
    for (const StatePair& p : pairs) {
      Function& f = v.function;
      const std::size_t param = place_of(source.name, "input", f.params(), p.input),
                        result = place_of(source.name, "output", f.results(), p.output);
      f.store(result, static_cast<std::uint32_t>(param),
              capacity_for(source.name, p, f.param(param).type(), f.result(result).type()));
    }
  return pairs;
}

void keep_states(Plan& plan, std::span<const StatePair> pairs) {
  if (pairs.empty()) return;
  PlanEntry& e = plan.main();
  HONE_ASSERT(plan.states.empty() && e.states.empty(), "a plan of a model has no states yet");
  e.states.assign(e.params.size(), PlanEntry::no_state);
  for (const StatePair& p : pairs) {
    const std::size_t param = place_of(plan.name, "input", e.params, p.input);
    e.states[param] = static_cast<std::int32_t>(plan.states.size());
    const PlanParam& kept = e.params[param];
    add_state(plan, {p.input,
                     "state",
                     whole_type(kept.type, kept.capacity),
                     0,
                     {},
                     kept.capacity ? std::optional(kept.capacity->axis) : std::nullopt});
  }
  const PlanState& last = plan.states.back();
  const std::int64_t end = checked_add(last.offset, byte_count(last.type).number());
  for (StrategyRecord& s : e.strategies)
    if (s.chosen && s.peak_bytes >= 0) s.peak_bytes = checked_add(s.peak_bytes, end);
  if (plan.content) plan.content = content_hash_when_read(plan);
}

}  // namespace hone
