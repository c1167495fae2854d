// Graphs of cuDNN: operations over tensors in memory, scalars, and intermediate tensors that are
// never stored. Does not know the complete graphs of convolutions or attention.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/device/call.h"
#include "backend/cuda/device/cudnn_library.h"

namespace hone::cudnn {

// Alignment of each operand, in bytes.
inline constexpr std::int64_t graph_alignment = 16;

class Descriptor {
 public:
  explicit Descriptor(Kind);
  Descriptor(Descriptor&& o) noexcept : body_(std::exchange(o.body_, nullptr)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(body_, o.body_);
    return *this;
  }
  ~Descriptor();

  Body body() const { return body_; }
  void set(Attribute, ElementKind, std::int64_t count, const void*);
  template <class T>
  void set(Attribute a, ElementKind kind, const T& value) {
    set(a, kind, 1, &value);
  }
  void set(Attribute a, std::span<const std::int64_t> list) {
    set(a, of_int64, static_cast<std::int64_t>(list.size()), list.data());
  }
  void set(Attribute a, const Descriptor& d) { set(a, of_descriptor, d.body_); }
  void finalize(std::string_view what);

 private:
  Body body_ = nullptr;
};

using Sizes = std::vector<std::int64_t>;

struct Layout {
  Sizes dims, strides;
};

// The requested way to compute a graph: index `number` among the allowed ones, in the library's
// order.
struct Wish {
  std::int64_t number = 0;
  bool may_round_to_tf32 = false;
  bool may_compile = false;  // kernels for this graph, in about a second
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<cuda::Context> context) : context_(std::move(context)) {}

  using Tensor = std::size_t;
  // `operand`: the index of the run's operand.
  Tensor in_memory(std::size_t operand, const Layout&, DataType);
  Tensor between(const Layout&, DataType);
  Tensor scalar(float, std::size_t rank);
  Tensor scalar(std::int32_t, std::size_t rank);

  struct Operands {
    Tensor x;
    std::optional<Tensor> b = {}, t = {};  // t chooses between x and b
  };
  // Computes in the given type.
  void pointwise(Pointwise, const Operands&, Tensor y, DataType = r_32f,
                 std::optional<std::int64_t> axis = {});
  void multiply_matrices(Tensor a, Tensor b, Tensor y);
  void reduce(Reduction, Tensor x, Tensor y);
  struct Window {
    Sizes strides, dilations, pads_low, pads_high;
  };
  void convolve(Tensor x, Tensor w, Tensor y, const Window&);

  // Throws UserError when the library does not have it. `name` is the call's name, for messages.
  std::unique_ptr<cuda::CudaCall> finish(std::string_view name, const Wish&) &&;

 private:
  struct Place {
    enum Kind { memory, between, scalar } kind;
    std::optional<std::size_t> operand = {};
    std::int32_t bits = 0;  // of a scalar
  };
  Tensor add(const Layout&, DataType, Place);

  std::shared_ptr<cuda::Context> context_;
  std::vector<Descriptor> tensors_, operations_, parts_;
  std::vector<Place> places_;  // of the tensors
};

}  // namespace hone::cudnn
