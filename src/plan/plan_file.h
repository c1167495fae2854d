// The plan file, `.hone`: a safetensors file whose metadata holds the plan as JSON and the graph as
// text, and whose tensors are weights, prepared weights and machine code. The runtime loads the
// code.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "plan/plan.h"

namespace hone {

// Replaces the file atomically. Tensors with equal bytes are stored once.
void write_plan(const std::filesystem::path&, const Plan&);

enum class VerifyData {
  quick,  // code and graph; weights if at most 256 MiB in total
  all,
};

// Reads a plan file whose bytes lie in memory, which `owner` keeps (null: the caller, as long as
// the plan lives). Weights that are aligned to 64 bytes are used in place. `name` is for messages.
Plan read_plan(std::shared_ptr<const void> owner, std::span<const std::byte>, std::string name,
               VerifyData = VerifyData::quick);

// Maps the file; weights and prepared weights point into the map and keep it alive. Refuses files
// that are not plan files, other format versions, and content that does not match its hashes.
Plan read_plan(const std::filesystem::path&, VerifyData = VerifyData::quick);

}  // namespace hone
