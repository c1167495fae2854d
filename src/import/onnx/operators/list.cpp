#include "import/onnx/operators/list.h"

#include <array>
#include <unordered_map>

#include "base/edit_distance.h"

namespace hone::onnx {

namespace {

auto tables() {
  return std::array{elementwise_imports(),
                    shape_imports(),
                    slice_imports(),
                    pad_imports(),
                    network_imports(),
                    math_imports(),
                    linear_imports(),
                    loss_imports(),
                    attention_imports(),
                    resize_imports(),
                    sample_imports(),
                    signal_imports(),
                    order_imports(),
                    window_imports(),
                    scatter_imports(),
                    quantize_imports(),
                    recurrent_imports(),
                    einsum_imports(),
                    random_imports(),
                    loop_imports(),
                    sequence_imports(),
                    training_imports(),
                    ml_imports(),
                    dynamic_imports(),
                    suppress_imports(),
                    gram_imports(),
                    text_imports(),
                    contrib_imports(),
                    contrib_attention_imports(),
                    contrib_quantize_imports(),
                    ml_model_imports()};
}

using Index = std::unordered_multimap<std::string_view, const ImportEntry*>;

const Index& index() {
  static const Index all = [] {
    Index out;
    for (std::span<const ImportEntry> table : tables())
      for (const ImportEntry& e : table) out.emplace(e.op, &e);
    return out;
  }();
  return all;
}

}  // namespace

std::vector<const ImportEntry*> all_imports() {
  std::vector<const ImportEntry*> out;
  for (std::span<const ImportEntry> table : tables())
    for (const ImportEntry& e : table) out.push_back(&e);
  return out;
}

const ImportEntry* find_import(std::string_view domain, std::string_view op, std::int64_t opset) {
  auto [first, last] = index().equal_range(op);
  for (; first != last; ++first)
    if (first->second->domain == domain && first->second->since <= opset &&
        opset <= first->second->until)
      return first->second;
  return nullptr;
}

std::string_view nearest_import(std::string_view op) {
  op = op.substr(0, 64);  // operator names are short, except in hostile files
  std::string_view best;
  std::size_t least = op.size() / 3 + 1;  // larger distances are unrelated words
  for (std::span<const ImportEntry> table : tables())
    for (const ImportEntry& e : table)
      if (std::size_t d = edit_distance(op, e.op); d < least) least = d, best = e.op;
  return best;
}

}  // namespace hone::onnx
