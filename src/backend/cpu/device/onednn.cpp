#include "backend/cpu/device/onednn.h"

#include <algorithm>
#include <map>

#include "backend/cpu/device/call.h"
#include "base/checked.h"
#include "base/error.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include "backend/cpu/device/onednn_library.h"

namespace hone::onednn {

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t element_bytes = sizeof(float);
// Goals: a piece is large enough for a thread, and there are enough pieces for the machine's
// threads.
constexpr double piece_flops = 2e6;
constexpr std::int64_t most_pieces = 16;
constexpr std::int64_t slice_elements = 64 << 10, most_slices = 8, slice_columns = 64;
constexpr std::int64_t least_rows = 16;

[[noreturn]] void refuse(const CallRequest& r, std::string_view why) {
  throw UserError(r.name, ": ", why, "; compile the plan again");
}

// Dims and strides in oneDNN's order of axes.
struct Tensor {
  Sizes dims, strides;

  void swap_axes(std::size_t a, std::size_t b) {
    std::swap(dims[a], dims[b]);
    std::swap(strides[a], strides[b]);
  }
  // Moves an axis; the others keep their order.
  void move_axis(std::size_t from, std::size_t to) {
    for (Sizes* list : {&dims, &strides}) {
      const std::int64_t n = (*list)[from];
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(from));
      list->insert(list->begin() + static_cast<std::ptrdiff_t>(to), n);
    }
  }
  dnnl_memory_desc_t desc() const { return memory_desc(dims, strides); }
  // A part of the tensor. A single image gets the stride of a dense tensor; otherwise the library
  // does not recognise its own formats.
  dnnl_memory_desc_t window(const Sizes& sizes) const {
    Sizes s = strides;
    if (sizes[0] == 1)
      for (std::size_t i = s[0] = 1; i < s.size(); ++i) s[0] = std::max(s[0], s[i] * sizes[i]);
    return memory_desc(sizes, s);
  }
};

Tensor tensor(const CallOperand& o) { return {o.dims, o.strides}; }

std::int64_t product(const Sizes& s) {
  std::int64_t n = 1;
  for (std::int64_t d : s) n = checked_mul(n, d);
  return n;
}

std::int64_t pieces_for(double flops) {
  return static_cast<std::int64_t>(
      std::clamp(flops / piece_flops, 1.0, static_cast<double>(most_pieces)));
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// [0, size) in parts of `part`, the last one shorter.
struct Parts {
  std::int64_t size, part;
  std::int64_t count() const { return ceil_div(size, part); }
  std::int64_t begin(std::int64_t i) const { return i * part; }
  std::int64_t length(std::int64_t i) const { return std::min(part, size - i * part); }
};

class PiecewiseCall final : public CpuCall {
 public:
  explicit PiecewiseCall(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
    for (const Piece& p : pieces_) scratch_ = std::max(scratch_, p.scratch_bytes());
  }
  std::int64_t chunks() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::size_t scratch_bytes() const override { return scratch_; }
  void run(void* const* operands, std::int64_t begin, std::int64_t end,
           void* scratch) const override {
    for (std::int64_t i = begin; i < end; ++i)
      pieces_[static_cast<std::size_t>(i)].run(operands, scratch);
  }

 private:
  std::vector<Piece> pieces_;
  std::size_t scratch_ = 0;
};

// Shared by matmul and conv: the roles of operands, and packed constants.
struct Request {
  explicit Request(const CallRequest& r)
      : call(r),
        has_bias(r.setting("bias", 0) != 0),
        has_relu(r.setting("relu", 0) != 0),
        is_packed(r.setting("packed", 0) != 0),
        is_fast_only(r.setting(fast_only, 0) != 0),
        out_index(has_bias ? 3u : 2u) {
    if (r.operands.size() != out_index + 1) refuse(r, cat("got ", r.operands.size(), " operands"));
    for (std::size_t i = 0; i < r.operands.size(); ++i)
      if (r.operands[i].dtype != DType::f32 && !(is_packed && i == 1))
        refuse(r, cat("operand ", i, " is ", r.operands[i].dtype, ", not f32"));
  }

  Tensor weights() const {
    if (!is_packed) return tensor(call.operands[1]);
    Tensor t;
    for (std::int64_t i = 0; i < call.setting("packed_rank", 0); ++i)
      t.dims.push_back(call.setting(cat("packed_dim", i), 0));
    t.strides.assign(t.dims.size(), 0);
    return t;
  }
  bool is_empty() const { return product(call.operands[out_index].dims) == 0; }

  // The bias must be dense, apart from axes of size 1.
  void check_bias(std::int64_t channels) const {
    if (!has_bias) return;
    const CallOperand& b = call.operands[2];
    if (product(b.dims) != channels) refuse(call, "the bias has another size than the channels");
    for (std::size_t i = 0; i < b.dims.size(); ++i)
      if (b.dims[i] > 1 && b.strides[i] != 1) refuse(call, "the bias is not dense");
  }
  void add_result(Piece& p, const dnnl_memory_desc_t& window, std::int64_t offset) const {
    p.add(DNNL_ARG_DST, window, out_index, offset);
    if (has_relu) p.add_relu(window, out_index, offset);
  }
  void check_fingerprint(std::int64_t got) const {
    if (is_packed && got != call.setting("packed_format", 0))
      throw UserError(call.name,
                      ": the plan's weights are packed for another oneDNN or processor; compile "
                      "the plan again on this machine");
  }

  void check_speed(const Primitive& p) const {
    if (is_fast_only && p.is_plain())
      throw UserError(call.name, ": the library has only its reference implementation here (",
                      p.implementation(), ")");
  }

  const CallRequest& call;
  bool has_bias, has_relu, is_packed, is_fast_only;
  std::size_t out_index;
};

// ---- packed constants

void describe(CallSettings& settings, std::string_view which, const CallOperand& o) {
  settings.emplace_back(cat(which, "_rank"), static_cast<std::int64_t>(o.dims.size()));
  for (std::size_t i = 0; i < o.dims.size(); ++i) {
    settings.emplace_back(cat(which, "_dim", i), o.dims[i]);
    settings.emplace_back(cat(which, "_stride", i), o.strides[i]);
  }
}

// Tells the call what was packed, and the pack step what the call's other operands are.
Packing described_packing(const CallRequest& call, std::size_t bytes, std::int64_t format) {
  Packing p{1, bytes, format, {}, "onednn.pack", {}};
  p.settings = {{"packed", 1}, {"packed_format", format}};
  describe(p.settings, "packed", call.operands[1]);
  p.pack_settings.assign(call.settings.begin(), call.settings.end());
  p.pack_settings.emplace_back("of_conv", call.name == "onednn.conv");
  describe(p.pack_settings, "first", call.operands.front());
  describe(p.pack_settings, "out", call.operands.back());
  return p;
}

// The call that a pack step serves.
struct PackedCall {
  explicit PackedCall(const CallRequest& r)
      : name(r.setting("of_conv", 0) ? "onednn.conv" : "onednn.matmul"),
        settings(r.settings.begin(), r.settings.end()) {
    operands.push_back(described(r, "first"));
    operands.push_back(r.operands[0]);
    operands.push_back(described(r, "out"));
    if (r.setting("bias", 0)) {
      const std::int64_t channels = r.setting("of_conv", 0) && !r.setting("channels_last", 0)
                                        ? operands[2].dims[1]
                                        : operands[2].dims.back();
      operands.insert(operands.begin() + 2, {DType::f32, {channels}, {1}});
    }
  }
  static CallOperand described(const CallRequest& r, std::string_view which) {
    CallOperand o;
    for (std::int64_t i = 0; i < r.setting(cat(which, "_rank"), 0); ++i) {
      o.dims.push_back(r.setting(cat(which, "_dim", i), 0));
      o.strides.push_back(r.setting(cat(which, "_stride", i), 0));
    }
    return o;
  }
  CallRequest request() const { return {name, operands, settings}; }

  std::string name;
  std::vector<CallOperand> operands;
  CallSettings settings;
};

// ---- matrix products

// [batch, rows, columns]; a single matrix has no batch axis, because the library only packs weights
// of that form.
dnnl_memory_desc_t matrices(Sizes dims, Sizes strides) {
  if (dims[0] == 1) {
    dims.erase(dims.begin());
    strides.erase(strides.begin());
  }
  return memory_desc(dims, strides);
}

class Matmul {
 public:
  explicit Matmul(const CallRequest& r)
      : request_(r),
        a_(tensor(r.operands[0])),
        b_(request_.weights()),
        out_(tensor(r.operands[request_.out_index])) {
    const std::size_t rank = a_.dims.size();
    if (rank < 2 || rank > 3 || b_.dims.size() != rank || out_.dims.size() != rank)
      refuse(r, "needs matrices, or batches of them");
    if (r.setting("transpose_a", 0)) a_.swap_axes(rank - 2, rank - 1);
    if (r.setting("transpose_b", 0)) b_.swap_axes(rank - 2, rank - 1);
    if (rank == 2)
      for (Tensor* t : {&a_, &b_, &out_}) {
        t->dims.insert(t->dims.begin(), 1);
        t->strides.insert(t->strides.begin(), product(t->dims));
      }
    m_ = a_.dims[1], k_ = a_.dims[2], n_ = b_.dims[2];
    if (b_.dims[1] != k_ || out_.dims != Sizes{a_.dims[0], m_, n_} || b_.dims[0] != a_.dims[0])
      refuse(r, "the operands' sizes do not fit");
    request_.check_bias(n_);
    divide();
  }

  std::unique_ptr<CpuCall> bind() {
    std::vector<Piece> pieces;
    if (request_.is_empty()) return std::make_unique<PiecewiseCall>(std::move(pieces));
    if (k_ == 0) refuse(request_.call, "sums over nothing");
    if (request_.is_packed) request_.check_fingerprint(fingerprint(packed_desc(0)));
    for (std::int64_t batch = 0; batch < batches_.count(); ++batch)
      for (std::int64_t row = 0; row < rows_.count(); ++row)
        for (std::int64_t column = 0; column < columns_.count(); ++column)
          pieces.push_back(piece(batch, row, column));
    return std::make_unique<PiecewiseCall>(std::move(pieces));
  }

  std::optional<Packing> packing() {
    if (request_.is_empty() || k_ == 0 || a_.dims[0] != 1) return std::nullopt;
    const dnnl_memory_desc_t best = packed_desc(0);
    const dnnl_memory_desc_t given = matrices({1, k_, columns_.length(0)}, b_.strides);
    if (library().memory_desc_equal(&best, &given)) return std::nullopt;
    std::size_t bytes = 0;
    for (std::int64_t i = 0; i < columns_.count(); ++i) bytes += slice_bytes(i);
    Packing p = described_packing(request_.call, bytes, fingerprint(best));
    p.settings.emplace_back("packed_rows", rows_.length(0));
    return p;
  }

  std::unique_ptr<CpuCall> bind_pack() {
    std::vector<Piece> pieces;
    for (std::int64_t i = 0; i < columns_.count(); ++i) {
      const dnnl_memory_desc_t from = matrices({1, k_, columns_.length(i)}, b_.strides),
                               to = packed_desc(i);
      Piece& p = pieces.emplace_back();
      p.begin(Primitive::reorder(from, to));
      p.add(DNNL_ARG_FROM, from, 0, columns_.begin(i) * b_.strides[2] * element_bytes);
      p.add(DNNL_ARG_TO, to, 1, slice_offset(i));
    }
    return std::make_unique<PiecewiseCall>(std::move(pieces));
  }

 private:
  // Columns depend only on k and n, because packed weights are used with any number of rows.
  void divide() {
    const std::int64_t slices = std::clamp(k_ * n_ / slice_elements, std::int64_t{1}, most_slices);
    const std::int64_t width =
        round_up(ceil_div(std::max<std::int64_t>(n_, 1), slices), slice_columns);
    const bool is_batch = a_.dims[0] > 1;
    columns_ = {n_, is_batch ? std::max<std::int64_t>(n_, 1) : width};
    const std::int64_t wanted =
        pieces_for(2.0 * static_cast<double>(a_.dims[0] * m_) * static_cast<double>(k_ * n_));
    batches_ = {a_.dims[0], std::max<std::int64_t>(ceil_div(a_.dims[0], wanted), 1)};
    const std::int64_t left =
        std::max<std::int64_t>(wanted / std::max<std::int64_t>(columns_.count(), 1), 1);
    rows_ = {m_, is_batch ? std::max<std::int64_t>(m_, 1)
                          : std::max(round_up(ceil_div(m_, left), 8), least_rows)};
  }

  static dnnl_memory_desc_t bias_desc(int rank, std::int64_t n) {
    return rank == 2 ? memory_desc({1, n}, {n, 1}) : memory_desc({1, 1, n}, {n, n, 1});
  }

  std::shared_ptr<const Primitive> make(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b,
                                        const dnnl_memory_desc_t& out) const {
    const std::int64_t n = out.dims[out.ndims - 1];
    const dnnl_memory_desc_t bias = bias_desc(out.ndims, n);
    dnnl_matmul_desc_t op;
    require(library().matmul_desc_init(&op, &a, &b, request_.has_bias ? &bias : nullptr, &out),
            "dnnl_matmul_desc_init");
    return Primitive::make(&op);
  }

  // The library's preferred format for a slice and the number of dense rows at packing time.
  dnnl_memory_desc_t packed_desc(std::int64_t column) {
    const std::int64_t n = columns_.length(column);
    auto [it, is_new] = packed_.try_emplace(n);
    if (!is_new) return it->second;
    const std::int64_t m = request_.call.setting("packed_rows", rows_.length(0));
    const dnnl_memory_desc_t a = memory_desc({m, k_}, {k_, 1}), out = memory_desc({m, n}, {n, 1});
    const auto best = make(a, any_desc({k_, n}), out);
    return it->second = best ? best->desc(dnnl_query_weights_md) : matrices({1, k_, n}, b_.strides);
  }
  std::size_t slice_bytes(std::int64_t column) {
    return (byte_size(packed_desc(column)) + buffer_alignment - 1) / buffer_alignment *
           buffer_alignment;
  }
  std::int64_t slice_offset(std::int64_t column) {
    return column * static_cast<std::int64_t>(slice_bytes(0));
  }

  Piece piece(std::int64_t batch, std::int64_t row, std::int64_t column) {
    const std::int64_t bs = batches_.length(batch), m = rows_.length(row),
                       n = columns_.length(column);
    const dnnl_memory_desc_t a = matrices({bs, m, k_}, a_.strides),
                             out = matrices({bs, m, n}, out_.strides);
    const dnnl_memory_desc_t b =
        request_.is_packed ? packed_desc(column) : matrices({bs, k_, n}, b_.strides);
    std::shared_ptr<const Primitive>& primitive = primitives_[{bs, m, n}];
    if (!primitive) primitive = make(a, b, out);
    if (!primitive) refuse(request_.call, "oneDNN has no implementation for these sizes");
    request_.check_speed(*primitive);
    const std::int64_t b0 = batches_.begin(batch), m0 = rows_.begin(row),
                       n0 = columns_.begin(column);
    const auto at = [](std::int64_t elements) { return elements * element_bytes; };
    Piece p;
    p.begin(primitive);
    p.add(DNNL_ARG_SRC, a, 0, at(b0 * a_.strides[0] + m0 * a_.strides[1]));
    p.add(DNNL_ARG_WEIGHTS, b, 1,
          request_.is_packed ? slice_offset(column) : at(b0 * b_.strides[0] + n0 * b_.strides[2]));
    if (request_.has_bias) p.add(DNNL_ARG_BIAS, bias_desc(out.ndims, n), 2, at(n0));
    request_.add_result(p, out,
                        at(b0 * out_.strides[0] + m0 * out_.strides[1] + n0 * out_.strides[2]));
    return p;
  }

  Request request_;
  Tensor a_, b_, out_;
  std::int64_t m_ = 0, k_ = 0, n_ = 0;
  Parts batches_{}, rows_{}, columns_{};
  std::map<std::int64_t, dnnl_memory_desc_t> packed_;             // by width
  std::map<Sizes, std::shared_ptr<const Primitive>> primitives_;  // by size of the result
};

// ---- convolutions

class Convolution {
 public:
  explicit Convolution(const CallRequest& r)
      : request_(r),
        x_(tensor(r.operands[0])),
        w_(request_.weights()),
        out_(tensor(r.operands[request_.out_index])),
        groups_(r.setting("groups", 1)) {
    const std::size_t rank = x_.dims.size();
    if (rank < 3 || rank > 5 || w_.dims.size() != rank || out_.dims.size() != rank)
      refuse(r, "needs one to three spatial axes");
    if (r.setting("channels_last", 0)) {
      x_.move_axis(rank - 1, 1);
      out_.move_axis(rank - 1, 1);
      w_.move_axis(rank - 1, 0);
      w_.move_axis(rank - 1, 1);
    }
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      strides_.push_back(r.setting(cat("strides", i), 1));
      dilations_.push_back(r.setting(cat("dilations", i), 1));
      pads_low_.push_back(r.setting(cat("pads_low", i), 0));
      pads_high_.push_back(r.setting(cat("pads_high", i), 0));
    }
    request_.check_bias(out_.dims[1]);
    split_groups();
    divide();
  }

  std::unique_ptr<CpuCall> bind() {
    std::vector<Piece> pieces;
    if (request_.is_empty()) return std::make_unique<PiecewiseCall>(std::move(pieces));
    if (request_.is_packed) request_.check_fingerprint(fingerprint(packed_desc()));
    if (!rows_fit()) rows_ = {out_.dims[2], out_.dims[2]};
    for (std::int64_t image = 0; image < images_.count(); ++image)
      for (std::int64_t row = 0; row < rows_.count(); ++row) pieces.push_back(piece(image, row));
    return std::make_unique<PiecewiseCall>(std::move(pieces));
  }

  std::optional<Packing> packing() {
    if (request_.is_empty()) return std::nullopt;
    const dnnl_memory_desc_t best = packed_desc(), given = w_.desc();
    if (library().memory_desc_equal(&best, &given)) return std::nullopt;
    Packing p = described_packing(request_.call, byte_size(best), fingerprint(best));
    for (std::size_t i = 2; i < x_.dims.size(); ++i) {
      p.settings.emplace_back(cat("packed_x", i), x_.dims[i]);
      p.settings.emplace_back(cat("packed_out", i), out_.dims[i]);
    }
    return p;
  }

  std::unique_ptr<CpuCall> bind_pack() {
    const dnnl_memory_desc_t from = w_.desc(), to = packed_desc();
    std::vector<Piece> pieces;
    Piece& p = pieces.emplace_back();
    p.begin(Primitive::reorder(from, to));
    p.add(DNNL_ARG_FROM, from, 0, 0);
    p.add(DNNL_ARG_TO, to, 1, 0);
    return std::make_unique<PiecewiseCall>(std::move(pieces));
  }

 private:
  // The input of a window of output rows: input rows, and padding at both ends.
  struct Window {
    std::int64_t images, in_rows, out_rows, first, pad_low, pad_high;
    auto operator<=>(const Window&) const = default;
  };

  // oneDNN has a separate axis for groups.
  void split_groups() {
    if (groups_ < 1 || w_.dims[0] % groups_ != 0)
      refuse(request_.call, cat(w_.dims[0], " channels in ", groups_, " groups"));
    if (groups_ == 1) return;
    const std::int64_t each = w_.dims[0] / groups_, stride = w_.strides[0];
    w_.dims[0] = each;
    w_.dims.insert(w_.dims.begin(), groups_);
    w_.strides.insert(w_.strides.begin(), each * stride);
  }

  void divide() {
    const std::int64_t images = std::max<std::int64_t>(x_.dims[0], 1);
    const std::int64_t rows = std::max<std::int64_t>(out_.dims[2], 1);
    const std::int64_t channels = std::max<std::int64_t>(out_.dims[1], 1);
    const std::int64_t wanted = pieces_for(2.0 * static_cast<double>(product(out_.dims)) *
                                           static_cast<double>(product(w_.dims) / channels));
    images_ = {x_.dims[0], std::max<std::int64_t>(images / wanted, 1)};
    rows_ = {out_.dims[2], ceil_div(rows, std::max<std::int64_t>(wanted / images, 1))};
  }

  Window window(std::int64_t image, std::int64_t row) const {
    const std::int64_t images = images_.length(image), out_rows = rows_.length(row);
    const std::int64_t taps = w_.dims[w_.dims.size() - strides_.size()];
    if (rows_.count() == 1) return {images, x_.dims[2], out_rows, 0, pads_low_[0], pads_high_[0]};
    const std::int64_t begin = rows_.begin(row) * strides_[0] - pads_low_[0];
    const std::int64_t end = begin + (out_rows - 1) * strides_[0] + (taps - 1) * dilations_[0] + 1;
    const std::int64_t first = std::max<std::int64_t>(begin, 0), last = std::min(end, x_.dims[2]);
    return {images, last - first, out_rows, first, first - begin, end - last};
  }

  Window whole() const { return {1, x_.dims[2], out_.dims[2], 0, pads_low_[0], pads_high_[0]}; }

  // Whether every window of rows reads some input and is not slower than the whole.
  bool rows_fit() {
    if (rows_.count() == 1) return true;
    const bool whole_is_fast = is_fast(whole());
    for (std::int64_t row = 0; row < rows_.count(); ++row) {
      const Window w = window(0, row);
      if (w.in_rows <= 0 || (whole_is_fast && !is_fast(w))) return false;
    }
    return true;
  }
  bool is_fast(const Window& w) {
    const Form& f = form(w);
    return f.primitive && !f.primitive->is_plain();
  }

  static Sizes window_dims(const Tensor& t, std::int64_t images, std::int64_t rows) {
    Sizes s = t.dims;
    s[0] = images;
    s[2] = rows;
    return s;
  }
  // Dense and channels-last, the library's fastest layout.
  static dnnl_memory_desc_t staged(const Sizes& dims) {
    Sizes strides(dims.size());
    strides[1] = 1;
    std::int64_t at = dims[1];
    for (std::size_t i = dims.size(); i-- > 2; at *= dims[i]) strides[i] = at;
    strides[0] = at;
    return memory_desc(dims, strides);
  }
  dnnl_memory_desc_t given_x(const Window& w) const {
    return x_.window(window_dims(x_, w.images, w.in_rows));
  }
  dnnl_memory_desc_t given_out(const Window& w) const {
    return out_.window(window_dims(out_, w.images, w.out_rows));
  }
  dnnl_memory_desc_t staged_x(const Window& w) const {
    return staged(window_dims(x_, w.images, w.in_rows));
  }
  dnnl_memory_desc_t staged_out(const Window& w) const {
    return staged(window_dims(out_, w.images, w.out_rows));
  }

  std::shared_ptr<const Primitive> make(const Window& w, const dnnl_memory_desc_t& x,
                                        const dnnl_memory_desc_t& weights,
                                        const dnnl_memory_desc_t& out) const {
    const dnnl_memory_desc_t bias = memory_desc({out_.dims[1]}, {1});
    Sizes low = pads_low_, high = pads_high_, dilates = dilations_;
    low[0] = w.pad_low;
    high[0] = w.pad_high;
    for (std::int64_t& d : dilates) --d;  // oneDNN counts the gaps
    dnnl_convolution_desc_t op;
    require(library().dilated_convolution_forward_desc_init(
                &op, dnnl_forward_inference, dnnl_convolution_direct, &x, &weights,
                request_.has_bias ? &bias : nullptr, &out, strides_.data(), dilates.data(),
                low.data(), high.data()),
            "dnnl_dilated_convolution_forward_desc_init");
    return Primitive::make(&op);
  }

  // How a window is computed. The library has no fast implementation for most layouts; operands in
  // such a layout go through a copy in scratch memory.
  struct Form {
    std::shared_ptr<const Primitive> primitive;
    bool stages_x = false, stages_weights = false, stages_out = false;
  };

  const Form& form(const Window& w) {
    Window key = w;
    key.first = 0;  // its position does not matter
    auto [it, is_new] = forms_.try_emplace(key);
    Form& f = it->second;
    for (int way = 0; is_new && way < 8 && (!f.primitive || f.primitive->is_plain()); ++way) {
      const bool stages_x = way & 1, stages_out = way & 2, stages_weights = way & 4;
      if (stages_weights && request_.is_packed) break;
      const auto p = make(w, stages_x ? staged_x(w) : given_x(w),
                          stages_weights ? any_desc(w_.dims) : weights_desc(),
                          stages_out ? staged_out(w) : given_out(w));
      if (p && (!f.primitive || !p->is_plain())) f = {p, stages_x, stages_weights, stages_out};
    }
    return f;
  }

  // The library's preferred format for one image of the size at packing time.
  const dnnl_memory_desc_t& packed_desc() {
    if (packed_) return *packed_;
    Sizes x = x_.dims, out = out_.dims;
    x[0] = out[0] = 1;
    for (std::size_t i = 2; i < x.size(); ++i) {
      x[i] = request_.call.setting(cat("packed_x", i), x[i]);
      out[i] = request_.call.setting(cat("packed_out", i), out[i]);
    }
    const auto best = make(whole(), staged(x), any_desc(w_.dims), staged(out));
    packed_ = best ? best->desc(dnnl_query_weights_md) : w_.desc();
    return *packed_;
  }
  dnnl_memory_desc_t weights_desc() { return request_.is_packed ? packed_desc() : w_.desc(); }

  Piece piece(std::int64_t image, std::int64_t row) {
    const Window w = window(image, row);
    const Form& f = form(w);
    if (!f.primitive) refuse(request_.call, "oneDNN has no implementation for these sizes");
    request_.check_speed(*f.primitive);
    const std::int64_t first_image = images_.begin(image);
    const std::int64_t x_at =
        (first_image * x_.strides[0] + w.first * x_.strides[2]) * element_bytes;
    const std::int64_t out_at =
        (first_image * out_.strides[0] + rows_.begin(row) * out_.strides[2]) * element_bytes;
    const dnnl_memory_desc_t x = f.stages_x ? staged_x(w) : given_x(w);
    const dnnl_memory_desc_t out = f.stages_out ? staged_out(w) : given_out(w);
    const dnnl_memory_desc_t weights = f.primitive->desc(dnnl_query_weights_md);
    Piece p;
    const Place from_x = f.stages_x ? stage(p, given_x(w), {0, x_at}, x) : Place{0, x_at};
    const Place from_w = f.stages_weights ? stage(p, w_.desc(), {1, 0}, weights) : Place{1, 0};
    const Place given{request_.out_index, out_at};
    const Place to =
        f.stages_out ? Place{Piece::in_scratch, p.reserve(onednn::byte_size(out))} : given;
    p.begin(f.primitive);
    p.add(DNNL_ARG_SRC, x, from_x.operand, from_x.offset);
    p.add(DNNL_ARG_WEIGHTS, weights, from_w.operand, from_w.offset);
    if (request_.has_bias) p.add(DNNL_ARG_BIAS, memory_desc({out_.dims[1]}, {1}), 2, 0);
    p.add(DNNL_ARG_DST, out, to.operand, to.offset);
    if (f.stages_out) reorder(p, out, to, given_out(w), given);
    if (request_.has_relu) p.add_relu(given_out(w), request_.out_index, out_at);
    return p;
  }

  struct Place {
    std::size_t operand;
    std::int64_t offset;
  };
  static void reorder(Piece& p, const dnnl_memory_desc_t& from, Place from_place,
                      const dnnl_memory_desc_t& to, Place to_place) {
    p.begin(Primitive::reorder(from, to));
    p.add(DNNL_ARG_FROM, from, from_place.operand, from_place.offset);
    p.add(DNNL_ARG_TO, to, to_place.operand, to_place.offset);
  }
  // Copies an operand to scratch memory, in another layout.
  static Place stage(Piece& p, const dnnl_memory_desc_t& from, Place place,
                     const dnnl_memory_desc_t& to) {
    const Place copy{Piece::in_scratch, p.reserve(onednn::byte_size(to))};
    reorder(p, from, place, to, copy);
    return copy;
  }

  Request request_;
  Tensor x_, w_, out_;
  std::int64_t groups_;
  Sizes strides_, dilations_, pads_low_, pads_high_;
  Parts images_{}, rows_{};
  std::optional<dnnl_memory_desc_t> packed_;
  std::map<Window, Form> forms_;
};

}  // namespace

std::unique_ptr<CpuCall> bind(const CallRequest& r) {
  if (r.name == "onednn.matmul") return Matmul(r).bind();
  if (r.name == "onednn.conv") return Convolution(r).bind();
  if (r.name == "onednn.pack") {
    const PackedCall call(r);
    if (call.name == "onednn.conv") return Convolution(call.request()).bind_pack();
    return Matmul(call.request()).bind_pack();
  }
  refuse(r, "is not known to this version");
}

std::optional<Packing> packing(const CallRequest& r) {
  if (r.setting("packed", 0)) return std::nullopt;
  if (r.name == "onednn.matmul") return Matmul(r).packing();
  if (r.name == "onednn.conv") return Convolution(r).packing();
  return std::nullopt;
}

}  // namespace hone::onednn

#else

namespace hone::onednn {

std::unique_ptr<CpuCall> bind(const CallRequest& r) {
  throw UserError(r.name,
                  ": this build has no oneDNN; compile the plan with generated kernels alone");
}
std::optional<Packing> packing(const CallRequest&) { return std::nullopt; }

}  // namespace hone::onednn

#endif
