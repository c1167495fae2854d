#include "backend/cpu/device/loader.h"

#include <array>
#include <vector>

#include "backend/cpu/device/helpers.h"
#include "backend/cpu/isa/isa.h"
#include "base/error.h"

namespace hone {

namespace {

constexpr std::size_t blob_align = 64;  // the widest alignment of a constant

void check_isa(const Binary& b, std::string_view where) {
  std::optional<cpu::Isa> needed = cpu::isa_from_name(b.target);
  if (!needed)
    throw UserError(where, ": is compiled for '", b.target,
                    "', which is not an x86-64 level; compile it for this machine");
  const cpu::Isa allowed = cpu::allowed_isa();
  if (*needed <= allowed) return;
  std::string_view who =
      allowed < cpu::machine_isa() ? "HONE_CPU_ISA allows " : "this processor has ";
  throw UserError(where, ": is compiled for ", b.target, ", but ", who, cpu::isa_name(allowed),
                  "; compile it again for that target");
}

std::uint64_t helper_address_checked(std::uint32_t helper, std::string_view where) {
  if (const void* address = helper_address(helper)) return reinterpret_cast<std::uint64_t>(address);
  throw UserError(where, ": calls ", helper_names()[helper],
                  ", which only a sanitizer build has; compile the code again");
}

}  // namespace

KernelFunction LoadedBinary::find(std::string_view name) const {
  auto it = offsets_.find(name);
  if (it == offsets_.end()) return nullptr;
  return reinterpret_cast<KernelFunction>(
      reinterpret_cast<std::uintptr_t>(memory_.data() + it->second));
}

KernelFunction LoadedBinary::entry(std::string_view name) const {
  if (KernelFunction f = find(name)) return f;
  throw UserError("machine code: has no kernel '", name, "' among its ", offsets_.size(),
                  "; is the plan from another version?");
}

LoadedBinary load(std::span<const Binary* const> binaries, std::string_view where) {
  LoadedBinary out;
  std::vector<std::byte> code;
  std::vector<ExecutableMemory::Patch> patches;
  for (const Binary* binary : binaries) {
    const Binary& b = *binary;
    check(b, where);
    check_isa(b, where);
    code.resize((code.size() + blob_align - 1) / blob_align * blob_align);
    const std::size_t base = code.size();
    code.insert(code.end(), b.code.begin(), b.code.end());
    for (const Binary::HelperSlot& h : b.helpers)
      patches.push_back({base + h.offset, helper_address_checked(h.helper, where)});
    for (const Binary::Entry& e : b.entries)
      if (!out.offsets_.emplace(e.name, base + e.offset).second)
        throw UserError(where, ": two kernels have the name '", e.name, "'; compile it again");
  }
  out.memory_ = ExecutableMemory(code, patches);
  return out;
}

LoadedBinary load(const Binary& b, std::string_view where) { return load(std::array{&b}, where); }

}  // namespace hone
