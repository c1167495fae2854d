// Files that show a mistake of the compiler: what `hone optimize --keep-evidence` writes and
// `hone reduce` reads.
#pragma once

#include <filesystem>
#include <string>

#include "compile/optimize.h"

namespace hone::cli {

// Writes MODEL-STRATEGY.hone-ir into the directory, which is made when it is not there, reduced
// where made-up inputs show the fault; else the whole function, and the inputs as .npy beside it.
// Returns the file.
std::filesystem::path keep_evidence(const std::filesystem::path& directory,
                                    const std::string& model, const Refusal&,
                                    const CompileOptions&);

}  // namespace hone::cli
