#include "import/onnx/source.h"

#include <algorithm>
#include <cctype>

namespace hone::onnx {

std::string_view normal_domain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::int64_t opset_of(const std::vector<Opset>& opsets, std::string_view domain) {
  for (const Opset& o : opsets)
    if (normal_domain(o.domain) == normal_domain(domain)) return o.version;
  return 0;
}

std::string_view node_name(const Node& n) {
  return n.name.empty() && !n.outputs.empty() ? n.outputs[0] : n.name;
}

std::string fit_size_name(std::string_view text) {
  std::string out;
  for (char c : text) out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  bool starts_well = !out.empty() && !std::isdigit(static_cast<unsigned char>(out[0]));
  return starts_well ? out : cat("_", out);
}

namespace {

// Checked before reading, so that functions whose calls double at each level are rejected at once.
std::int64_t count_nodes(Source& s, const LocalFunction& f, int depth) {
  auto [entry, is_new] = s.nodes_of_call.try_emplace(&f, 0);
  if (!is_new || depth == most_calls) return entry->second;
  std::int64_t nodes = 0;
  for (const Node& n : f.nodes) {
    const LocalFunction* called = s.local_function(n);
    const std::int64_t inside = called ? count_nodes(s, *called, depth + 1) : 0;
    nodes = std::min(nodes + 1 + inside, s.options.most_nodes + 1);
  }
  return s.nodes_of_call[&f] = nodes;
}

}  // namespace

Source::Source(const Model& m, TensorFiles& f, const ImportOptions& o, Observer seen)
    : model(m), files(f), options(o), observer(std::move(seen)) {
  for (const LocalFunction& local : model.functions)
    if (!functions
             .emplace(FunctionKey{local.name, normal_domain(local.domain), local.overload}, &local)
             .second)
      throw UserError("function '", local.name, "' of domain '", local.domain,
                      "' appears twice; names and overloads must be unique");
  for (const LocalFunction& local : model.functions) count_nodes(*this, local, 0);
}

const LocalFunction* Source::local_function(const Node& n) const {
  if (functions.empty()) return nullptr;
  auto it = functions.find({n.op, normal_domain(n.domain), n.overload});
  return it == functions.end() ? nullptr : it->second;
}

}  // namespace hone::onnx
