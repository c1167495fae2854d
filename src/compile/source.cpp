#include "compile/source.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "pass/narrow.h"
#include "schedule/schedule.h"
#include "verify/model/made_inputs.h"
#include "verify/model/whole.h"
#include "verify/sizes.h"

namespace hone {

namespace {

std::map<std::string, Dim> symbols_of(const std::vector<Type>& types) {
  std::map<std::string, Dim> out;
  for (const Type& t : types)
    for (const Dim& d : t.shape.dims)
      for (const Dim& s : d.symbols()) out.emplace(s.name(), s);
  return out;
}

std::set<std::string> symbol_names(const std::vector<Type>& types) {
  std::set<std::string> out;
  for (const auto& [name, symbol] : symbols_of(types)) out.insert(name);
  return out;
}

// Adds the conditions of bodies on input sizes: a normal run may skip a body, a check may not.
void add_checks_of_bodies(const Function& f, const std::set<std::string>& known,
                          std::vector<Guard>& out) {
  const auto is_known = [&](const Dim& d) {
    return std::ranges::all_of(d.symbols(), [&](const Dim& s) { return known.contains(s.name()); });
  };
  for (NodeId n : live_nodes(f))
    for (const Attrs::Entry& e : f.graph().attrs(n).entries()) {
      const auto* body = std::get_if<FunctionRef>(&e.second);
      if (!body) continue;
      for (const DimCheck& c : (*body)->graph().checks())
        if (is_known(c.a) && is_known(c.b)) out.push_back({Guard::Kind::equal, c.a, c.b});
      add_checks_of_bodies(**body, known, out);
    }
}

// Sizes larger than one tile if that needs little work; else at least 3, then at least 2; else any.
std::optional<Sizing> odd_or_any_sizes(const Function& f, const std::vector<Guard>& conditions) {
  struct Attempt {
    std::int64_t least, most_flops;
  };
  constexpr Attempt attempts[] = {
      {19, 20'000'000}, {3, 1'000'000'000}, {2, std::numeric_limits<std::int64_t>::max()}};
  const std::vector<Type> types = f.param_types();
  std::optional<Dim> flops;
  for (const Attempt& a : attempts) {
    std::optional<Sizing> made = odd_sizes(types, conditions, a.least);
    if (!made) continue;
    if (made->empty()) return made;
    if (!flops) flops = flops_of(f);
    if (flops_at(*flops, *made) <= a.most_flops) return made;
  }
  return sample_sizes(types, conditions);
}

// Gives each symbol the size of the previous one. Code that identifies sizes by their sum or
// product would confuse the new sizes with the old ones.
std::optional<Sizing> exchanged(const Sizing& sizes, const std::vector<Type>& types,
                                const std::vector<Guard>& conditions) {
  const std::set<std::string> all = symbol_names(types);
  const std::vector<std::string> names(all.begin(), all.end());
  if (names.size() < 2) return std::nullopt;
  Sizing out = sizes;
  for (std::size_t i = 0; i < names.size(); ++i)
    out[names[i]] = sizes.at(names[(i + names.size() - 1) % names.size()]);
  for (const Type& t : types)
    for (const Dim& d : t.shape.dims)
      for (const Dim& s : d.symbols())
        if (out.at(s.name()) < s.low() || out.at(s.name()) > s.high()) return std::nullopt;
  return guards_hold(conditions, out) ? std::optional(out) : std::nullopt;
}

// Sizes of which several differ from the given ones: all larger by one; each of two exchanged; and
// pairs whose sum is the same, in case sizes are identified by their sum.
std::vector<Sizing> changed_together(const Sizing& few, const std::vector<Type>& types,
                                     const std::vector<Guard>& conditions) {
  const std::map<std::string, Dim> symbols = symbols_of(types);
  if (symbols.size() < 2) return {};
  std::vector<Sizing> out;
  const auto add = [&](Sizing sizes) {
    for (const auto& [name, s] : symbols)
      if (sizes.at(name) < s.low() || sizes.at(name) > s.high()) return;
    if (guards_hold(conditions, sizes)) out.push_back(std::move(sizes));
  };
  Sizing all = few;
  for (const auto& [name, s] : symbols) ++all[name];
  add(std::move(all));
  if (std::optional<Sizing> turned = exchanged(few, types, conditions)) add(std::move(*turned));
  for (auto a = symbols.begin(); std::next(a) != symbols.end(); ++a) {
    const std::string &one = a->first, &other = std::next(a)->first;
    Sizing same_sum = few;
    ++same_sum[one], --same_sum[other];
    add(std::move(same_sum));
  }
  return out;
}

const std::vector<Array>* served_sample(const Source& source, const SourceVariant& v) {
  for (const std::vector<Array>& inputs : source.samples)
    if (guards_hold(v.guards, sizes_of(v, inputs))) return &inputs;
  return nullptr;
}

}  // namespace

bool serves_sample(const Source& source, const SourceVariant& v) {
  return served_sample(source, v) != nullptr;
}

std::vector<Guard> conditions_of(const SourceVariant& v) {
  std::vector<Guard> out = v.guards;
  for (const DimCheck& c : first_checks(v.function)) out.push_back({Guard::Kind::equal, c.a, c.b});
  return out;
}

Function narrowed(const SourceVariant& v) {
  std::vector<SizeFact> facts;
  for (const Guard& g : v.guards) facts.push_back({static_cast<SizeFact::Kind>(g.kind), g.a, g.b});
  return narrow(v.function, facts);
}

Sizing sizes_of(const SourceVariant& v, const std::vector<Array>& inputs) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const Array& a : inputs) dims.push_back(a.dims());
  return bind_sizes(v.function, dims);
}

Sizing sizes_to_check(const Source& source, const SourceVariant& v) {
  const std::vector<Guard> conditions = conditions_of(v);
  std::vector<Guard> all = conditions;
  add_checks_of_bodies(v.function, symbol_names(v.function.param_types()), all);
  std::optional<Sizing> made = odd_or_any_sizes(v.function, all);
  if (!made) made = odd_or_any_sizes(v.function, conditions);
  return made ? *made : sizes_to_time(source, v);
}

namespace {

// All symbols at their upper bounds, and each alone at several large sizes.
std::vector<Sizing> large_sizes_of(const std::vector<Type>& types,
                                   const std::vector<Guard>& conditions) {
  constexpr std::int64_t large_sizes[] = {70'000, 5'000, 500, 150}, large = large_sizes[0];
  constexpr std::int64_t least_sizes[] = {3, 1};
  constexpr std::size_t most_symbols = 4;
  const std::map<std::string, Dim> symbols = symbols_of(types);
  if (symbols.size() > most_symbols) return {};
  std::vector<Sizing> out;
  const auto add = [&](const Sizing& sizes) {
    const bool holds = guards_hold(conditions, sizes);
    if (holds) out.push_back(sizes);
    return holds;
  };
  Sizing most;
  for (const auto& [name, s] : symbols) most[name] = std::min(s.high(), large);
  add(most);
  for (const auto& [name, s] : symbols)
    for (const std::int64_t size : large_sizes)
      for (const std::int64_t least : least_sizes) {
        Sizing sizes;
        for (const auto& [other, t] : symbols) sizes[other] = std::clamp(least, t.low(), t.high());
        sizes[name] = std::clamp(size, s.low(), s.high());
        if (add(sizes)) break;
      }
  return out;
}

}  // namespace

std::vector<Sizing> sizes_to_check_also(const SourceVariant& v) {
  constexpr std::int64_t few = 16;
  // 0, 1, and sizes that leave many different remainders by 4, 8 and 16.
  constexpr std::int64_t least_sizes[] = {0, 1, 2, 7, 12, 15, few, 37, 54};
  const std::vector<Type> types = v.function.param_types();
  std::vector<Guard> conditions = conditions_of(v);
  add_checks_of_bodies(v.function, symbol_names(types), conditions);
  std::vector<Sizing> out;
  const auto add = [&](const std::optional<Sizing>& made) {
    if (made && !made->empty() && std::ranges::find(out, *made) == out.end()) out.push_back(*made);
  };
  for (const std::int64_t least : least_sizes) add(odd_sizes(types, conditions, least));
  if (const auto made = odd_sizes(types, conditions, few)) add(exchanged(*made, types, conditions));
  for (const Sizing& sizes : large_sizes_of(types, conditions)) add(sizes);
  return out;
}

std::vector<Sizing> sizes_of_one_symbol(const SourceVariant& v) {
  constexpr std::int64_t least_sizes[] = {2, 1, 3, 7, 16};
  constexpr std::int64_t large_sizes[] = {70'000, 20'000, 5'000, 1'000};
  constexpr std::int64_t most_flops = 1'000'000;
  constexpr std::size_t most_symbols = 4;
  const std::vector<Type> types = v.function.param_types();
  const std::map<std::string, Dim> symbols = symbols_of(types);
  if (symbols.empty() || symbols.size() > most_symbols) return {};
  std::vector<Guard> conditions = conditions_of(v);
  add_checks_of_bodies(v.function, symbol_names(types), conditions);
  const Dim flops = flops_of(v.function);
  const auto fits = [&](const Sizing& made) {
    return guards_hold(conditions, made) && flops_at(flops, made) <= most_flops;
  };
  std::vector<Sizing> out;  // of the `least` with the most sizes that fit
  for (const std::int64_t least : least_sizes) {
    const std::optional<Sizing> few = odd_sizes(types, conditions, least);
    if (!few) continue;
    std::vector<Sizing> here = {*few};
    for (const auto& [name, s] : symbols) {
      Sizing more = *few;
      if (++more[name] <= s.high() && fits(more)) here.push_back(std::move(more));
    }
    if (here.size() > out.size()) out = std::move(here);
    if (out.size() == symbols.size() + 1) break;
  }
  const Sizing few = out.empty() ? Sizing() : out.front();
  if (!out.empty())
    for (Sizing& sizes : changed_together(few, types, conditions))
      if (fits(sizes)) out.push_back(std::move(sizes));
  for (const auto& [name, s] : symbols)
    for (const std::int64_t large : large_sizes) {
      Sizing many = few;
      many[name] = std::clamp(large, s.low(), s.high());
      if (out.empty() || many == few || !fits(many)) continue;
      out.push_back(std::move(many));
      break;
    }
  return out;
}

Sizing sizes_to_time(const Source& source, const SourceVariant& v) {
  if (const std::vector<Array>* inputs = served_sample(source, v)) return sizes_of(v, *inputs);
  if (std::optional<Sizing> made = sample_sizes(v.function.param_types(), conditions_of(v)))
    return *made;
  if (v.sizes) return *v.sizes;
  throw UserError(source.name,
                  ": no sizes were found that satisfy a variant's conditions; give "
                  "inputs with --input");
}

std::vector<Array> inputs_to_time(const Source& source, const SourceVariant& v,
                                  const Sizing& sizes) {
  if (const std::vector<Array>* inputs = served_sample(source, v)) return *inputs;
  return made_inputs(v.function, sizes).arrays;
}

}  // namespace hone
