// Which instructions this machine's processor has, in the levels of the x86-64 psABI. Both halves
// of the backend ask it. Says nothing about speed.
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
// The same, lowered to what the flag HONE_CPU_ISA asks for. Throws UserError when the flag names no
// level, or one that the machine lacks.
Isa allowed_isa();

}  // namespace hone::cpu
