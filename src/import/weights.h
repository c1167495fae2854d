// The tensors of a checkpoint by name, to supply a model's weights (ImportOptions::weights).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "type/array.h"

namespace hone {

// Reads safetensors, the index.json of several of them, GGUF or .npz, detected by content.
// Quantised blocks of GGUF become f32. Throws UserError with the path for anything else.
std::map<std::string, Array> read_weights(const std::filesystem::path&);

}  // namespace hone
