// The tensors of a checkpoint by name, for a model whose graph names them (ImportOptions::weights).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "type/array.h"

namespace hone {

// From safetensors, the index.json of several of them, GGUF or .npz, told apart by their content.
// Quantised blocks of GGUF become f32. Throws UserError with the path for anything else.
std::map<std::string, Array> read_weights(const std::filesystem::path&);

}  // namespace hone
