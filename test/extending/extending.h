// What docs/extending.md quotes, one file for each section, and how the test reaches it.
#pragma once

#include <span>

#include "backend/backend.h"
#include "import/onnx/node/context.h"
#include "ir/op.h"
#include "ir/pattern.h"
#include "kernel/forms/forms.h"

namespace hone::extending {

extern const Op softsign;
std::span<const Rule> softsign_rules();
extern const onnx::ImportEntry shrink_import;
extern const KernelForm parts_builder;
extern const Backend text_backend;

}  // namespace hone::extending
