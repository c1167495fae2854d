#include "optimize/second_reading.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <unordered_map>

#include "base/amount.h"
#include "base/file.h"
#include "import/onnx/variants.h"
#include "ir/measured.h"
#include "optimize/source.h"
#include "ref/evaluate.h"
#include "verify/model/made_inputs.h"
#include "verify/model/whole.h"
#include "verify/onnx/alone.h"
#include "verify/onnx/check.h"
#include "verify/sample.h"
#include "verify/sizes.h"

namespace hone {

namespace {

// Cost of evaluations.
struct Work {
  std::int64_t flops = 0, elements = 0, nodes = 0;
};
constexpr std::int64_t most_of_node_in_model = 1 << 17;
constexpr Work most_of_model = {100'000'000, 1 << 24, 1 << 12},
               most_of_all_nodes = {50'000'000, 1 << 22, 1 << 15};
// Memory that an evaluation takes for an element of a node's result: as a number of the reference,
// of the comparison and of the function's results.
constexpr std::int64_t bytes_of_element = 32;

// Processor time; what is left untried then is said.
class Clock {
 public:
  bool is_over() const { return std::clock() - start_ > most_seconds * CLOCKS_PER_SEC; }
  static constexpr std::clock_t most_seconds = 10;

 private:
  std::clock_t start_ = std::clock();
};

std::optional<onnx::Numbers> numbers_of(const Wide& w) {
  onnx::Numbers out{w.dtype, w.dims, w.reals};
  if (w.is_real()) return out;
  for (std::int64_t i : w.integers)
    out.values.push_back(
        w.dtype == DType::u64 && i < 0
            ? onnx::most_whole
            : std::clamp(static_cast<double>(i), -onnx::most_whole, onnx::most_whole));
  return out;
}

// Small and different sizes: results of a single node do not depend on tiles.
Sizing small_sizes(const Source& source, const SourceVariant& v) {
  const std::optional<Sizing> small = odd_sizes(v.function.param_types(), conditions_of(v), 2);
  return small ? *small : sizes_to_check(source, v);
}

// Empty if it exceeds `most`.
std::optional<Work> work_of(const Function& f, const Sizing& sizes, const Work& most) {
  Work out;
  const std::vector<NodeId> nodes = live_nodes(f);
  out.nodes = std::ssize(nodes);
  if (out.nodes > most.nodes) return std::nullopt;
  for (NodeId n : nodes)
    for (std::size_t i = 0; i < f.graph().result_count(n); ++i) {
      const Type& t = f.graph().type(n, i);
      if (t.is_tensor()) out.elements += size_of(t.shape.count(), sizes);
      if (out.elements > most.elements) return std::nullopt;
    }
  out.flops = flops_at(flops_of(f), sizes);
  return out.flops <= most.flops ? std::optional(out) : std::nullopt;
}

// The values of one run of the function, by their names in the model.
std::unordered_map<std::string, onnx::Numbers> values_of(const Function& f,
                                                         const std::vector<Array>& inputs) {
  std::unordered_map<std::string, onnx::Numbers> out;
  std::vector<Wide> results = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (std::optional<onnx::Numbers> n = numbers_of(results[i]))
      out.emplace(f.results()[i].name, std::move(*n));
  return out;
}

// Numbers of this kind in all inputs, also integers.
std::vector<Array> inputs_of(const Function& f, const Sizing& sizes, Fill fill) {
  std::vector<Array> out;
  for (const Function::Param& p : f.params()) {
    Array& a = out.emplace_back(
        p.required ? *p.required : sample_array(p.value.type(), sizes, fill, out.size() + 1));
    // Numbers of the comparison hold fewer bits.
    constexpr int too_many = 16;
    if (p.required || (a.dtype() != DType::i64 && a.dtype() != DType::u64)) continue;
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_integer(
          i, a.dtype() == DType::i64
                 ? a.integer(i) >> too_many
                 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a.integer(i)) >> too_many));
  }
  return out;
}

std::string lost_output(const onnx::Model& model, const Function& f) {
  std::set<std::string_view> results;
  for (const Function::Result& r : f.results()) results.insert(r.name);
  for (const onnx::ValueInfo& o : model.graph->outputs)
    if (o.kind == onnx::ValueInfo::Kind::tensor && !results.contains(o.name))
      return cat("output '", o.name, "' is not among the results");
  return "";
}

onnx::ReadingCheck check_run(const onnx::Model& model, const ImportOptions& options,
                             const Function& f, const std::vector<Array>& inputs,
                             std::int64_t most_of_node) try {
  const auto values = values_of(f, inputs);
  const auto value = [&](std::string_view name) -> const onnx::Numbers* {
    const std::string text(name);
    if (options.weights.contains(text)) return nullptr;
    if (values.contains(cat(text, dump_flag))) return nullptr;  // only in some variants
    const auto it = values.find(text);
    return it == values.end() ? nullptr : &it->second;
  };
  return onnx::check_reading(model, value, most_of_node);
} catch (const UserError&) {
  return {};  // the model refuses such inputs
}

// Inputs on which a function is checked: usual ones; integers of both signs, which many functions
// refuse; then, where that is little work, ones of all magnitudes, and ones that are next to zero.
std::vector<std::vector<Array>> inputs_to_check(const onnx::Model& model, const Function& f,
                                                const Sizing& sizes, bool is_little) {
  const std::vector<Array> usual = made_inputs(f, sizes).arrays;
  std::vector<std::vector<Array>> out = {usual, inputs_of(f, sizes, Fill::negative)};
  if (!is_little) return out;
  // Large integers may be sizes of results, or how often a loop runs.
  const std::optional<std::vector<Array>> wide = special_like(f, usual, Fill::wide);
  const bool has_loop = std::ranges::any_of(onnx::all_nodes(model), [](const onnx::Node* n) {
    return n->op == "Loop" || n->op == "Scan";
  });
  if (measured_sizes(f.graph()).empty() && !has_loop)
    out.push_back(inputs_of(f, sizes, Fill::wide));
  if (wide) out.push_back(*wide);
  if (auto tiny = special_like(f, usual, Fill::tiny)) out.push_back(std::move(*tiny));
  return out;
}

// Checks at small sizes of each variant. Subtracts the cost from `left`, and skips a variant that
// costs more than is left.
onnx::ReadingCheck check_model(const onnx::Model& model, const ImportOptions& options,
                               const Source& source, Work& left, std::int64_t most_of_node) {
  constexpr std::int64_t little = 5'000'000, little_nodes = 1000;
  onnx::ReadingCheck out;
  for (const SourceVariant& v : source.variants) {
    const Sizing sizes = with_measured(small_sizes(source, v), measured_sizes(v.function.graph()));
    const std::optional<Work> work = work_of(v.function, sizes, left);
    if (!work) continue;
    left.flops -= work->flops;
    left.elements -= work->elements;
    left.nodes -= work->nodes;
    const bool is_little = work->flops <= little && work->nodes <= little_nodes;
    for (const std::vector<Array>& inputs : inputs_to_check(model, v.function, sizes, is_little)) {
      onnx::ReadingCheck here = check_run(model, options, v.function, inputs, most_of_node);
      out.judged.merge(here.judged);
      out.wrong = std::move(here.wrong);
      if (!out.wrong.empty()) return out;
    }
  }
  return out;
}

std::string wrong_initializer(const onnx::Model& model, const ImportOptions& options,
                              onnx::TensorFiles& files) {
  return onnx::check_initializers(model,
                                  [&](const onnx::Tensor& t) -> std::optional<onnx::Numbers> {
                                    if (options.weights.contains(std::string(t.name)))
                                      return std::nullopt;
                                    return numbers_of(widen(files.array(t)));
                                  });
}

// Sequences are not numbers.
Function without_sequences(const Function& f) {
  Function out = clone_params(f);
  Copier copy(f, out);
  for (NodeId n : live_nodes(f))
    if (!copy.has(n)) copy.copy(n);
  for (const Function::Result& r : f.results())
    if (r.value.type().is_tensor()) out.add_result(copy(r.value), r.name);
  return out;
}

// Nodes that do the same; only the first is kept.
struct MetKind {
  onnx::MetNode met;
  std::vector<onnx::NodeId> nodes;
};

class MetKinds {
 public:
  void add(const onnx::Node& n, const std::vector<onnx::Opset>& opsets, const Values& operands) {
    onnx::MetNode met = onnx::met_node(n, opsets, operands);
    const auto [at, is_new] = places_.emplace(onnx::kind_of(met), kinds_.size());
    if (is_new) kinds_.push_back({std::move(met), {}});
    kinds_[at->second].nodes.push_back(onnx::id_of(n));
  }
  void clear() {
    kinds_.clear();
    places_.clear();
  }
  const std::vector<MetKind>& kinds() const { return kinds_; }

 private:
  std::vector<MetKind> kinds_;
  std::unordered_map<std::string, std::size_t> places_;
};

// The source with all values of the graph that have names as results, where these are few.
Source source_again(onnx::Model& model, ImportOptions options, onnx::TensorFiles& files,
                    MetKinds& met) {
  const auto see = [&](const onnx::Node& n, const std::vector<onnx::Opset>& opsets,
                       const Values& operands) {
    if (onnx::is_judged(model, n)) met.add(n, opsets, operands);
  };
  Imported imported;
  if (std::ssize(model.graph->nodes) <= most_of_model.nodes) try {
      options.dump = onnx::names_to_check(model);
      onnx::read_model(model, files, options, imported, see);
      for (ImportedVariant& v : imported.variants) v.function = without_sequences(v.function);
      return hone::source(imported);
    } catch (const UserError&) {
      met.clear();
    }
  options.dump.clear();
  imported = {};
  onnx::read_model(model, files, options, imported, see);
  return hone::source(imported);
}

// ---- nodes alone

class Alone {
 public:
  // `judged`: nodes that were checked in the model.
  Alone(std::shared_ptr<const MappedFile> file, const Source& source,
        const std::set<onnx::NodeId>& judged, const Clock& clock)
      : file_(std::move(file)), judged_(judged), clock_(clock) {
    for (const SourceVariant& v : source.variants)
      sizes_.push_back(with_measured(small_sizes(source, v), measured_sizes(v.function.graph())));
  }

  // Checks the other nodes on the smallest possible operands, cheap ones first; then all at sizes
  // other than the model's.
  onnx::ReadingCheck run(const std::vector<MetKind>& kinds) {
    const auto at_small_sizes = [this](const onnx::SizedNode& n) { return judge_small(n); };
    for (const Work& most : {little_work, Work{2'000'000, 1 << 19, most_of_all_nodes.nodes}}) {
      most_of_node_ = most;
      std::erase_if(known_, [](const auto& kind) { return !kind.second; });
      for (const MetKind& k : kinds)
        if (!is_known(k) && goes_on())
          if (judge(k.met, at_small_sizes); !out_.wrong.empty()) return out_;
    }
    most_of_node_ = little_work;
    known_.clear();
    for (const MetKind& k : kinds)
      if (goes_on() && out_.wrong.empty())
        judge(k.met, [this](const onnx::SizedNode& n) { return judge_others(n); });
    return out_;
  }
  // Whether there was something left to try when time or work was spent.
  bool is_stopped() const { return is_stopped_; }

 private:
  static constexpr Work little_work = {200'000, 1 << 15, most_of_all_nodes.nodes};

  bool is_known(const MetKind& k) const {
    return std::ranges::any_of(
        k.nodes, [&](onnx::NodeId id) { return judged_.contains(id) || out_.judged.contains(id); });
  }
  bool goes_on() {
    is_stopped_ = is_stopped_ || clock_.is_over() || left_.nodes <= 0 || left_.flops <= 0 ||
                  left_.elements <= 0;
    return !is_stopped_;
  }

  // Checks one of each kind, at the sizes of the first variant where that is possible.
  void judge(const onnx::MetNode& m, const std::function<bool(const onnx::SizedNode&)>& judges) {
    for (const Sizing& sizes : sizes_) {
      const auto n = onnx::sized_node(m, [&](const Dim& d) { return size_of(d, sizes); });
      if (!n) continue;
      const auto [known, is_new] = known_.emplace(onnx::kind_of(*n), false);
      if (is_new) known->second = judges(*n);
      if (!known->second) continue;
      out_.judged.insert(onnx::id_of(m.node));
      return;
    }
  }
  bool judge_small(const onnx::SizedNode& n) {
    bool done = false;
    onnx::try_small_sizes(
        n, [&](const onnx::SizeMap& m) { return read(onnx::OneNode(n, m)).has_value(); },
        [&](const onnx::SizeMap& m) { return done = judge(onnx::OneNode(n, m)); });
    return done;
  }
  bool judge_others(const onnx::SizedNode& n) {
    bool done = false;
    for (const onnx::SizeMap& m : onnx::other_sizes(n)) {
      if (m.in_windows && done) break;
      if (judge(onnx::OneNode(n, m))) done = true;
    }
    return done;
  }
  bool judge(const onnx::OneNode& one) {
    const std::optional<Source> source = read(one);
    if (!source) return false;
    const Work most = {std::min(left_.flops, most_of_node_.flops),
                       std::min(left_.elements, most_of_node_.elements), left_.nodes};
    Work left = most;
    onnx::ReadingCheck c = check_model(one.model, {}, *source, left, most.elements);
    left_.flops -= most.flops - left.flops;
    left_.elements -= most.elements - left.elements;
    left_.nodes = left.nodes;
    if (out_.wrong.empty()) out_.wrong = std::move(c.wrong);
    return !c.judged.empty();
  }

  // Empty if the import refuses it.
  std::optional<Source> read(const onnx::OneNode& one) const try {
    onnx::Model model = one.model;
    onnx::TensorFiles files(file_);
    ImportOptions options;
    options.dump = onnx::names_to_check(model);
    Imported imported;
    onnx::read_model(model, files, options, imported);
    for (ImportedVariant& v : imported.variants) v.function = without_sequences(v.function);
    return hone::source(imported);
  } catch (const UserError&) {
    return std::nullopt;
  }

  std::shared_ptr<const MappedFile> file_;
  const std::set<onnx::NodeId>& judged_;
  const Clock& clock_;
  bool is_stopped_ = false;
  std::vector<Sizing> sizes_;          // by variant
  std::map<std::string, bool> known_;  // by kind: whether it could be judged
  Work left_ = most_of_all_nodes, most_of_node_;
  onnx::ReadingCheck out_;
};

}  // namespace

namespace {

// Counts the nodes of the model: those that were judged, and those that do the same.
void count_nodes(const onnx::Model& model, const onnx::ReadingCheck& whole,
                 const onnx::ReadingCheck& alone, const std::vector<MetKind>& kinds,
                 SecondReading& out) {
  std::set<onnx::NodeId> equal;
  for (const MetKind& k : kinds)
    if (std::ranges::any_of(k.nodes, [&](onnx::NodeId id) {
          return whole.judged.contains(id) || alone.judged.contains(id);
        }))
      equal.insert(k.nodes.begin(), k.nodes.end());
  std::set<std::string> known;
  for (const onnx::Node* n : onnx::all_nodes(model)) {
    const onnx::NodeId id = onnx::id_of(*n);
    const bool in_model = whole.judged.contains(id), by_itself = alone.judged.contains(id),
               is_judged = in_model || by_itself || equal.contains(id);
    ++out.nodes;
    out.judged += is_judged;
    out.alone += by_itself && !in_model;
    out.equal += is_judged && !in_model && !by_itself;
    if (is_judged)
      known.emplace(n->op);
    else
      ++out.left_out[std::string(n->op)];
  }
  for (const auto& [op, nodes] : out.left_out)
    if (!known.contains(op)) out.unknown.push_back(op);
}

// The nodes that were not judged, by operator: all, or those of operators of which none was.
std::string left_out_text(const SecondReading& reading, bool only_unknown) {
  std::string out;
  for (const auto& [op, nodes] : reading.left_out)
    if (!only_unknown || std::ranges::find(reading.unknown, op) != reading.unknown.end())
      out += cat(out.empty() ? "" : ", ", amount(nodes, "node", "nodes"), " of ", op);
  return out;
}

}  // namespace

SecondReading read_again(const std::filesystem::path& path, const ImportOptions& options,
                         const Source& source, std::int64_t most_bytes) try {
  const Clock clock;
  const auto file = MappedFile::open(path);
  onnx::Model model = onnx::parse_model(file->bytes(), file->path(), options.most_nodes);
  onnx::TensorFiles files(file, options.allow_links);
  SecondReading out;
  for (const SourceVariant& v : source.variants)
    if (out.wrong = lost_output(model, v.function); !out.wrong.empty()) return out;
  if (out.wrong = wrong_initializer(model, options, files); !out.wrong.empty()) return out;

  MetKinds met;
  const Source again = source_again(model, options, files, met);
  Work left = most_of_model;
  left.elements = std::min(left.elements, most_bytes / bytes_of_element);
  onnx::ReadingCheck whole = check_model(model, options, again, left, most_of_node_in_model);
  onnx::ReadingCheck alone;
  if (whole.wrong.empty()) {
    Alone one_by_one(file, again, whole.judged, clock);
    alone = one_by_one.run(met.kinds());
    if (one_by_one.is_stopped())
      out.limit = cat("the limit of ", Clock::most_seconds, " s of processor time, ",
                      most_of_all_nodes.flops, " operations and ", most_of_all_nodes.elements,
                      " elements was reached");
  }
  count_nodes(model, whole, alone, met.kinds(), out);
  out.wrong = whole.wrong.empty() ? std::move(alone.wrong) : std::move(whole.wrong);
  return out;
} catch (const UserError&) {
  return {};  // made-up inputs that the model refuses
}

SecondReading checked_reading(const std::filesystem::path& path, const ImportOptions& options,
                              const Source& source, const std::vector<std::string>& contradictions,
                              std::int64_t max_memory, const AcceptedReading& accepted) {
  if (!contradictions.empty() && !accepted.outputs)
    throw UserError(path.string(), ": refused: ", contradictions[0],
                    "; the model may have been read wrongly; if the declaration is wrong, give "
                    "--accept-outputs");
  const auto start = std::chrono::steady_clock::now();
  constexpr std::int64_t usual = std::int64_t{1} << 30;
  SecondReading out = read_again(path, options, source, max_memory > 0 ? max_memory / 4 : usual);
  out.ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!out.wrong.empty() && !accepted.nodes)
    throw InternalError("refused: ", out.wrong,
                        ", as its operator's page says; the model was read wrongly. "
                        "--accept-reading goes on");
  return out;
}

std::string unjudged_warning(const SecondReading& reading) {
  if (!reading.limit.empty())
    return cat("the second reading did not try all nodes: ", reading.limit,
               "; not judged: ", left_out_text(reading, false));
  if (!reading.unknown.empty())
    return cat("no second reading checks how the model was read where it has ",
               left_out_text(reading, true));
  return "";
}

}  // namespace hone
