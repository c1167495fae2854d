// Which instructions this processor has, as levels of the x86-64 psABI. Used by both halves of the
// backend. Says nothing about speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::cpu {

enum class Isa : std::uint8_t { v1, v2, v3, v4 };  // each level contains those before it

std::string_view isa_name(Isa);  // "x86-64-v3"
std::optional<Isa> isa_from_name(std::string_view);

// The highest level that the processor and the operating system support.
Isa machine_isa();
// The same, limited by the flag HONE_CPU_ISA. Throws UserError when the flag names an unknown
// level, or one that the machine lacks.
Isa allowed_isa();

}  // namespace hone::cpu
