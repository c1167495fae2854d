// Imports model files as Functions. So far only ONNX holds a graph; GGUF and safetensors hold
// tensors.
#pragma once

#include "import/onnx/import.h"
#include "import/weights.h"
