// A caller's CUstream and CUevent, through the driver's interface. Needs a GPU.
#if __has_include(<cuda.h>)
#include <cstring>

#include "backend/cuda/driver/driver.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "runtime/device_tensor.h"
#include "runtime/dlpack.h"
#include "test/backend/conformance.h"

namespace hone::test {

namespace {

using cuda::driver;

// Large enough that its copies take longer than it takes to submit what must wait for them.
constexpr std::int64_t wide_count = 8 << 20;
const std::vector<std::int64_t> wide_dims = {wide_count};

// The primary context on this thread, and streams and events of the caller's in it.
class Caller {
 public:
  explicit Caller(int ordinal) {
    HONE_CUDA(cuDeviceGet, &device_, ordinal);
    CUcontext context = nullptr;
    HONE_CUDA(cuDevicePrimaryCtxRetain, &context, device_);
    HONE_CUDA(cuCtxPushCurrent, context);
    for (CUstream& s : streams) HONE_CUDA(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    for (CUevent& e : events) HONE_CUDA(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
  }
  ~Caller() {
    for (CUevent e : events) driver().cuEventDestroy(e);
    for (CUstream s : streams) driver().cuStreamDestroy(s);
    CUcontext old = nullptr;
    driver().cuCtxPopCurrent(&old);
    driver().cuDevicePrimaryCtxRelease(device_);
  }
  CUstream streams[2] = {};
  CUevent events[2] = {};

 private:
  CUdevice device_ = 0;
};

Function wide_and_scaled() {
  Function f;
  const Value x = f.add_param(f32({wide_count}), "x");
  f.add_result(x * 2.0 + 1.0, "y");
  return f;
}

}  // namespace

TEST_P(BackendConformance, ACallersCudaStreamAndEventsGiveTheOrder) {
  if (GetParam().name != "cuda") GTEST_SKIP() << "for CUDA only";
  const auto executable = Executable::load(compiled(wide_and_scaled()), device_);
  DeviceTensor x(device_, DType::f32, wide_dims), y(device_, DType::f32, wide_dims);
  const RawMemory raw = *device_->address_of(x.ref().at), raw_y = *device_->address_of(y.ref().at);
  EXPECT_EQ(raw.device_type, dlpack::dl_cuda);
  EXPECT_EQ(device_->of_address(raw), x.ref().at);
  int of_host = 0;
  EXPECT_FALSE(device_->of_address({&of_host, dlpack::dl_cuda, raw.ordinal}));
  Caller caller(raw.ordinal);
  const auto at = reinterpret_cast<CUdeviceptr>(raw.address),
             at_y = reinterpret_cast<CUdeviceptr>(raw_y.address);
  // Bytes 0x3f give 0.747..., bytes 0x40 give 3.003...
  const auto number = [](unsigned char byte) {
    const unsigned char all[4] = {byte, byte, byte, byte};
    float out = 0;
    std::memcpy(&out, all, 4);
    return out;
  };
  std::vector<float> got(wide_count);
  const auto bytes = static_cast<std::size_t>(wide_count) * 4;
  // On the caller's stream: its own work before and after, no wait of the session between. Replayed
  // from the third run on; the default stream, too.
  for (CUstream stream : {caller.streams[0], CUstream(nullptr)}) {
    Session s(executable, {.threads = 1, .stream = device_->adopt_stream(stream)});
    s.bind_input(0, x);
    s.bind_output(0, y);
    for (int i = 0; i < 6; ++i) {
      const auto byte = static_cast<unsigned char>(0x3c + i);
      HONE_CUDA(cuMemsetD8Async, at, byte, bytes, stream);
      s.run();
      HONE_CUDA(cuMemcpyDtoHAsync, got.data(), at_y, bytes, stream);
      HONE_CUDA(cuStreamSynchronize, stream);
      ASSERT_EQ(got.front(), number(byte) * 2 + 1);
      ASSERT_EQ(got.back(), number(byte) * 2 + 1);
    }
    EXPECT_EQ(s.counters().replays, 4);
    s.wait();
  }
  // Two streams of the caller's, put in order by his events; the session's own stream the same way.
  for (const bool is_own : {false, true}) {
    SessionOptions options{.threads = 1};
    if (!is_own) options.stream = device_->adopt_stream(caller.streams[0]);
    Session s(executable, options);
    s.bind_input(0, x);
    s.bind_output(0, y);
    const auto ready = device_->adopt_event(caller.events[0]),
               done = device_->adopt_event(caller.events[1]);
    for (int i = 0; i < 6; ++i) {
      const auto byte = static_cast<unsigned char>(0x3c + i);
      for (int k = 0; k < 8; ++k)  // keeps the stream busy
        HONE_CUDA(cuMemsetD8Async, at, k == 7 ? byte : 0, bytes, caller.streams[1]);
      HONE_CUDA(cuEventRecord, caller.events[0], caller.streams[1]);
      s.wait_for(*ready);
      s.run();
      s.record(*done);
      HONE_CUDA(cuStreamWaitEvent, caller.streams[1], caller.events[1], 0);
      HONE_CUDA(cuMemcpyDtoHAsync, got.data(), at_y, bytes, caller.streams[1]);
      HONE_CUDA(cuStreamSynchronize, caller.streams[1]);
      ASSERT_EQ(got.front(), number(byte) * 2 + 1) << i;
      ASSERT_EQ(got.back(), number(byte) * 2 + 1) << i;
    }
    s.wait();
  }
  // Memory of the GPU through DLPack, in both directions.
  dlpack::VersionedManaged* managed = dlpack::given(y);
  EXPECT_EQ(managed->tensor.data, raw_y.address);
  EXPECT_EQ(managed->tensor.device.type, dlpack::dl_cuda);
  {
    const DeviceTensor again = dlpack::taken(*executable, managed);
    EXPECT_EQ(again.ref().at, y.ref().at);
    Session s(executable, {.threads = 1});
    s.bind_input(0, x);
    s.bind_output(0, again);
    s.run();
    EXPECT_EQ(s.counters().staged_copies, 0);
  }
  EXPECT_NE(refusal([&] { device_->adopt_event(nullptr); }).find("the event is null"),
            std::string::npos);
}

}  // namespace hone::test
#endif
