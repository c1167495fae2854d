#include "backend/cuda/device/cublaslt.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "backend/cuda/device/cublaslt_abi.h"
#include "backend/cuda/driver/open.h"
#include "base/library.h"

namespace hone::cublaslt {

namespace {

using cuda::CudaCall;

constexpr const char* soname = "libcublasLt.so.13";
constexpr std::size_t most_workspace = std::size_t{32} << 20;

struct Library {
#define HONE_CUBLASLT_MEMBER(name, symbol, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  HONE_CUBLASLT_FUNCTIONS(HONE_CUBLASLT_MEMBER)
#undef HONE_CUBLASLT_MEMBER
  std::string failure, file;
};

Library open_cublaslt() {
  Library l;
  const cuda::OpenedLibrary opened = cuda::open_nvidia_library(soname);
  l.file = opened.file;
  l.failure = opened.failure;
  if (!opened.handle) return l;
#define HONE_CUBLASLT_FIND(name, symbol, ...)                                           \
  l.name = reinterpret_cast<decltype(l.name)>(find_in_library(opened.handle, #symbol)); \
  if (!l.name && l.failure.empty()) l.failure = cat(l.file, " lacks ", #symbol);
  HONE_CUBLASLT_FUNCTIONS(HONE_CUBLASLT_FIND)
#undef HONE_CUBLASLT_FIND
  return l;
}

const Library& library() {
  static const Library it = open_cublaslt();
  return it;
}

void check(Status s, const char* call) {
  if (s != success)
    throw UserError("cublaslt: ", call, ": ", library().status_name(s), " (", static_cast<int>(s),
                    ")");
}

// One per context, kept as long as the process: creating one takes milliseconds.
Handle handle_of(const cuda::Context& c) {
  static std::mutex mutex;
  static std::map<std::uint64_t, Handle> handles;
  const std::scoped_lock lock(mutex);
  Handle& h = handles[c.id()];
  if (!h) check(library().create(&h), "cublasLtCreate");
  return h;
}

DataType data_type(const CallRequest& r, DType t) {
  switch (t) {
    case DType::f32:
      return r_32f;
    case DType::f64:
      return r_64f;
    case DType::f16:
      return r_16f;
    case DType::bf16:
      return r_16bf;
    default:
      throw UserError(r.name, ": ", t, " is not multiplied by this library");
  }
}

// A row-major matrix is a column-major one with its axes exchanged, so the product is computed from
// the transposed operands in reverse order: n x m = (n x k) (k x m).
struct Matrix {
  std::int64_t rows, columns, leading;  // as stored, column-major
  bool is_transposed;                   // relative to the product's form
  std::int64_t batches, batch_stride;
};

// The matrix of an operand, with rows of the column-major product along axis `fast` and columns
// along `slow`.
Matrix matrix_of(const CallRequest& r, const CallOperand& o, std::size_t fast, std::size_t slow) {
  const std::int64_t n = o.dims[fast], m = o.dims[slow];
  const bool has_batch = o.dims.size() == 3;
  Matrix out{n, m, o.strides[slow], false, has_batch ? o.dims[0] : 1, has_batch ? o.strides[0] : 0};
  const auto is_unit = [&](std::size_t axis) { return o.strides[axis] == 1 || o.dims[axis] == 1; };
  if (is_unit(fast) && (o.strides[slow] >= n || m == 1)) {
    out.leading = std::max(out.leading, n);
    return out;
  }
  if (!is_unit(slow) || (o.strides[fast] < m && n != 1))
    throw UserError(r.name,
                    ": an operand's rows and columns both have strides; the library takes one");
  out = {m, n, std::max(o.strides[fast], m), true, out.batches, out.batch_stride};
  return out;
}

class Matmul final : public CudaCall {
 public:
  Matmul(std::shared_ptr<cuda::Context> context, const CallRequest& r)
      : context_(std::move(context)) {
    has_bias_ = r.setting("bias", 0) != 0;
    const std::size_t count = has_bias_ ? 4 : 3;
    if (r.operands.size() != count) throw UserError(r.name, ": takes ", count, " operands");
    const CallOperand &a = r.operands[0], &b = r.operands[1], &y = r.operands[count - 1];
    const std::size_t rank = y.dims.size(), last = rank - 1, before = rank - 2;
    if ((rank != 2 && rank != 3) || a.dims.size() != rank || b.dims.size() != rank)
      throw UserError(r.name, ": takes matrices, or stacks of them");
    const bool swap_a = r.setting("transpose_a", 0) != 0, swap_b = r.setting("transpose_b", 0) != 0;
    // Column-major: the operand n x k, then k x m.
    const Matrix first = matrix_of(r, b, swap_b ? before : last, swap_b ? last : before),
                 second = matrix_of(r, a, swap_a ? before : last, swap_a ? last : before),
                 result = matrix_of(r, y, last, before);
    if (result.is_transposed) throw UserError(r.name, ": the result's columns have strides");
    if (y.dims[last] == 0 || y.dims[before] == 0 || result.batches == 0) is_empty_ = true;
    const DataType t = data_type(r, y.dtype);
    is_double_ = t == r_64f;
    const cuda::Scope scope(*context_);
    handle_ = handle_of(*context_);
    const Compute compute = is_double_             ? compute_64f
                            : r.setting("tf32", 0) ? compute_32f_tf32
                                                   : compute_32f;
    check(library().create_description(&description_, compute, is_double_ ? r_64f : r_32f),
          "cublasLtMatmulDescCreate");
    set(trans_a, static_cast<std::int32_t>(first.is_transposed));
    set(trans_b, static_cast<std::int32_t>(second.is_transposed));
    std::uint32_t e = r.setting("gelu", 0) ? gelu : r.setting("relu", 0) ? relu : plain;
    if (has_bias_) e = e == plain ? bias : e | bias;
    set(epilogue, e);
    layouts_ = {layout(first, data_type(r, b.dtype)), layout(second, data_type(r, a.dtype)),
                layout(result, t)};
    if (!is_empty_) choose(r, r.setting("algorithm", 0));
  }
  ~Matmul() override {
    for (Layout l : layouts_)
      if (l) library().destroy_layout(l);
    if (description_) library().destroy_description(description_);
    if (workspace_) context_->free(workspace_);
  }

  void run(std::span<const CUdeviceptr> operands, CUstream stream) const override {
    if (is_empty_) return;
    const auto at = [&](std::size_t i) { return reinterpret_cast<void*>(operands[i]); };
    if (has_bias_) set(bias_pointer, at(2));
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    const void *alpha = &one_f, *beta = &zero_f;
    if (is_double_) alpha = &one, beta = &zero;
    void* const result = at(operands.size() - 1);
    check(library().matmul(handle_, description_, alpha, at(1), layouts_[0], at(0), layouts_[1],
                           beta, result, layouts_[2], result, layouts_[2], &chosen_.algorithm,
                           reinterpret_cast<void*>(workspace_), chosen_.workspace_bytes, stream),
          "cublasLtMatmul");
  }

 private:
  template <class T>
  void set(DescriptionAttribute a, T value) const {
    check(library().set_description(description_, a, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  static Layout layout(const Matrix& m, DataType t) {
    Layout out = nullptr;
    check(library().create_layout(&out, t, static_cast<std::uint64_t>(m.rows),
                                  static_cast<std::uint64_t>(m.columns), m.leading),
          "cublasLtMatrixLayoutCreate");
    const auto batches = static_cast<std::int32_t>(m.batches);
    check(library().set_layout(out, batch_count, &batches, sizeof batches),
          "cublasLtMatrixLayoutSetAttribute");
    check(library().set_layout(out, batch_stride, &m.batch_stride, sizeof m.batch_stride),
          "cublasLtMatrixLayoutSetAttribute");
    return out;
  }

  void choose(const CallRequest& r, std::int64_t number) {
    Preference preference = nullptr;
    check(library().create_preference(&preference), "cublasLtMatmulPreferenceCreate");
    library().set_preference(preference, workspace_bytes, &most_workspace, sizeof most_workspace);
    // What plans guarantee for the operands of libraries.
    const std::uint32_t alignment = 16;
    for (PreferenceAttribute a : {alignment_a, alignment_b, alignment_c, alignment_d})
      library().set_preference(preference, a, &alignment, sizeof alignment);
    constexpr int most = 8;
    std::array<Heuristic, most> found{};
    int count = 0;
    const Status s =
        library().heuristics(handle_, description_, layouts_[0], layouts_[1], layouts_[2],
                             layouts_[2], preference, most, found.data(), &count);
    library().destroy_preference(preference);
    if (s != success || number >= count)
      throw UserError(r.name, ": the library proposes ", s == success ? count : 0,
                      " algorithms for these sizes, number ", number, " is asked for");
    chosen_ = found[static_cast<std::size_t>(number)];
    if (chosen_.workspace_bytes > 0) workspace_ = context_->alloc(chosen_.workspace_bytes);
  }

  std::shared_ptr<cuda::Context> context_;
  Handle handle_ = nullptr;
  Description description_ = nullptr;
  std::array<Layout, 3> layouts_{};
  Heuristic chosen_{};
  CUdeviceptr workspace_ = 0;
  bool has_bias_ = false, is_double_ = false, is_empty_ = false;
};

}  // namespace

LibraryStatus library_status() {
  LibraryStatus out{.name = "cublaslt"};
  const Library& l = library();
  if (l.failure.empty()) out.version = cat(l.version() / 10000, ".", l.version() % 10000 / 100);
  out.file = l.file;
  out.failure = l.failure;
  out.hint = "install NVIDIA's cuBLAS for CUDA 13; without it generated kernels multiply matrices";
  return out;
}

std::unique_ptr<CudaCall> bind(std::shared_ptr<cuda::Context> context, const CallRequest& r) {
  if (const std::string& why = library().failure; !why.empty()) throw UserError(r.name, ": ", why);
  if (r.name != "cublaslt.matmul")
    throw UserError("cuda: function '", r.name, "' is not known; compile the plan again");
  return std::make_unique<Matmul>(std::move(context), r);
}

}  // namespace hone::cublaslt
