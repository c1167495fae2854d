// Strided copies on the processor.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/device/call.h"

namespace hone {

// Merges axes where the strides allow, orders them by the destination, and splits the copy into
// chunks.
class CpuCopy final : public CpuCall {
 public:
  explicit CpuCopy(const StridedCopy&);

  std::int64_t chunks() const override { return chunks_; }
  void run(void* const* operands, std::int64_t begin, std::int64_t end, void*) const override;

 private:
  struct Axis {
    std::int64_t size = 1, to = 0, from = 0;  // strides in bytes
  };
  void join_axes();
  void split_row();
  void copy_row(std::byte* to, const std::byte* from) const;

  std::int64_t element_ = 1;
  std::vector<Axis> axes_;  // outer to inner
  Axis row_;                // the innermost; in bytes if contiguous
  std::int64_t rows_ = 1, rows_per_chunk_ = 1, chunks_ = 0;
};

}  // namespace hone
