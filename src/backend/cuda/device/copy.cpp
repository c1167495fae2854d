#include "backend/cuda/device/copy.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace hone::cuda {

extern const char strided_copy_ptx[];

namespace {

struct Axis {
  std::int64_t size, to, from;
};

std::vector<Axis> joined(const StridedCopy& c) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < c.dims.size(); ++i)
    if (c.dims[i] != 1) axes.push_back({c.dims[i], c.to_strides[i], c.from_strides[i]});
  // Neighbouring threads write neighbouring elements.
  std::ranges::stable_sort(
      axes, [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  std::vector<Axis> out;
  for (const Axis& inner : axes) {
    if (!out.empty() && out.back().to == inner.to * inner.size &&
        out.back().from == inner.from * inner.size)
      out.back() = {out.back().size * inner.size, inner.to, inner.from};
    else
      out.push_back(inner);
  }
  return out;
}

// One per context, compiled at first use and kept as long as the context.
CUfunction copy_function(const Context& c) {
  static std::mutex mutex;
  static std::map<std::uint64_t, CUmodule> modules;
  const std::scoped_lock lock(mutex);
  CUmodule& module = modules[c.id()];
  const Scope scope(c);
  if (!module) HONE_CUDA(cuModuleLoadData, &module, strided_copy_ptx);
  CUfunction out = nullptr;
  HONE_CUDA(cuModuleGetFunction, &out, module, "strided_copy");
  return out;
}

}  // namespace

CudaCopy::CudaCopy(std::shared_ptr<Context> context, const StridedCopy& c)
    : context_(std::move(context)) {
  context_->refuse_if_lost();
  std::vector<Axis> axes = joined(c);
  axes_.count = 1;
  for (const Axis& a : axes) axes_.count *= a.size;
  const auto element = static_cast<std::int64_t>(c.element_bytes);
  const bool is_plain =
      axes.empty() || (axes.size() == 1 && axes[0].to == element && axes[0].from == element);
  if (axes_.count == 0) return;
  if (is_plain) {
    contiguous_bytes_ = static_cast<std::size_t>(axes_.count) * c.element_bytes;
    return;
  }
  std::size_t unit = c.element_bytes;
  if (unit != 1 && unit != 2 && unit != 4 && unit != 8) {
    axes.push_back({element, 1, 1});
    axes_.count *= element;
    unit = 1;
  }
  if (axes.size() > CopyAxes::most)
    throw UserError("cuda: a copy of ", axes.size(), " axes, at most ", CopyAxes::most,
                    " are possible; reshape the tensor");
  axes_.axes = static_cast<int>(axes.size());
  axes_.element_bytes = static_cast<int>(unit);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes_.dims[i] = axes[i].size;
    axes_.to[i] = axes[i].to;
    axes_.from[i] = axes[i].from;
  }
  function_ = copy_function(*context_);
}

void CudaCopy::run(std::span<const CUdeviceptr> operands, CUstream stream) const {
  CUdeviceptr from = operands[0], to = operands[1];
  if (axes_.count == 0) return;
  if (contiguous_bytes_ > 0) {
    context_->check(driver().cuMemcpyDtoDAsync(to, from, contiguous_bytes_, stream),
                    "cuMemcpyDtoDAsync");
    return;
  }
  constexpr long long threads = 256, most_blocks = 1 << 20;
  const long long blocks = std::min((axes_.count + threads - 1) / threads, most_blocks);
  CopyAxes axes = axes_;
  void* arguments[] = {&to, &from, &axes};
  context_->check(driver().cuLaunchKernel(function_, static_cast<unsigned>(blocks), 1, 1, threads,
                                          1, 1, 0, stream, arguments, nullptr),
                  "cuLaunchKernel", "strided copy");
}

}  // namespace hone::cuda
