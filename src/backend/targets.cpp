#include "backend/backend.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/target/measure.h"
#include "backend/null/target/null_target.h"
#include "base/error.h"

namespace hone {

namespace {

constexpr Backend all[] = {
    {"cpu", cpu::make_target, "onednn", cpu::onednn_candidates, cpu::measure_rates},
    {"null", null::make_target, "", null::no_candidates, nullptr},
};

}  // namespace

std::span<const Backend> backends() { return all; }

const Backend& backend(std::string_view name) {
  std::string known;
  for (const Backend& b : all) {
    if (b.name == name) return b;
    known += cat(known.empty() ? "" : ", ", b.name);
  }
  throw UserError("backend '", name, "' is not in this build; there are: ", known);
}

}  // namespace hone
