#include "runtime/libraries.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/log.h"

namespace hone {

namespace {

std::string_view library_of(const Step& s) {
  return std::string_view(s.name).substr(0, s.name.find('.'));
}

bool have_equal_target(const PlanDevice& a, const PlanDevice& b) {
  return a.name == b.name && a.target == b.target;
}

std::size_t groups_by(const Variant& v, std::string_view library) {
  std::set<std::uint32_t> groups;
  for_each_step(v.steps, [&](const Step& s) {
    if (s.kind == Step::Kind::library && library_of(s) == library) groups.insert(s.group);
  });
  return groups.size();
}

}  // namespace

std::vector<std::string> libraries_of(const Variant& v) {
  std::set<std::string> out;
  for_each_step(v.steps, [&](const Step& s) {
    if (s.kind == Step::Kind::library) out.emplace(library_of(s));
  });
  return {out.begin(), out.end()};
}

void leave_out_without_library(
    std::string_view plan, std::span<const Variant> variants, std::vector<std::uint32_t>& chosen,
    const std::function<std::string(const Variant&, std::string_view)>& why_missing) {
  std::map<std::string, std::string> known;
  const auto missing_in = [&](const Variant& v) -> std::string {
    for (const std::string& library : libraries_of(v)) {
      const auto [it, is_new] = known.try_emplace(library);
      if (is_new) it->second = why_missing(v, library);
      if (!it->second.empty()) return library;
    }
    return "";
  };
  const auto replaced = [&](std::uint32_t i) {
    const Variant& v = variants[i];
    const std::string library = missing_in(v);
    if (library.empty()) return false;
    const bool has_other = std::ranges::any_of(chosen, [&](std::uint32_t other) {
      const Variant& o = variants[other];
      return other != i && std::ranges::equal(o.devices, v.devices, have_equal_target) &&
             o.guards == v.guards && missing_in(o).empty();
    });
    if (has_other)
      log_warning(cat(plan, ": ", library, " is missing: ", groups_by(v, library),
                      " groups run generated kernels instead (", known[library], ")"));
    return has_other;
  };
  std::vector<std::uint32_t> kept;
  for (std::uint32_t i : chosen)
    if (!replaced(i)) kept.push_back(i);
  chosen = std::move(kept);
}

}  // namespace hone
