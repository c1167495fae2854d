// The plan file, `.hone`: a safetensors file whose metadata holds the plan as JSON and the graph as
// text, and whose tensors are weights, prepared weights and machine code. Loading the code is the
// runtime's work.
#pragma once

#include <filesystem>

#include "plan/plan.h"

namespace hone {

// Replaces the file in one step. Equal bytes are stored once, whatever their names.
void write_plan(const std::filesystem::path&, const Plan&);

enum class VerifyData {
  quick,  // code and graph always; weights up to 256 MiB in all
  all,
};

// Maps the file; weights and prepared weights point into the map and keep it alive. Refuses what is
// no plan file, another format version, and content that differs from its hashes.
Plan read_plan(const std::filesystem::path&, VerifyData = VerifyData::quick);

}  // namespace hone
