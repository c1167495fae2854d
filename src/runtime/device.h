// One open machine: memory, loaded programs, and streams that run work in order. Knows no plan; the
// session translates steps into these calls. Memory is a handle and an offset: what lies behind
// only the device knows.
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

// A byte of an allocation. Not a pointer, unless the device says so (Device::host_address).
struct DeviceMemory {
  std::uint64_t handle = 0;  // of the allocation; 0: none
  std::int64_t offset = 0;

  explicit operator bool() const { return handle != 0; }
  bool operator==(const DeviceMemory&) const = default;
  DeviceMemory operator+(std::int64_t bytes) const { return {handle, offset + bytes}; }
};

// What the session has to know of a device.
struct DeviceLimits {
  // Allocations start at multiples of it, and kernels expect that of their buffers.
  std::size_t alignment = 64;
  // A step below both is less work than handing it out to several threads.
  std::int64_t small_bytes = 0, small_flops = 0;
  // Of f32 and f64. Else its arithmetic may take them for zeros (docs/numbers.md).
  bool keeps_denormals = true;
};

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

// The bytes that a kernel uses of an operand, counted from where the operand starts.
struct OperandReach {
  std::int64_t begin = 0, end = 0;  // begin < 0: a stride is negative
  bool is_written = false;          // it may be read, too
};

struct Launch {
  ProgramEntry entry{};
  std::span<const DeviceMemory> operands;
  const std::int64_t* sizes = nullptr;
  std::int64_t chunks = 1;                           // iterations of the kernel's grid
  std::uint32_t group_threads = 1, group_bytes = 0;  // of one iteration
  std::size_t scratch_bytes = 0;                     // of each thread
  bool is_small = false;                             // below the limits of the device
  // Per operand, for devices that run launches at once; empty: not known.
  std::span<const OperandReach> reaches = {};
};

// A copy of elements between buffers of one device that do not overlap.
struct StridedCopy {
  std::size_t element_bytes = 1;
  std::vector<std::int64_t> dims, to_strides, from_strides;  // strides in bytes
};

// What a library function is asked to do.
struct CallOperand {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims, strides;  // strides in elements
  bool is_written = false;
};
// A setting: refuse what the library computes with a reference implementation only.
inline constexpr std::string_view fast_only = "fast_only";
using CallSettings = std::vector<std::pair<std::string, std::int64_t>>;
struct CallRequest {
  std::string_view name;  // LIBRARY.FUNCTION
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

// A library function or strided copy made ready for operands of given sizes. Belongs to the device
// that made it.
class BoundCall {
 public:
  virtual ~BoundCall() = default;
  virtual std::size_t scratch_bytes() const { return 0; }  // per thread
};

// A point in the work of a stream.
class Event {
 public:
  virtual ~Event() = default;
  // Returns when the work before the point that was recorded last is finished; at once when none
  // was.
  virtual void synchronize() = 0;
  // What the device itself measured from the other event's point to this one's. Both are made to
  // have a time, by the same device, and their work is finished. Nothing on devices without a
  // clock.
  virtual std::optional<double> ms_since(const Event&) const { return std::nullopt; }
};

// Work of a stream that was recorded instead of done. Belongs to that stream.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work of one session, in order; calls may return before it is done. Belongs to one thread at a
// time. What fails while work is done is thrown by a later synchronize().
class Stream {
 public:
  virtual ~Stream() = default;
  // Makes room for kernels that need so much scratch per thread; never shrinks.
  virtual void reserve_scratch(std::size_t bytes_per_thread) = 0;
  virtual int threads() const = 0;

  // The host's bytes are used until the stream has passed the call.
  virtual void upload(DeviceMemory to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, DeviceMemory from) = 0;
  // Within the memory of this device, between places that do not overlap.
  virtual void copy(DeviceMemory to, DeviceMemory from, std::size_t bytes) = 0;
  virtual void fill(DeviceMemory to, std::byte value, std::size_t bytes) = 0;
  // Sizes and operands are read before the call returns.
  virtual void launch(const Launch&) = 0;
  // Throws UserError on a device without calls of its own.
  virtual void call(const BoundCall&, std::span<const DeviceMemory> operands, bool is_small) = 0;

  // An event that this stream's device made.
  virtual void record(Event&) = 0;
  // An event of any device: what follows begins after its point.
  virtual void wait(Event&) = 0;
  // From here on launches, calls, copies and fills are recorded instead of done. False on devices
  // that do not record.
  virtual bool start_recording() { return false; }
  // Null when something cannot be recorded; then none of it was done.
  virtual std::unique_ptr<Recording> finish_recording() { return nullptr; }
  // The recorded work, with the operands that it was recorded with.
  virtual void replay(const Recording&) {}
  // Returns when all work is finished; throws what a part of it failed with.
  virtual void synchronize() = 0;
};

// Where memory of a run comes from; users may give their own. May be used by several threads.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At a multiple of the device's alignment. Throws UserError when there is not so much memory.
  virtual DeviceMemory alloc(std::size_t bytes) = 0;
  virtual void free(DeviceMemory, std::size_t bytes) noexcept = 0;
};

// May be used by several threads.
class Device : public Allocator {
 public:
  // Of the lists of backends.
  virtual std::string_view name() const = 0;
  // What the machine has, for messages; a target that it runs.
  virtual std::string description() const = 0;
  virtual const DeviceLimits& limits() const = 0;
  // Which of two targets is the better one: -1 when this machine cannot run it, else larger is
  // wider. "any" is 0.
  virtual int rank(std::string_view target) const = 0;

  // Whether its memory is the host's: the host reads and writes it without a stream, and a
  // caller's memory may be used where it lies. Then host_address() and of_host() give the same
  // place for both.
  virtual bool shares_host_memory() const { return false; }
  // Null without shared memory.
  virtual std::byte* host_address(DeviceMemory) const { return nullptr; }
  // Nothing for memory that is not aligned or, without shared memory, not on this device.
  virtual std::optional<DeviceMemory> of_host(const void*) const { return std::nullopt; }

  // What a plan runs on this device, as one program. Kernels of all binaries must have different
  // names.
  virtual std::unique_ptr<Program> load(std::span<const Binary* const>, std::string_view where) = 0;
  // Opens the library; why its functions cannot be called here, empty when they can.
  virtual std::string why_missing(std::string_view library) = 0;
  // Throws UserError when the function is not known here or cannot do this.
  virtual std::unique_ptr<BoundCall> bind(const CallRequest&);
  // Empty: the call's constants are best kept as they are.
  virtual std::optional<Packing> packing(const CallRequest&) { return std::nullopt; }
  // Its operands are source and target.
  virtual std::unique_ptr<BoundCall> bind(const StridedCopy&) = 0;
  virtual std::unique_ptr<Event> make_event(bool has_time = false) = 0;
  // On a device whose work the host's threads do, it is divided between the pool's; without one the
  // caller's does it. Scratch comes from the allocator, null: the device.
  virtual std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool> = nullptr,
                                              std::shared_ptr<Allocator> = nullptr) = 0;
};

// Owns one allocation.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  OwnedMemory(std::shared_ptr<Allocator> allocator, std::size_t bytes);
  ~OwnedMemory();
  OwnedMemory(OwnedMemory&&) noexcept;
  OwnedMemory& operator=(OwnedMemory&&) noexcept;

  DeviceMemory at() const { return at_; }
  std::size_t size() const { return size_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  DeviceMemory at_;
  std::size_t size_ = 0;
};

}  // namespace hone
