// Losses of classes: how far a score of the class that is asked for is from the best.
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// The place in [n, classes, ...] of a class for a place of [n, ...].
std::size_t place_of(const Numbers& x, std::size_t target, std::int64_t kind) {
  const std::int64_t inner = product(Sizes(x.dims.begin() + 2, x.dims.end())),
                     at = static_cast<std::int64_t>(target);
  if (kind < 0 || kind >= x.dims[1]) throw NotJudged();
  return static_cast<std::size_t>((at / inner * x.dims[1] + kind) * inner + at % inner);
}

Numbers negative_log_likelihood(Call& c, const Numbers& x) {
  const Numbers& target = c.in(1);
  const std::string how = c.text("reduction", "mean");
  const bool ignores = c.has_attribute("ignore_index");
  const auto ignored = static_cast<double>(c.integer("ignore_index", 0));
  if (x.dims.size() < 2) throw NotJudged();
  Numbers out{x.dtype, target.dims, {}};
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < target.values.size(); ++i) {
    double weight = 0, loss = 0;
    if (!ignores || target.values[i] != ignored) {
      const auto kind = static_cast<std::int64_t>(target.values[i]);
      weight = c.has(2) ? c.in(2).values.at(static_cast<std::size_t>(kind)) : 1;
      loss = -x.values.at(place_of(x, i, kind)) * weight;
    }
    out.values.push_back(loss);
    sum += loss;
    weights += weight;
  }
  if (how == "none") return out;
  if (how == "mean" && weights == 0) throw NotJudged();
  return {x.dtype, {}, {how == "sum" ? sum : sum / weights}};
}

std::vector<Numbers> likelihood_loss(Call& c) { return {negative_log_likelihood(c, c.in(0))}; }

std::vector<Numbers> cross_entropy_loss(Call& c) {
  Numbers x = c.in(0);
  if (x.dims.size() < 2) throw NotJudged();
  const std::int64_t inner = product(Sizes(x.dims.begin() + 2, x.dims.end()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.dims[0] * inner); ++i) {
    double most = -INFINITY, sum = 0;
    for (std::int64_t k = 0; k < x.dims[1]; ++k)
      most = std::fmax(most, x.values.at(place_of(x, i, k)));
    for (std::int64_t k = 0; k < x.dims[1]; ++k)
      sum += std::exp(x.values[place_of(x, i, k)] - most);
    for (std::int64_t k = 0; k < x.dims[1]; ++k)
      x.values[place_of(x, i, k)] -= most + std::log(sum);
  }
  return {negative_log_likelihood(c, x), x};
}

constexpr MeaningRow loss_rows[] = {{"NegativeLogLikelihoodLoss", likelihood_loss},
                                    {"SoftmaxCrossEntropyLoss", cross_entropy_loss}};

}  // namespace

std::span<const MeaningRow> loss_meanings() { return loss_rows; }

}  // namespace hone::onnx
