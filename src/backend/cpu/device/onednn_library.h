// oneDNN opened at run time: its functions, and primitives with their descriptors. onednn.cpp
// decides what the primitives compute.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/library_status.h"

namespace hone::onednn {

// X(name) for dnnl_name.
// clang-format off: it indents every line further.
#define HONE_DNNL_FUNCTIONS(X) \
  X(version) X(set_max_cpu_isa) X(engine_create) X(stream_create) X(stream_destroy) \
  X(memory_desc_init_by_strides) X(memory_desc_get_size) X(memory_desc_equal) X(memory_create) \
  X(memory_destroy) X(memory_set_data_handle) X(matmul_desc_init) \
  X(dilated_convolution_forward_desc_init) X(primitive_desc_create) X(primitive_desc_destroy) \
  X(primitive_desc_query) X(primitive_desc_query_md) X(reorder_primitive_desc_create) \
  X(primitive_create) X(primitive_destroy) X(primitive_execute) X(primitive_attr_create) \
  X(primitive_attr_destroy) X(primitive_attr_set_scratchpad_mode)
// clang-format on

struct Library {
#define HONE_DNNL_POINTER(name) decltype(&dnnl_##name) name;
  HONE_DNNL_FUNCTIONS(HONE_DNNL_POINTER)
#undef HONE_DNNL_POINTER
  void (*omp_set_num_threads)(int);
  int (*omp_get_max_threads)();
  dnnl_engine_t engine;
};

// Opens the library at first use; it stays open. Throws UserError when it is not installed.
const Library& library();

LibraryStatus library_status();

// Throws UserError that names the call and the status.
void require(dnnl_status_t status, std::string_view call);

// While it lives, oneDNN computes only on the calling thread.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;

 private:
  int before_;
};

// `strides` in elements; without them the library may choose the format.
dnnl_memory_desc_t memory_desc(const std::vector<std::int64_t>& dims,
                               const std::vector<std::int64_t>& strides);
dnnl_memory_desc_t any_desc(const std::vector<std::int64_t>& dims);
std::size_t byte_size(const dnnl_memory_desc_t&);
// Identifies a format; the same in all processes that run this library on this processor.
std::int64_t fingerprint(const dnnl_memory_desc_t&);

// A primitive ready to run; the caller provides the scratchpad.
class Primitive {
 public:
  // Null when the library has no implementation for this descriptor.
  static std::shared_ptr<const Primitive> make(const_dnnl_op_desc_t);
  static std::shared_ptr<const Primitive> reorder(const dnnl_memory_desc_t& from,
                                                  const dnnl_memory_desc_t& to);
  ~Primitive();
  Primitive(const Primitive&) = delete;

  dnnl_memory_desc_t desc(dnnl_query_t what) const;
  const std::string& implementation() const { return implementation_; }  // "brgconv:avx512_core"
  // A reference implementation: loops without vector code.
  bool is_plain() const {
    return implementation_.starts_with("ref") || implementation_.starts_with("gemm:ref") ||
           implementation_.starts_with("simple");
  }
  const_dnnl_primitive_t get() const { return primitive_; }

 private:
  Primitive() = default;
  static std::shared_ptr<const Primitive> from(dnnl_primitive_desc_t);
  dnnl_primitive_desc_t desc_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::string implementation_;
};

// A sequence of primitives on windows of the operands and of scratch memory. Used by one thread at
// a time.
class Piece {
 public:
  Piece();
  ~Piece();
  Piece(Piece&&) noexcept;
  Piece(const Piece&) = delete;

  // As an operand index: the thread's scratch memory.
  static constexpr std::size_t in_scratch = ~std::size_t{0};
  // Reserves scratch memory; returns its offset.
  std::int64_t reserve(std::size_t bytes);

  // Arguments added after this belong to the primitive.
  void begin(std::shared_ptr<const Primitive>);
  // Argument DNNL_ARG_... is operand `operand` at byte offset `offset`.
  void add(int argument, const dnnl_memory_desc_t&, std::size_t operand, std::int64_t offset);
  // Finally sets negative elements of a window to 0. The library's own relu would turn NaN into 0.
  void add_relu(const dnnl_memory_desc_t&, std::size_t operand, std::int64_t offset);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  // Throws UserError when the library fails.
  void run(void* const* operands, void* scratch) const;

 private:
  struct Window {
    std::size_t operand;
    std::int64_t offset;
    std::byte* in(void* const* operands, void* scratch) const;
  };
  struct Execution {
    std::shared_ptr<const Primitive> primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<Window> windows;
  };
  std::vector<Execution> executions_;
  dnnl_stream_t stream_ = nullptr;
  std::optional<Window> relu_;
  dnnl_memory_desc_t relu_desc_ = {};
  std::size_t scratch_bytes_ = 0;
};

}  // namespace hone::onednn
