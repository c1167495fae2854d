#include "verify/judge.h"

namespace hone {

Judge::Judge(const Function& f, const CaseRun& run) : function_(f), inputs_(inputs_of(f, run)) {
  strict_ = evaluate_wide(f, inputs_, Mode::stepwise);
  wide_ = evaluate_wide(f, inputs_, Mode::wide);
}

const std::vector<Enclosure>& Judge::enclosures() {
  if (!enclosures_) enclosures_ = enclose(function_, inputs_);
  return *enclosures_;
}

std::string Judge::operator()(const std::vector<Array>& got) {
  if (got.size() != wide_.size()) return cat(got.size(), " results, expected ", wide_.size());
  std::string all;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison c = hone::accept(got[i], strict_[i], wide_[i]);
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
