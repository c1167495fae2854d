// Inner values as further results: the same ones in every variant, and similar names for those that
// the model does not have.
#include <algorithm>
#include <set>

#include "base/edit_distance.h"
#include "import/onnx/walk.h"

namespace hone::onnx {

namespace {

constexpr std::size_t most_near = 5;

// Every name that `dump` accepts. Recursion is bounded by the nesting of messages in the file, and
// by one level of calls: deeper names start at their own calls.
void collect(const Source& source, const std::vector<Node>& nodes, const std::string& prefix,
             std::set<std::string>& names) {
  for (const Node& n : nodes) {
    for (std::string_view name : n.outputs)
      if (!name.empty()) names.insert(cat(prefix, name));
    for (const Attribute& a : n.attributes)
      if (a.graph) collect(source, a.graph->nodes, prefix, names);
    if (const LocalFunction* f = source.local_function(n); f && prefix.empty())
      collect(source, f->nodes, cat(node_name(n), "/"), names);
  }
}

[[noreturn]] void refuse_unknown(const Source& source, const std::string& name) {
  std::set<std::string> names;
  const Graph& g = *source.model.graph;
  collect(source, g.nodes, "", names);
  for (const ValueInfo& v : g.inputs) names.emplace(v.name);
  for (std::string_view n : initializer_names(g)) names.emplace(n);
  if (names.contains(name))
    throw UserError("dump: '", name, "' is computed only in a branch that is never taken");
  std::vector<std::pair<std::size_t, std::string>> near;
  const std::string_view start = std::string_view(name).substr(0, 256);
  for (const std::string& n : names) {
    // Containing the given name, or being contained in it, is a better match.
    const bool holds = n.find(start) != n.npos || start.find(n) != start.npos;
    near.emplace_back(holds ? 0 : edit_distance(start, std::string_view(n).substr(0, 256)), n);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string list;
  for (std::size_t i = 0; i < std::min(near.size(), most_near); ++i)
    list += cat(list.empty() ? "" : ", ", "'", near[i].second, "'");
  throw UserError("dump: the model has no value '", name, "'",
                  list.empty() ? "" : "; similar names are " + list);
}

// The type common to all variants that have the value.
Type common_type(const std::string& name, std::span<const DumpedVariant> variants,
                 std::size_t which) {
  std::optional<Type> type;
  for (const DumpedVariant& v : variants) {
    if (!v.dumped[which]) continue;
    const Type& here = v.dumped[which]->value.type();
    if (type && type->dtype != here.dtype)
      throw UserError("dump: '", name, "' is ", *type, " or ", here,
                      " depending on sizes; give the sizes with --dim");
    type = here;
  }
  return *type;
}

}  // namespace

void add_dumped_results(const Source& source, std::span<DumpedVariant> variants) {
  for (std::size_t i = 0; i < source.options.dump.size(); ++i) {
    const std::string& name = source.options.dump[i];
    const auto has = [&](const DumpedVariant& v) { return v.dumped[i].has_value(); };
    if (std::none_of(variants.begin(), variants.end(), has)) refuse_unknown(source, name);
    const bool is_certain = std::all_of(variants.begin(), variants.end(), [&](const auto& v) {
      return has(v) && !v.dumped[i]->computed;
    });
    const Type type = common_type(name, variants, i);
    for (DumpedVariant& v : variants) {
      hone::Graph& graph = v.function.graph();
      const auto flag = [&](bool b) { return constant(graph, Array::scalar_int(b, DType::b1)); };
      Dumped d;
      if (has(v)) {
        d = *v.dumped[i];
        if (!d.computed) d.computed = flag(true);
      } else {
        const std::vector<std::int64_t> none(static_cast<std::size_t>(type.rank()), 0);
        d = {constant(graph, Array::zeros(type.dtype, none)), flag(false)};
      }
      v.function.add_result(d.value, name);
      if (!is_certain) v.function.add_result(d.computed, cat(name, dump_flag));
    }
  }
}

}  // namespace hone::onnx
