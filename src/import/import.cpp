#include "import/import.h"

#include <deque>
#include <optional>
#include <set>

#include "import/onnx_check.h"
#include "import/onnx_walk.h"

namespace hone {

namespace {

using onnx::Failure;
using onnx::Model;
using onnx::Reading;

constexpr std::size_t most_lines = 1000;  // of one message
constexpr std::size_t most_opsets = 1000;

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size() && i < most_lines; ++i) out += cat("\n  ", lines[i]);
  if (lines.size() > most_lines) out += cat("\n  and ", lines.size() - most_lines, " more");
  return out;
}

// What the model needs as a whole. The oldest files do not name their opset.
void check_model(Model& model) {
  if (model.ir_version < 3 && model.opsets.empty()) model.opsets.push_back({"", 1});
  if (!model.graph) throw UserError("holds no graph; is it an ONNX model?");
  if (std::int64_t opset = onnx::opset_of(model.opsets, "");
      opset > onnx::ImportEntry::newest_opset)
    throw UserError("is of opset ", opset, "; the newest that is known is ",
                    onnx::ImportEntry::newest_opset, "; export it for an older one");
  if (model.opsets.size() > most_opsets)
    throw UserError("imports ", model.opsets.size(), " opsets; at most ", most_opsets,
                    " are allowed");
  if (!model.graph->sparse_initializers.empty())
    throw UserError("has ", model.graph->sparse_initializers.size(),
                    " sparse initializers, the first '", model.graph->sparse_initializers[0],
                    "'; they are not supported; store them dense");
}

std::string counted(std::size_t n, std::string_view what) {
  return cat(n, n == 1 ? " part of the model is " : " parts of the model are ", what);
}

// All that is wrong with one reading, empty when nothing is.
std::string failure_text(const Reading& reading) {
  std::vector<std::string> unsupported, wrong;
  if (reading.missing_operators > 0) unsupported = onnx::unsupported_nodes(reading.source);
  for (const Failure& f : reading.failures) (f.unsupported ? unsupported : wrong).push_back(f.what);
  std::string out;
  if (!unsupported.empty())
    out = counted(unsupported.size(), "not supported:") + joined(unsupported);
  if (wrong.size() == 1 && out.empty()) return wrong[0];
  if (!wrong.empty())
    out += cat(out.empty() ? "" : "\n", counted(wrong.size(), "wrong:"), joined(wrong));
  return out;
}

std::string conditions_text(const std::vector<Assumption>& assumptions) {
  std::string out;
  for (const Assumption& a : assumptions)
    out += cat(out.empty() ? "" : " and ", a.condition, a.holds ? "" : " == 0");
  return out;
}

// Reads the model under no assumption, and again for every answer to every question that comes up.
class Variants {
 public:
  Variants(onnx::Source source, Imported& out) : source_(std::move(source)), out_(out) {}

  void read_all() {
    while (!open_.empty()) {
      std::vector<Assumption> assumptions = std::move(open_.front());
      open_.pop_front();
      try {
        read(assumptions);
      } catch (const onnx::NeedsContents& needed) {
        read_inputs_.insert(needed.inputs.begin(), needed.inputs.end());
        start_again();
      }
    }
    if (out_.variants.empty()) throw UserError(failure_);
    std::vector<onnx::DumpedVariant> dumped;
    for (std::size_t i = 0; i < dumped_.size(); ++i)
      dumped.push_back({out_.variants[i].function, std::move(dumped_[i])});
    onnx::add_dumped_results(source_, dumped);
  }

 private:
  // All variants take the same parameters.
  void start_again() {
    open_ = {{}};
    out_.variants.clear();
    out_.warnings.clear();
    dumped_.clear();
  }

  void read(const std::vector<Assumption>& assumptions) {
    Reading reading{source_, onnx::Assumptions(assumptions)};
    reading.read_inputs = read_inputs_;
    Function f;
    std::optional<Dim> question;
    try {
      f = onnx::read_function(reading);
    } catch (const onnx::OpenQuestion& q) {
      question = q.condition;
    }
    std::string wrong = failure_text(reading);
    // What is not supported, or met before any question, is so for all sizes.
    if (!wrong.empty() && (assumptions.empty() || reading.is_unsupported())) throw UserError(wrong);
    if (!wrong.empty()) return fail(assumptions, wrong);
    if (question) return fork(assumptions, *question);
    for (const std::string& w : reading.warnings) warn(assumptions, w);
    out_.variants.push_back({assumptions, std::move(f)});
    dumped_.push_back(std::move(reading.dumped));
  }

  // Under some assumptions the model may be ill-typed; it must not be under all.
  void fail(const std::vector<Assumption>& assumptions, const std::string& wrong) {
    failure_ = wrong;
    warn(assumptions, cat("no variant: ", wrong));
  }

  void fork(const std::vector<Assumption>& assumptions, const Dim& condition) {
    if (open_.size() + out_.variants.size() + 2 > source_.options.most_variants)
      throw UserError("sizes decide ranks in more than ", source_.options.most_variants,
                      " ways, the last by ", condition, "; give sizes");
    for (bool holds : {true, false}) {
      open_.push_back(assumptions);
      open_.back().push_back({condition, holds});
    }
  }

  void warn(const std::vector<Assumption>& assumptions, const std::string& what) {
    std::string when = conditions_text(assumptions);
    out_.warnings.push_back(when.empty() ? what : cat("for sizes with ", when, ": ", what));
  }

  onnx::Source source_;
  Imported& out_;
  std::deque<std::vector<Assumption>> open_ = {{}};
  std::string failure_;
  std::vector<std::vector<std::optional<onnx::Dumped>>> dumped_;  // by variant
  std::set<std::string, std::less<>> read_inputs_;
};

std::string model_name(const std::filesystem::path& path) {
  bool is_generic = path.stem() == "model" && path.has_parent_path();
  return (is_generic ? path.parent_path().filename() : path.stem()).string();
}

}  // namespace

Imported import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  auto file = MappedFile::open(path);
  Model model = onnx::parse_model(file->bytes(), file->path(), options.most_nodes);
  onnx::TensorFiles files(file);
  Imported out;
  out.name = model_name(path);
  try {
    check_model(model);
    Variants(onnx::Source(model, files, options), out).read_all();
  } catch (const UserError& e) {
    throw UserError(path.string(), ": ", e.what());
  }
  return out;
}

}  // namespace hone
