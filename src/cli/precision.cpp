#include "cli/precision.h"

#include <array>
#include <cstdio>

#include "base/amount.h"

namespace hone::cli {

namespace {

std::string error_text(const PrecisionError& e) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%.2g",
                e.largest_error / (e.largest_value > 0 ? e.largest_value : 1));
  std::string out = cat(e.name, " ", number.data());
  if (e.overflowed > 0)
    out += cat(" and ", amount(e.overflowed, "element", "elements"), " infinite or NaN");
  if (!e.other_sizes.empty()) out += cat(" and other sizes, ", e.other_sizes);
  return out;
}

}  // namespace

void add_accept_overflow(Arguments& a, bool& accepts) {
  a.flag("--accept-overflow", "accept results that --precision makes infinite or NaN", accepts);
}

PrecisionReport checked_precision(const Loaded& loaded, const Plan& plan,
                                  const ModelOptions& options, bool accepts_overflow) {
  PrecisionReport out =
      precision_report(*loaded.given, loaded.source, plan, compile_options(options));
  if (out.overflow.empty()) return out;
  if (!accepts_overflow)
    throw UserError(loaded.file.path.string(), ": --precision ", options.precision, ": ",
                    out.overflow, "; nothing was written; give ",
                    options.precision == name_of(Precision::fp16)
                        ? "--precision bf16, whose range is that of float32"
                        : "another precision",
                    ", or --accept-overflow");
  warn(options, cat("warning: --precision ", options.precision, ": ", out.overflow));
  return out;
}

Json precision_json(const ModelOptions& options, const PrecisionReport& report) {
  Json results = Json::Array{};
  for (const PrecisionError& e : report.results)
    results.push(Json::Object{{"name", e.name},
                              {"largest_error", e.largest_error},
                              {"largest_value", e.largest_value},
                              {"overflowed", e.overflowed},
                              {"other_sizes", e.other_sizes}});
  return Json::Object{{"name", options.precision.empty() ? "as given" : options.precision},
                      {"sets", report.sets},
                      {"results", results}};
}

std::string precision_text(const ModelOptions& options, const PrecisionReport& report) {
  if (options.precision.empty()) return "";
  std::string out = cat("precision: ", options.precision);
  if (report.sets == 0)
    return out + ", not compared with the model as given: no inputs were found that it accepts\n";
  if (report.results.empty()) return out + ": all float results are 0, or there are none\n";
  out += cat(", largest difference from the model as given, of the largest value, over ",
             amount(report.sets, "set", "sets"), " of inputs: ");
  for (const PrecisionError& e : report.results)
    out += cat(&e == report.results.data() ? "" : ", ", error_text(e));
  return out + "\n";
}

}  // namespace hone::cli
