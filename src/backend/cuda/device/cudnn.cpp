#include "backend/cuda/device/cudnn.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backend/cuda/device/copy.h"
#include "backend/cuda/device/cudnn_graph.h"
#include "base/checked.h"

namespace hone::cudnn {

namespace {

using cuda::CudaCall;

[[noreturn]] void refuse(const CallRequest& r, std::string_view why) {
  throw UserError(r.name, ": ", why);
}

DataType data_type(const CallRequest& r, DType t) {
  switch (t) {
    case DType::f32:
      return r_32f;
    case DType::f16:
      return r_16f;
    case DType::bf16:
      return r_16bf;
    default:
      throw UserError(r.name, ": this library does not take ", t);
  }
}

Sizes dense(const Sizes& dims) {
  Sizes strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = checked_mul(strides[i], std::max<std::int64_t>(dims[i], 1));
  return strides;
}

bool is_empty(const Sizes& dims) { return std::ranges::count(dims, 0) > 0; }

class Nothing final : public CudaCall {
 public:
  void run(std::span<const CUdeviceptr>, CUstream) const override {}
};

// ---- convolutions

constexpr std::size_t image_rank = 4;

// [batch, height, width, channels] in the library's order of axes.
Layout channels_second(const CallRequest& r, const CallOperand& o) {
  if (o.dims.size() != image_rank) refuse(r, "takes two spatial axes");
  const auto permuted = [](const Sizes& s) { return Sizes{s[0], s[3], s[1], s[2]}; };
  return {permuted(o.dims), permuted(o.strides)};
}

// Packed weights as [out, in, height, width]; stored as [out, height, width, in].
Layout packed_weights(const CallRequest& r) {
  if (!r.setting("packed", 0)) refuse(r, "weights must be constants");
  const auto size = [&](int i) { return r.setting(cat("packed_dim", i), 0); };
  const std::int64_t height = size(0), width = size(1), in = size(2), out = size(3);
  return {{out, in, height, width}, {height * width * in, 1, width * in, in}};
}

Sizes list(const CallRequest& r, std::string_view name, std::int64_t fallback) {
  return {r.setting(cat(name, 0), fallback), r.setting(cat(name, 1), fallback)};
}

std::unique_ptr<CudaCall> bind_convolution(std::shared_ptr<cuda::Context> context,
                                           const CallRequest& r) {
  const bool has_bias = r.setting("bias", 0) != 0, has_residual = r.setting("residual", 0) != 0,
             has_relu = r.setting("relu", 0) != 0;
  const std::size_t last = 2 + has_bias + has_residual;
  if (r.operands.size() != last + 1) refuse(r, cat("takes ", last + 1, " operands"));
  const Layout image = channels_second(r, r.operands[0]), weights = packed_weights(r),
               result = channels_second(r, r.operands[last]);
  if (is_empty(result.dims)) return std::make_unique<Nothing>();
  if (is_empty(image.dims)) refuse(r, "the image is empty");
  const DataType type = data_type(r, r.operands[last].dtype);
  Graph g(std::move(context));
  // Rounding: sums and the operations after them are in f32; the result is rounded once.
  int left = has_bias + has_residual + has_relu;
  const auto next = [&] {
    return left-- > 0 ? g.between(result, r_32f) : g.in_memory(last, result, type);
  };
  const Graph::Tensor x = g.in_memory(0, image, type), w = g.in_memory(1, weights, type);
  Graph::Tensor y = next();
  g.convolve(x, w, y,
             {list(r, "strides", 1), list(r, "dilations", 1), list(r, "pads_low", 0),
              list(r, "pads_high", 0)});
  const auto follow = [&](Pointwise op, std::optional<Graph::Tensor> operand) {
    const Graph::Tensor made = next();
    g.pointwise(op, {y, operand}, made);
    y = made;
  };
  // In the order of the library's prebuilt kernels; the sum differs only by rounding.
  if (has_residual)
    follow(add, g.in_memory(last - 1, channels_second(r, r.operands[last - 1]), type));
  if (has_bias) {
    const std::int64_t channels = result.dims[1];
    follow(add, g.in_memory(2, {{1, channels, 1, 1}, {channels, 1, channels, channels}}, type));
  }
  if (has_relu) follow(relu, std::nullopt);
  return std::move(g).finish(r.name, {.number = r.setting("plan", 0),
                                      .may_round_to_tf32 = type != r_32f || r.setting("tf32", 0)});
}

Sizes packed_order(const Sizes& s) { return {s[3], s[0], s[1], s[2]}; }

std::unique_ptr<CudaCall> bind_pack(std::shared_ptr<cuda::Context> context, const CallRequest& r) {
  if (r.operands.size() != 2 || r.operands[0].dims.size() != image_rank)
    refuse(r, "takes weights of two spatial axes and their packed form");
  const CallOperand& w = r.operands[0];
  StridedCopy copy;
  copy.element_bytes = static_cast<std::size_t>(byte_size(w.dtype));
  copy.dims = packed_order(w.dims);
  copy.from_strides = packed_order(w.strides);
  copy.to_strides = dense(copy.dims);
  for (Sizes* strides : {&copy.from_strides, &copy.to_strides})
    for (std::int64_t& s : *strides) s *= byte_size(w.dtype);
  return std::make_unique<cuda::CudaCopy>(std::move(context), copy);
}

// ---- attention

// The library reads rows in pieces, and only knows the alignment of the first.
void check_rows(const CallRequest& r, DType dtype, const Layout& layout, std::string_view what) {
  for (std::size_t i = 0; i + 1 < layout.dims.size(); ++i)
    if (layout.dims[i] > 1 && layout.strides[i] * byte_size(dtype) % graph_alignment != 0)
      refuse(r, cat(what, " does not start at a multiple of ", graph_alignment, " bytes"));
}

// As [batch, heads, length, depth].
Layout with_batch(const CallRequest& r, const CallOperand& o) {
  Layout out{o.dims, o.strides};
  if (out.dims.size() > 4 || out.dims.size() < 2) refuse(r, "takes two to four axes");
  while (out.dims.size() < 4) {
    out.strides.insert(out.strides.begin(), out.dims[0] * out.strides[0]);
    out.dims.insert(out.dims.begin(), 1);
  }
  if (out.strides[3] != 1 && out.dims[3] != 1) refuse(r, "the depth must be contiguous");
  check_rows(r, o.dtype, out, "a row");
  return out;
}

// The operations of one attention in the form that the library recognises: products around a
// softmax in small steps, including logarithms of sums, which are unused.
class Attention {
 public:
  Attention(std::shared_ptr<cuda::Context> context, const CallRequest& r)
      : r_(r), g_(std::move(context)), has_mask_(r.setting("mask", 0) != 0) {
    const std::size_t last = 3 + has_mask_;
    if (r.operands.size() != last + 1) refuse(r, cat("takes ", last + 1, " operands"));
    queries_ = with_batch(r, r.operands[0]);
    keys_ = with_batch(r, r.operands[1]);
    values_ = with_batch(r, r.operands[2]);
    result_ = with_batch(r, r.operands[last]);
    type_ = data_type(r, r.operands[last].dtype);
    if (type_ == r_32f) refuse(r, "takes f16 and bf16");
    scores_.dims = {queries_.dims[0], queries_.dims[1], queries_.dims[2], keys_.dims[2]};
    scores_.strides = dense(scores_.dims);
    rows_.dims = scores_.dims;
    rows_.dims[3] = 1;
    rows_.strides = dense(rows_.dims);
  }

  std::unique_ptr<CudaCall> bind() && {
    if (is_empty(result_.dims)) return std::make_unique<Nothing>();
    if (is_empty(scores_.dims) || is_empty(queries_.dims)) refuse(r_, "there are no keys");
    const Graph::Tensor q = g_.in_memory(0, queries_, type_);
    Layout turned = keys_;
    std::swap(turned.dims[2], turned.dims[3]);
    std::swap(turned.strides[2], turned.strides[3]);
    const Graph::Tensor k = g_.in_memory(1, turned, type_), v = g_.in_memory(2, values_, type_);
    Graph::Tensor s = g_.between(scores_, r_32f);
    g_.multiply_matrices(q, k, s);
    s = follow(multiply, s, g_.scalar(scale(), 4));
    if (has_mask_) s = follow(add, s, mask());
    if (r_.setting("causal", 0)) s = causal(s);
    const Graph::Tensor p = softmax(s);
    g_.multiply_matrices(p, v, g_.in_memory(3 + has_mask_, result_, type_));
    return std::move(g_).finish(
        r_.name, {.number = r_.setting("plan", 0), .may_round_to_tf32 = true, .may_compile = true});
  }

 private:
  float scale() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(r_.setting("scale_bits", 0)));
  }

  Graph::Tensor follow(Pointwise op, Graph::Tensor x, std::optional<Graph::Tensor> b = {}) {
    const Graph::Tensor y = g_.between(scores_, r_32f);
    g_.pointwise(op, {x, b}, y);
    return y;
  }

  // Axes of size 1 are broadcast.
  Graph::Tensor mask() {
    const CallOperand& o = r_.operands[3];
    Layout layout{o.dims, o.strides};
    while (layout.dims.size() < 4) {
      layout.dims.insert(layout.dims.begin(), 1);
      layout.strides.insert(layout.strides.begin(), 1);
    }
    for (std::size_t i = 0; i < 4; ++i)
      if (layout.dims[i] == 1) layout.strides[i] = dense(layout.dims)[i];
    if (layout.strides[3] != 1) refuse(r_, "the mask's rows must be contiguous");
    check_rows(r_, o.dtype, layout, "a row of the mask");
    return g_.in_memory(3, layout, data_type(r_, o.dtype));
  }

  // A row sees the keys up to its index plus the offset.
  Graph::Tensor causal(Graph::Tensor s) {
    const auto index = [&](std::int64_t axis) {
      const Graph::Tensor y = g_.between(scores_, r_32i);
      g_.pointwise(index_along, {s}, y, r_32f, axis);
      return y;
    };
    Graph::Tensor row = index(2);
    const Graph::Tensor column = index(3);
    if (const std::int64_t offset = r_.setting("causal_offset", 0)) {
      const Graph::Tensor moved = g_.between(scores_, r_32i);
      g_.pointwise(add, {row, g_.scalar(static_cast<std::int32_t>(offset), 4)}, moved, r_32i);
      row = moved;
    }
    const Graph::Tensor is_seen = g_.between(scores_, r_bool), seen = g_.between(scores_, r_32f);
    g_.pointwise(is_at_least, {row, column}, is_seen, r_bool);
    const Graph::Tensor nothing = g_.scalar(-std::numeric_limits<float>::infinity(), 4);
    g_.pointwise(choose, {s, nothing, is_seen}, seen);
    return seen;
  }

  Graph::Tensor softmax(Graph::Tensor s) {
    const auto of_rows = [&] { return g_.between(rows_, r_32f); };
    const Graph::Tensor most = of_rows(), sums = of_rows(), logarithms = of_rows(),
                        unread = of_rows(), p = g_.between(scores_, type_);
    g_.reduce(largest, s, most);
    const Graph::Tensor e = follow(exponential, follow(subtract, s, most));
    g_.reduce(sum, e, sums);
    g_.pointwise(logarithm, {sums}, logarithms);
    g_.pointwise(add, {most, logarithms}, unread);
    g_.pointwise(divide, {e, sums}, p);
    return p;
  }

  const CallRequest& r_;
  Graph g_;
  bool has_mask_;
  Layout queries_, keys_, values_, result_, scores_, rows_;
  DataType type_;
};

}  // namespace

LibraryStatus library_status() {
  LibraryStatus out{.name = "cudnn"};
  const Library& l = library();
  if (l.failure.empty()) out.version = version_text(l.version());
  out.file = l.file;
  out.failure = l.failure;
  out.hint =
      "install NVIDIA's cuDNN 9 for CUDA 13; without it generated kernels compute convolutions and "
      "attention";
  return out;
}

std::unique_ptr<CudaCall> bind(std::shared_ptr<cuda::Context> context, const CallRequest& r) {
  if (const std::string& why = library().failure; !why.empty()) refuse(r, why);
  context->refuse_if_lost();
  const cuda::Scope scope(*context);
  if (r.name == "cudnn.conv") return bind_convolution(std::move(context), r);
  if (r.name == "cudnn.attention") return Attention(std::move(context), r).bind();
  if (r.name == "cudnn.pack") return bind_pack(std::move(context), r);
  throw UserError("cuda: function '", r.name, "' is not known; compile the plan again");
}

std::optional<Packing> packing(const CallRequest& r) {
  if (r.name != "cudnn.conv" || r.operands.size() < 2 || r.operands[1].dims.size() != image_rank)
    return std::nullopt;
  const CallOperand& w = r.operands[1];
  std::int64_t bytes = byte_size(w.dtype);
  Packing p{.operand = 1, .settings = {{"packed", 1}}, .pack_name = "cudnn.pack"};
  for (std::size_t i = 0; i < image_rank; ++i) {
    bytes = checked_mul(bytes, w.dims[i]);
    p.settings.emplace_back(cat("packed_dim", i), w.dims[i]);
  }
  p.bytes = static_cast<std::size_t>(bytes);
  return p;
}

}  // namespace hone::cudnn
