#include "import/onnx/variants.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "import/onnx/declared.h"
#include "import/onnx/file/sorted.h"
#include "import/onnx/given_weights.h"
#include "import/onnx/input_types.h"
#include "import/onnx/unsupported.h"
#include "import/onnx/walk.h"
#include "ir/verify.h"

namespace hone::onnx {

namespace {

constexpr std::size_t most_lines = 1000;  // per message
constexpr std::size_t most_opsets = 1000;

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size() && i < most_lines; ++i) out += cat("\n  ", lines[i]);
  if (lines.size() > most_lines) out += cat("\n  and ", lines.size() - most_lines, " more");
  return out;
}

std::string counted(std::size_t n, std::string_view what) {
  return cat(n, n == 1 ? " part of the model is " : " parts of the model are ", what);
}

// Model-level requirements. The oldest files do not name their opset.
void check_model(Model& model) {
  if (model.ir_version < 3 && model.opsets.empty()) model.opsets.push_back({"", 1});
  if (!model.graph) throw UserError("contains no graph; is it an ONNX model?");
  if (std::int64_t opset = opset_of(model.opsets, ""); opset > ImportEntry::newest_opset)
    throw UserError("uses opset ", opset, ", expected at most ", ImportEntry::newest_opset,
                    "; export the model with an older opset");
  if (model.opsets.size() > most_opsets)
    throw UserError("imports ", model.opsets.size(), " opsets, expected at most ", most_opsets);
}

Problems problems_of(const Reading& reading) {
  Problems out;
  if (reading.missing_operators > 0) out.unsupported = unsupported_nodes(reading.source);
  for (const Failure& f : reading.failures)
    (f.depends_on_data ? out.data_dependent
     : f.unsupported   ? out.unsupported
                       : out.wrong)
        .push_back(f.what);
  out.left_out = reading.left_out;
  return out;
}

std::string conditions_text(const std::vector<Assumption>& assumptions) {
  std::string out;
  for (const Assumption& a : assumptions)
    out += cat(out.empty() ? "" : " and ", a.condition, a.holds ? "" : " == 0");
  return out;
}

// Reads the model without assumptions, and again for every answer to every question that arises.
class Variants {
 public:
  Variants(Source source, Imported& out) : source_(std::move(source)), out_(out) {}

  void read_all() {
    while (!open_.empty()) {
      std::vector<Assumption> assumptions = std::move(open_.front());
      open_.pop_front();
      try {
        read(assumptions);
      } catch (const NeedsContents& needed) {
        read_inputs_.insert(needed.inputs.begin(), needed.inputs.end());
        start_again();
      }
    }
    if (out_.variants.empty()) throw Refused(failure_);
    std::vector<DumpedVariant> dumped;
    for (std::size_t i = 0; i < dumped_.size(); ++i)
      dumped.push_back({out_.variants[i].function, std::move(dumped_[i])});
    add_dumped_results(source_, dumped);
  }

 private:
  // All variants must have the same parameters.
  void start_again() {
    open_ = {{}};
    out_.variants.clear();
    out_.warnings.clear();
    dumped_.clear();
  }

  void read(const std::vector<Assumption>& assumptions) {
    Reading reading{source_, Assumptions(assumptions)};
    reading.read_inputs = read_inputs_;
    reading.branches_may_differ = branches_may_differ_;
    Function f;
    std::optional<OpenQuestion> question;
    try {
      f = read_function(reading);
    } catch (const OpenQuestion& q) {
      question = q;
    }
    Problems problems = problems_of(reading);
    // Data-dependent sizes are not supported everywhere; those of inputs are.
    if (!problems.empty() && branches_may_differ_ && reading.has_unproven_branches) {
      branches_may_differ_ = false;
      return start_again();
    }
    // Unsupported features, and errors before any question, apply to all sizes.
    if (!problems.empty() && (assumptions.empty() || reading.is_unsupported()))
      throw Refused(std::move(problems));
    if (!problems.empty()) return fail(assumptions, std::move(problems));
    if (question) return fork(assumptions, *question);
    for (const std::string& w : reading.warnings) warn(assumptions, w);
    if (const std::optional<Dim> equal = reading.assumptions.all_equal();
        equal && add_broadcasting(assumptions, *equal, reading, f))
      return;
    for (const DimCheck& c : f.graph().checks()) warn_equal(reading, c);
    add(assumptions, reading, std::move(f));
  }

  void add(const std::vector<Assumption>& assumptions, Reading& reading, Function f) {
    verify_bodies(f);
    out_.variants.push_back({assumptions, std::move(f)});
    dumped_.push_back(std::move(reading.dumped));
  }

  // Adds the reading `f`, for sizes that meet in broadcasts and are equal, and another for all
  // other sizes. False: the model cannot be read so.
  bool add_broadcasting(std::vector<Assumption> assumptions, const Dim& equal, Reading& reading,
                        Function& f) {
    if (!source_.options.has_broadcast_variants ||
        open_.size() + out_.variants.size() + 2 > source_.options.most_variants)
      return false;
    Reading other{source_, Assumptions(assumptions, false)};
    other.read_inputs = read_inputs_;
    other.branches_may_differ = branches_may_differ_;
    std::optional<Function> broadcast;
    try {
      broadcast = read_function(other);
    } catch (const OpenQuestion&) {  // a rank depends on which size is 1
      return false;
    }
    if (!problems_of(other).empty()) return false;
    for (const Function* one : {&f, &*broadcast})
      for (const DimCheck& c : one->graph().checks())
        if (one != &f || !is_broadcast(equal, c)) warn_equal(one == &f ? reading : other, c);
    assumptions.push_back({equal, true});
    add(assumptions, reading, std::move(f));
    assumptions.back().holds = false;
    add(assumptions, other, std::move(*broadcast));
    return true;
  }

  // Whether the check follows from the condition, a product of equalities.
  static bool is_broadcast(const Dim& condition, const DimCheck& c) {
    return exact_quotient(condition, equal(c.a, c.b)).has_value();
  }

  // The model may be ill-typed under some assumptions, but not under all.
  void fail(const std::vector<Assumption>& assumptions, Problems problems) {
    warn(assumptions, cat("the model cannot run: ", problems.text()));
    failure_ = std::move(problems);
  }

  void fork(const std::vector<Assumption>& assumptions, const OpenQuestion& question) {
    if (open_.size() + out_.variants.size() + 2 > source_.options.most_variants)
      throw UserError(question.asker, ": a rank depends on whether ", question.condition,
                      ", and the model would need more than ", source_.options.most_variants,
                      " variants; give sizes with --dim");
    for (bool holds : {true, false}) {
      open_.push_back(assumptions);
      open_.back().push_back({question.condition, holds});
    }
  }

  // Two input sizes that the model names differently. Warns once per pair, whatever the variant.
  void warn_equal(const Reading& reading, const DimCheck& c) {
    if (!c.a.is_symbol() || !c.b.is_symbol()) return;
    for (const Dim& d : {c.a, c.b})
      if (reading.measured.contains(d.name())) return;
    const std::string what = cat("sizes ", c.a, " and ", c.b, " are assumed to be equal, because ",
                                 c.message.substr(0, c.message.find(": ")), " combines them; if ",
                                 c.b, " is 1 and is to be broadcast, give --dim ", c.b, "=1");
    if (std::ranges::find(out_.warnings, what) == out_.warnings.end())
      out_.warnings.push_back(what);
  }

  void warn(const std::vector<Assumption>& assumptions, const std::string& what) {
    std::string when = conditions_text(assumptions);
    out_.warnings.push_back(when.empty() ? what : cat(warning_about_sizes, when, ": ", what));
  }

  Source source_;
  Imported& out_;
  std::deque<std::vector<Assumption>> open_ = {{}};
  Problems failure_;
  std::vector<std::vector<std::optional<Dumped>>> dumped_;  // by variant
  std::set<std::string, std::less<>> read_inputs_;
  bool branches_may_differ_ = true;
};

}  // namespace

bool Problems::empty() const {
  return wrong.empty() && unsupported.empty() && data_dependent.empty();
}

std::string Problems::text() const {
  std::vector<std::string> lacking = unsupported;
  lacking.insert(lacking.end(), data_dependent.begin(), data_dependent.end());
  std::string out;
  if (!lacking.empty()) out = counted(lacking.size(), "not supported:") + joined(lacking);
  if (wrong.size() == 1 && out.empty()) return wrong[0];
  if (!wrong.empty())
    out += cat(out.empty() ? "" : "\n", counted(wrong.size(), "wrong:"), joined(wrong));
  return out;
}

namespace {

using Ranges = std::map<std::string, ImportOptions::Range>;

// The ranges of input sizes after applying the checks of a function: n, which must equal min(32, n)
// because a table of 32 rows is added, is at most 32.
Ranges ranges_left(const Function& f) {
  Ranges out;
  for (const Function::Param& p : f.params())
    if (p.value.type().is_tensor())
      for (const Dim& d : p.value.type().shape.dims)
        if (d.is_symbol()) out[d.name()] = {d.low(), d.high()};
  for (const DimCheck& c : f.graph().checks())
    for (const auto& [size, other] : {std::pair(c.a, c.b), std::pair(c.b, c.a)}) {
      if (!size.is_symbol() || other.is_symbol() || other.is_number()) continue;
      const auto at = out.find(size.name());
      if (at == out.end()) continue;
      at->second.low = std::max(at->second.low, other.low());
      at->second.high = std::min(at->second.high, other.high());
    }
  return out;
}

// The ranges common to all variants, where they are narrower than the default and not given by the
// caller. Expressions of such sizes are simpler: min(32, n) is n.
Ranges narrower_ranges(const Imported& imported, const ImportOptions& options) {
  Ranges out;
  for (const ImportedVariant& v : imported.variants)
    for (const auto& [name, range] : ranges_left(v.function)) {
      const auto [at, is_new] = out.emplace(name, range);
      at->second.low = std::min(at->second.low, range.low);
      at->second.high = std::max(at->second.high, range.high);
    }
  std::erase_if(out, [&](const auto& entry) {
    const auto& [name, range] = entry;
    const ImportOptions::Range all;
    return options.dims.contains(name) || range.low >= range.high ||
           (range.low <= all.low && range.high >= all.high);
  });
  return out;
}

}  // namespace

void read_variants(Model& model, TensorFiles& files, const ImportOptions& options, Imported& out,
                   const Observer& observer) {
  check_model(model);
  const Imported before = out;
  Variants(Source(model, files, options, observer), out).read_all();
  Ranges narrower = narrower_ranges(out, options);
  if (narrower.empty()) return;
  ImportOptions narrowed = options;
  narrowed.dims.merge(narrower);
  out = before;
  Variants(Source(model, files, narrowed, observer), out).read_all();
}

void read_model(Model& model, TensorFiles& files, const ImportOptions& options, Imported& out,
                const Observer& observer) {
  give_ranks(model, options);
  check_weights(model, options, out.warnings);
  try {
    read_variants(model, files, options, out, observer);
  } catch (const NotSorted&) {
    sort_nodes(model);
    read_variants(model, files, options, out, observer);
  }
  out.contradictions = contradictions(model, options, out.variants);
}

}  // namespace hone::onnx
