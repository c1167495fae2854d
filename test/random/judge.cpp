#include "test/random/judge.h"

#include "ref/compare.h"

namespace hone::fuzz {

Judge::Judge(const Function& f, const Run& run)
    : inputs_(inputs_of(f, run)),
      strict_(evaluate_wide(f, inputs_, Mode::stepwise)),
      wide_(evaluate_wide(f, inputs_, Mode::wide)),
      rounding_(f, inputs_, strict_, wide_) {}

std::string Judge::operator()(const std::vector<Array>& got) {
  if (got.size() != wide_.size()) return cat(got.size(), " results, expected ", wide_.size());
  std::string all;
  for (std::size_t i = 0; i < got.size(); ++i) {
    Comparison c = accept(got[i], strict_[i], wide_[i]);
    if (c.ok) continue;
    if (c.problem.empty() && rounding_.explains(i, got[i]))
      ++explained_;
    else
      all += cat(all.empty() ? "" : "; ", "result ", i, " ", got[i].type(), ": ", c);
  }
  return all;
}

}  // namespace hone::fuzz
