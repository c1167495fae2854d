// Operators of domain com.microsoft, which ONNX Runtime's optimizer, quantizer and exporters write:
// each becomes operations that ai.onnx has, too.
#pragma once

#include "import/onnx/context.h"

namespace hone::onnx {

inline constexpr std::string_view contrib_domain = "com.microsoft";

// [b, s, heads * d] as [b, heads, s, d], and back.
Value split_heads(Value x, const Dim& heads);
Value merge_heads(Value x);
// x turned by the angles of its positions: x [b, h, s, d], cosine and sine [.., r / 2], broadcast
// to [b, s, r / 2], of which the first r of d are turned.
Value rotated(Value x, Value cosine, Value sine, bool interleaved);

}  // namespace hone::onnx
