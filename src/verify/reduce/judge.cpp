#include "verify/reduce/judge.h"

#include <algorithm>
#include <cmath>

#include "verify/sample.h"

namespace hone {

namespace {

// Replaces denormals by zeros, for devices that do not keep them.
void clear_denormals(Array& a) {
  if (!is_float(a.dtype())) return;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (const double x = a.real(i); std::abs(x) < least_normal)
      a.set_real(i, std::copysign(0.0, x));
}

}  // namespace

Judge::Judge(const Function& f, const CaseRun& run, bool keeps_denormals)
    : function_(f), evaluator_(f), inputs_(inputs_of(f, run)) {
  if (!keeps_denormals) std::ranges::for_each(inputs_, clear_denormals);
  expected_.emplace(evaluator_, inputs_, Mode::stepwise);
}

const std::vector<Enclosure>& Judge::enclosures() {
  if (!enclosures_) enclosures_ = enclose(function_, inputs_);
  return *enclosures_;
}

std::string Judge::operator()(const std::vector<Array>& got) {
  if (got.size() != expected_->wide().size())
    return cat(got.size(), " results, expected ", expected_->wide().size());
  std::string all;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison c = expected_->accept(i, widen(got[i]));
    if (c.ok) continue;
    const Comparison wider = c.problem.empty() ? hone::accept(got[i], enclosures()[i]) : c;
    if (wider.ok)
      ++explained_;
    else
      all +=
          cat(all.empty() ? "" : "; ", "result ", i, " ", got[i].type(), ": ", c, " (", wider, ")");
  }
  return all;
}

}  // namespace hone
