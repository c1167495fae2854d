#include "backend/cpu/isa/isa.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/flags.h"

namespace hone::cpu {

namespace {

constexpr std::string_view names[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

}  // namespace

std::string_view isa_name(Isa isa) { return names[static_cast<int>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) {
  auto it = std::find(std::begin(names), std::end(names), name);
  if (it == std::end(names)) return std::nullopt;
  return static_cast<Isa>(it - std::begin(names));
}

Isa machine_isa() {
  // CPUID, and XGETBV for the registers that the operating system saves.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return Isa::v4;
  if (__builtin_cpu_supports("x86-64-v3")) return Isa::v3;
  if (__builtin_cpu_supports("x86-64-v2")) return Isa::v2;
  return Isa::v1;
}

Isa allowed_isa() {
  const Isa machine = machine_isa();
  const std::string wanted = flag("HONE_CPU_ISA");
  if (wanted == "native") return machine;
  std::optional<Isa> isa = isa_from_name(wanted);
  if (!isa)
    throw UserError("HONE_CPU_ISA is '", wanted,
                    "', expected native, x86-64-v2, x86-64-v3 or x86-64-v4");
  if (*isa > machine)
    throw UserError("HONE_CPU_ISA is ", wanted, ", but this machine has ", isa_name(machine),
                    "; give that or native");
  return *isa;
}

}  // namespace hone::cpu
