// Runs all or some chunks of a launch on the caller's thread, forwards or backwards. Checks run a
// candidate's kernels on it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "kernel/kernel.h"

namespace hone {

class Chunks final : public ThreadPool {
 public:
  // some: the first, the last and one of every `apart` between.
  enum class Which : std::uint8_t { all, some };
  // As one thread does, or from the last to the first, if all run also two or three together,
  // alternating between two thread numbers.
  enum class Order : std::uint8_t { forwards, backwards };

  explicit Chunks(std::int64_t apart) : apart_(apart) {}
  void set(Which which, Order order) {
    which_ = which;
    order_ = order;
    packing_.reset();
  }
  // Until the next set(), the candidate's packing kernel runs only the chunks whose results are
  // read by the chunks of its other kernel that Which::some runs. False if these are unknown; then
  // all chunks run.
  bool pack_for_some(const Candidate&);
  bool were_several() const { return were_several_; }
  int threads() const override { return 2; }
  void run(std::int64_t chunks, Body body, void* context) override;

 private:
  bool is_some(std::int64_t i, std::int64_t chunks) const {
    return i == 0 || i == chunks - 1 || i % apart_ == 2;
  }

  std::int64_t apart_;
  Which which_ = Which::all;
  Order order_ = Order::forwards;
  std::optional<std::vector<bool>> packing_;  // per chunk of the packing kernel: whether it runs
  bool were_several_ = false;
};

// Whether no part of the candidate reads results of an earlier part.
bool is_one_launch(const Candidate&);

}  // namespace hone
