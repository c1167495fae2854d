// One open machine: memory, loaded programs, and streams that run work in order. Knows no plan; the
// session translates steps into these calls. Memory is a handle and an offset, whose meaning only
// the device knows.
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

// An address as other libraries of this process pass it, and its device in DLPack's numbers
// (runtime/dlpack.h).
struct RawMemory {
  void* address = nullptr;
  std::int32_t device_type = 0, ordinal = 0;
};

// What the session needs to know about a device.
struct DeviceLimits {
  // Of allocations; kernels expect it of their buffers.
  std::size_t alignment = 64;
  // Dividing a step below both among threads would cost more than the step itself.
  std::int64_t small_bytes = 0, small_flops = 0;
  // Of f32 and f64. If false, its arithmetic may treat them as zeros (docs/numbers.md).
  bool keeps_denormals = true;
};

// Handle of a kernel in a program; only the device that loaded it can interpret it.
enum class KernelHandle : std::uintptr_t {};

// Loaded code. Its entries live as long as it does.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  // Throws UserError when no entry has that name.
  virtual KernelHandle entry(std::string_view name) const = 0;
  virtual std::size_t bytes() const = 0;
};

// The bytes that a kernel accesses, relative to the start of the operand.
struct OperandReach {
  std::int64_t begin = 0, end = 0;  // begin < 0: a stride is negative
  bool is_written = false;          // may also be read
};

struct Launch {
  KernelHandle entry{};
  std::span<const DeviceMemory> operands;
  const std::int64_t* sizes = nullptr;
  std::int64_t chunks = 1;                           // iterations of the kernel's grid
  std::uint32_t group_threads = 1, group_bytes = 0;  // for one iteration
  std::size_t scratch_bytes = 0;                     // per thread
  bool is_small = false;                             // below the limits of the device
  // Per operand, for devices that run launches concurrently; empty: unknown.
  std::span<const OperandReach> reaches = {};
};

// A copy of elements between buffers of one device that do not overlap.
struct StridedCopy {
  std::size_t element_bytes = 1;
  std::vector<std::int64_t> dims, to_strides, from_strides;  // strides in bytes
};

// One operand of a library call.
struct CallOperand {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims, strides;  // strides in elements
  bool is_written = false;
};
// A setting: refuse calls that the library computes only with a reference implementation.
inline constexpr std::string_view fast_only = "fast_only";
using CallSettings = std::vector<std::pair<std::string, std::int64_t>>;
struct CallRequest {
  std::string_view name;  // LIBRARY.FUNCTION
  std::span<const CallOperand> operands;
  std::span<const std::pair<std::string, std::int64_t>> settings;

  std::int64_t setting(std::string_view key, std::int64_t fallback) const;
};

// The form in which a library reads a constant operand: `bytes` bytes, written once by a call of
// `pack_name` whose operands are the constant and these bytes. The call that reads them needs
// `settings` in addition.
struct Packing {
  std::size_t operand = 0;
  std::size_t bytes = 0;
  std::int64_t form = 0;  // equal forms have equal bytes
  CallSettings settings;  // to add
  std::string pack_name;
  CallSettings pack_settings;
};

// A library function or strided copy that is prepared for operands of given sizes. Belongs to the
// device that made it.
class BoundCall {
 public:
  virtual ~BoundCall() = default;
  virtual std::size_t scratch_bytes() const { return 0; }  // per thread
};

// A point in the sequence of a stream's work.
class Event {
 public:
  virtual ~Event() = default;
  // Waits for all work before the point that was recorded last; returns at once when none was
  // recorded.
  virtual void synchronize() = 0;
  // Time from the other event's point to this one's, measured by the device. Both events must be
  // made by the same device with `has_time`, and their work must be finished. Empty on devices
  // without a clock.
  virtual std::optional<double> ms_since(const Event&) const { return std::nullopt; }
};

// Work of a stream that was recorded instead of executed. Belongs to that stream. May be destroyed
// only when no replay is unfinished.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work in order; calls may return before it is done. Belongs to one thread at a time. Several
// sessions may use one. An error in this work is thrown by a later synchronize().
class Stream {
 public:
  virtual ~Stream() = default;
  // Ensures at least this much scratch for kernels; never shrinks.
  virtual void reserve_scratch(std::size_t bytes_per_thread) = 0;
  virtual int threads() const = 0;

  // `from` must stay valid until the stream has executed the copy.
  virtual void upload(DeviceMemory to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, DeviceMemory from) = 0;
  // Within the memory of this device; the ranges must not overlap.
  virtual void copy(DeviceMemory to, DeviceMemory from, std::size_t bytes) = 0;
  virtual void fill(DeviceMemory to, std::byte value, std::size_t bytes) = 0;
  // Sizes and operands are read before the call returns.
  virtual void launch(const Launch&) = 0;
  // Throws UserError on a device without calls of its own.
  virtual void call(const BoundCall&, std::span<const DeviceMemory> operands, bool is_small) = 0;

  // The event must be made by this stream's device.
  virtual void record(Event&) = 0;
  // An event of any device: later work of this stream starts after its point.
  virtual void wait(Event&) = 0;
  // From here on, launches, calls, copies and fills are recorded instead of executed. False on
  // devices that cannot record.
  virtual bool start_recording() { return false; }
  // Null when something cannot be recorded; then nothing was executed.
  virtual std::unique_ptr<Recording> finish_recording() { return nullptr; }
  // Executes the recorded work with the operands that it was recorded with.
  virtual void replay(const Recording&) {}
  // Waits for all work; throws its error if any part failed.
  virtual void synchronize() = 0;
};

// Provides the memory of runs; users may supply their own. May be used by several threads.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At a multiple of the device's alignment. Throws UserError when there is not enough memory.
  virtual DeviceMemory alloc(std::size_t bytes) = 0;
  virtual void free(DeviceMemory, std::size_t bytes) noexcept = 0;
};

// May be used by several threads.
class Device : public Allocator {
 public:
  // A name from the lists of backends.
  virtual std::string_view name() const = 0;
  // The hardware, for messages; and a target that it runs.
  virtual std::string description() const = 0;
  virtual const DeviceLimits& limits() const = 0;
  // Orders targets: -1 when this machine cannot run it, else larger is better (wider). "any" is 0.
  virtual int rank(std::string_view target) const = 0;

  // Whether its memory is the host's: the host reads and writes it without a stream, and a caller's
  // memory may be used in place. Then host_address() and of_host() convert between the two.
  virtual bool shares_host_memory() const { return false; }
  // Null without shared memory.
  virtual std::byte* host_address(DeviceMemory) const { return nullptr; }
  // Empty for memory that is not aligned or, without shared memory, not on this device.
  virtual std::optional<DeviceMemory> of_host(const void*) const { return std::nullopt; }

  // Whether the other object's memory is this one's: two objects may stand for one machine.
  virtual bool shares_memory_with(const Device& other) const { return this == &other; }
  // The same byte, such that aliases are visible: bytes with equal handles are as far apart as
  // their offsets, bytes with different handles are in different allocations.
  virtual DeviceMemory comparable(DeviceMemory m) const { return m; }
  // Empty on a device whose memory has no addresses that other libraries know.
  virtual std::optional<RawMemory> address_of(DeviceMemory) const { return std::nullopt; }
  // Of any alignment. Empty if the address is not in this device's memory. The address alone counts
  // when the device type is 0.
  virtual std::optional<DeviceMemory> of_address(const RawMemory&) const { return std::nullopt; }

  // Loads all binaries that a plan runs on this device as one program. Kernel names must be unique
  // across the binaries.
  virtual std::unique_ptr<LoadedCode> load(std::span<const Binary* const>,
                                           std::string_view where) = 0;
  // Opens the library. Returns why its functions cannot be called here; empty when they can.
  virtual std::string why_missing(std::string_view library) = 0;
  // Throws UserError when the function is unknown or cannot do this.
  virtual std::unique_ptr<BoundCall> bind(const CallRequest&);
  // Empty: the call's constants need no packing.
  virtual std::optional<Packing> packing(const CallRequest&) { return std::nullopt; }
  // Its operands are source and target.
  virtual std::unique_ptr<BoundCall> bind(const StridedCopy&) = 0;
  virtual std::unique_ptr<Event> make_event(bool has_time = false) = 0;
  // On a device whose work runs on host threads, the pool's threads share it; without a pool the
  // caller's thread does it. Scratch comes from the allocator; null: from the device.
  virtual std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool> = nullptr,
                                              std::shared_ptr<Allocator> = nullptr) = 0;
  // The caller's own stream or event of the device's interface, which must live longer; neither is
  // destroyed with the result: a CUstream (null: the default stream) or CUevent of the primary
  // context. Throw UserError on devices whose interface has none.
  virtual std::shared_ptr<Stream> adopt_stream(void* native);
  virtual std::unique_ptr<Event> adopt_event(void* native);
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
