// The linker: joins object files into one position-independent blob. Only relocations inside the
// blob and calls to the closed table of helpers are allowed; code that no kernel reaches is
// dropped.
#pragma once

#include <span>
#include <string_view>

#include "codegen/llvm/object.h"
#include "plan/binary.h"

namespace hone::llvm {

// Every exported function of the objects becomes an entry. `target` is the instruction set that the
// code needs. Throws InternalError naming the symbol that cannot be resolved.
Binary link_objects(std::span<const Object> objects, std::string_view target);

}  // namespace hone::llvm
