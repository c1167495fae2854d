// Operators of domain com.microsoft, which ONNX Runtime's optimizer, quantizer and exporters write.
// They are built from operations that ai.onnx also uses.
#pragma once

#include "import/onnx/node/context.h"

namespace hone::onnx {

inline constexpr std::string_view contrib_domain = "com.microsoft";

// Converts [b, s, heads * d] to [b, heads, s, d], and back.
Value split_heads(Value x, const Dim& heads);
Value merge_heads(Value x);
// x rotated by the angles of its positions: x [b, h, s, d], cosine and sine [.., r / 2], broadcast
// to [b, s, r / 2]; the first r of d are rotated.
Value rotated(Value x, Value cosine, Value sine, bool interleaved);

}  // namespace hone::onnx
