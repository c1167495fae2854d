// Files that show a fault of the compiler: `hone optimize --keep-evidence` writes them and `hone
// reduce` reads them.
#pragma once

#include <filesystem>
#include <string>

#include "compile/optimize.h"

namespace hone {

// Writes MODEL-STRATEGY.hone-ir into the directory, which is created if missing. If made-up inputs
// show the fault, the function is reduced; else the whole function is written, with the inputs as
// .npy beside it. Returns the file.
std::filesystem::path keep_evidence(const std::filesystem::path& directory,
                                    const std::string& model, const Refusal&,
                                    const CompileOptions&);

}  // namespace hone
