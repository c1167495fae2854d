// One open machine: memory, loaded programs, and streams that run work in order. Knows no plan; the
// session translates steps into these calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "plan/binary.h"
#include "type/dtype.h"

namespace hone {

// Device memory and caller buffers start at multiples of this; kernels may rely on it.
inline constexpr std::size_t buffer_alignment = 64;

// A kernel within a program, as the device that loaded it knows it.
enum class ProgramEntry : std::uintptr_t {};

// Loaded code. Its entries live as long as it does.
class Program {
 public:
  virtual ~Program() = default;
  // Throws UserError when there is none of that name.
  virtual ProgramEntry entry(std::string_view name) const = 0;
  virtual std::size_t bytes() const = 0;
};

struct Launch {
  ProgramEntry entry{};
  void* const* buffers = nullptr;
  const std::int64_t* sizes = nullptr;
  std::int64_t chunks = 1;
  std::size_t scratch_bytes = 0;  // of each thread
  bool is_small = false;          // too little work to hand out to other threads
};

// A copy of elements between buffers that do not overlap.
struct StridedCopy {
  std::size_t element_bytes = 1;
  std::vector<std::int64_t> dims, to_strides, from_strides;  // strides in bytes
};

// What a library or host function is asked to do.
struct CallOperand {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims, strides;  // strides in elements
  bool is_written = false;
};
using CallSettings = std::vector<std::pair<std::string, std::int64_t>>;
struct CallRequest {
  std::string_view name;  // "onednn.matmul"
  std::span<const CallOperand> operands;
  std::span<const std::pair<std::string, std::int64_t>> settings;

  std::int64_t setting(std::string_view key, std::int64_t fallback) const;
};

// How a library wants a constant operand: as `bytes` that a call of `pack_name`, with the constant
// and them as operands, writes once. The call that reads them has more settings.
struct Packing {
  std::size_t operand = 0;
  std::size_t bytes = 0;
  std::int64_t form = 0;  // equal when the bytes would be
  CallSettings settings;  // to add
  std::string pack_name;
  CallSettings pack_settings;
};

// A library or host function made ready for operands of given sizes. Its chunks may be computed at
// once and in any order; the partition into chunks depends on the sizes alone.
class BoundCall {
 public:
  virtual ~BoundCall() = default;
  virtual std::int64_t chunks() const { return 1; }
  virtual std::size_t scratch_bytes() const { return 0; }  // per thread
  virtual void run(void* const* operands, std::int64_t begin, std::int64_t end,
                   void* scratch) const = 0;
};

// Work of one session, in order. Belongs to one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  // Makes room for kernels that need so much scratch per thread; never shrinks.
  virtual void reserve_scratch(std::size_t bytes_per_thread) = 0;
  virtual int threads() const = 0;
  virtual void launch(const Launch&) = 0;
  virtual void call(const BoundCall&, void* const* operands, bool is_small) = 0;
  virtual void wait() = 0;
};

// Where memory of a run comes from; users may give their own. May be used by several threads.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At a multiple of buffer_alignment. Throws UserError when there is not so much memory.
  virtual std::byte* alloc(std::size_t bytes) = 0;
  virtual void free(std::byte*, std::size_t bytes) noexcept = 0;
};

// May be used by several threads.
class Device : public Allocator {
 public:
  virtual std::string_view name() const = 0;
  // What the machine has, for messages: "x86-64-v4".
  virtual std::string description() const = 0;
  // Which of two targets is the better one: -1 when this machine cannot run it, else larger is
  // wider. "any" is 0.
  virtual int rank(std::string_view target) const = 0;

  virtual void upload(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const std::byte* from) = 0;

  // Kernels of all binaries must have different names.
  virtual std::unique_ptr<Program> load(std::span<const Binary>, std::string_view where) = 0;
  // Throws UserError when the function is not known here or cannot do this.
  virtual std::unique_ptr<BoundCall> bind(const CallRequest&) = 0;
  // Empty: the call's constants are best kept as they are.
  virtual std::optional<Packing> packing(const CallRequest&) = 0;
  // Its operands are source and target.
  virtual std::unique_ptr<BoundCall> bind(const StridedCopy&) = 0;
  // Work is divided between the pool's threads, scratch comes from the allocator.
  virtual std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool>,
                                              std::shared_ptr<Allocator>) = 0;
};

// Owns one allocation.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  OwnedMemory(std::shared_ptr<Allocator> allocator, std::size_t bytes);
  ~OwnedMemory();
  OwnedMemory(OwnedMemory&&) noexcept;
  OwnedMemory& operator=(OwnedMemory&&) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hone
