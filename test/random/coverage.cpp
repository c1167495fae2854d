#include "test/random/coverage.h"

#include <iomanip>
#include <set>
#include <sstream>

namespace hone::fuzz {

void Coverage::add(const Function& f) {
  const Graph& g = f.graph();
  for (NodeId n : live_nodes(f)) {
    const Attrs& attrs = g.attrs(n);
    std::string name(g.op(n).name);
    if (attrs.has("kind")) name += " " + attrs.get<std::string>("kind");
    ++counts_[name][static_cast<std::size_t>(g.type(n).dtype)];
    ++uses_[&g.op(n)];
    for (const Attrs::Entry& e : attrs.entries())
      if (const auto* body = std::get_if<FunctionRef>(&e.second)) add(**body);
  }
}

void Coverage::add(const Generated& c) {
  add(c.function);
  const std::set<std::string_view> different(c.operators.begin(), c.operators.end());
  for (std::string_view op : different) ++operators_[std::string(op)];
}

std::int64_t Coverage::uses(const Op& op) const {
  auto it = uses_.find(&op);
  return it == uses_.end() ? 0 : it->second;
}

std::string Coverage::table() const {
  std::ostringstream out;
  out << std::left << std::setw(22) << "operation" << std::right;
  for (int t = 0; t < computed_dtype_count; ++t)
    out << std::setw(7) << info(static_cast<DType>(t)).name;
  out << "\n";
  for (const auto& [name, row] : counts_) {
    out << std::left << std::setw(22) << name << std::right;
    for (int t = 0; t < computed_dtype_count; ++t)
      out << std::setw(7) << row[static_cast<std::size_t>(t)];
    out << "\n";
  }
  for (const auto& [name, functions] : operators_)
    out << std::left << std::setw(28) << "ONNX " + name << std::right << std::setw(7) << functions
        << " functions\n";
  out << uses_.size() << " operations, " << counts_.size() << " with their kinds; "
      << operators_.size() << " operators of ONNX\n";
  return out.str();
}

}  // namespace hone::fuzz
