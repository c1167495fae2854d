#include "host/function.h"

#include <algorithm>

#include "base/error.h"

namespace hone {

std::size_t HostOperand::count() const {
  std::size_t n = 1;
  for (std::int64_t d : dims) n *= static_cast<std::size_t>(d);
  return n;
}

std::int64_t HostCall::setting(std::string_view key) const {
  auto it = std::ranges::find_if(settings, [&](const auto& s) { return s.first == key; });
  return it == settings.end() ? 0 : it->second;
}

const HostFunction* find_host_function(std::string_view name) {
  for (std::span<const HostFunction> all : {image_functions(), text_functions()})
    for (const HostFunction& f : all)
      if (f.name == name) return &f;
  return nullptr;
}

void check(const HostFunction& f, const HostCall& c) {
  const bool fits = std::ranges::equal(c.operands, f.dtypes, {}, &HostOperand::dtype) && f.fits(c);
  if (!fits)
    throw UserError("host function '", f.name,
                    "' does not take these operands; compile the plan again");
}

}  // namespace hone
