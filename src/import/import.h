// Models from files to Functions, whatever the format. So far ONNX is the only one that holds a
// graph; GGUF and safetensors hold tensors.
#pragma once

#include "import/onnx/import.h"
#include "import/weights.h"
