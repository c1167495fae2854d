// Targets that read one format.
#include "import/gguf/gguf.h"
#include "ir/function.h"
#include "ops/ops.h"
#include "plan/check.h"
#include "plan/plan_file.h"
#include "plan/plan_json.h"
#include "test/fuzz/limits.h"
#include "test/fuzz/targets.h"
#include "type/safetensors.h"

namespace hone::fuzz {

void onnx_import(Bytes bytes) {
  with_file(bytes, [](const auto& path) {
    answer([&] {
      for (const ImportedVariant& v : import_onnx(path, small_limits()).variants)
        verify(v.function);
    });
  });
}

void safetensors(Bytes bytes) {
  with_file(bytes, [](const auto& path) { answer([&] { read_safetensors(path); }); });
}

void gguf(Bytes bytes) {
  with_file(bytes, [](const auto& path) {
    answer([&] {
      for (const GgufTensor& t : read_gguf(path).tensors) dequantize(t);
    });
  });
}

void plan(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (!text.starts_with('{'))
    return with_file(bytes, [](const auto& path) { answer([&] { read_plan(path); }); });
  answer([&] {
    // Every tensor that a plan names exists.
    const Array tensor = Array::zeros(DType::u8, {64});
    check(plan_from_json(Json::parse(text, "plan"), [&](std::string_view) { return tensor; }),
          "plan");
  });
}

void ir_text(Bytes bytes) {
  answer([&] {
    const Function f = parse(text_of(bytes), find_op);
    verify(f);
    HONE_ASSERT(same_structure(parse(print(f), find_op), f), "printing keeps the structure");
  });
}

}  // namespace hone::fuzz
