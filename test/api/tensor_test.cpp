// Tensors of the C interface and DLPack: what lies where, and who frees it when.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "api/hone.h"
#include "api/runtime/runtime.h"

// As a caller's dlpack.h has them.
struct DLTensorOfTest {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensorOfTest dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensorOfTest dl_tensor;
};

namespace hone::tensor_test {
namespace {

namespace fs = std::filesystem;

// A producer of tensors; it counts what comes back to it.
struct Producer {
  std::vector<float> data = std::vector<float>(64);
  std::vector<int64_t> shape, strides;
  int freed = 0;

  template <class M>
  M* make(std::vector<int64_t> dims, std::vector<int64_t> steps = {}) {
    shape = std::move(dims);
    strides = std::move(steps);
    auto* m = new M{};
    m->dl_tensor.data = data.data();
    m->dl_tensor.device = {1, 0};
    m->dl_tensor.ndim = static_cast<int32_t>(shape.size());
    m->dl_tensor.dtype = {2, 32, 1};
    m->dl_tensor.shape = shape.data();
    m->dl_tensor.strides = strides.empty() ? nullptr : strides.data();
    m->manager_ctx = this;
    m->deleter = [](M* gone) {
      ++static_cast<Producer*>(gone->manager_ctx)->freed;
      delete gone;
    };
    return m;
  }
  DLManagedTensorVersioned* versioned(std::vector<int64_t> dims, std::vector<int64_t> steps = {}) {
    auto* m = make<DLManagedTensorVersioned>(std::move(dims), std::move(steps));
    m->version = {1, 1};
    return m;
  }
};

// y = 2 x + 1 over f32[2,n].
class TensorApi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = fs::temp_directory_path() / cat("hone_tensor_test_", ::getpid());
    fs::create_directories(directory_);
    Builder b;
    Value x = b.input(f32({2, Dim::symbol("n", 0, 64)}), "x");
    b.output(x * 2.0 + 1.0, "y");
    CompileOptions options{.strategy = "cpu"};
    options.cache = false;
    write_plan(file(), compile(source(b.function(), "scaled"), options));
  }
  static void TearDownTestSuite() { fs::remove_all(directory_); }
  static std::string file() { return (directory_ / "scaled.hone").string(); }
  static fs::path directory_;
};
fs::path TensorApi::directory_;

std::string said(const std::function<void()>& f) {
  try {
    f();
  } catch (const runtime::Error& e) {
    return e.what();
  }
  return "accepted";
}

void expect_says(const std::string& text, std::string_view part, int line) {
  EXPECT_NE(text.find(part), std::string::npos) << "line " << line << ": " << text;
}
#define EXPECT_SAYS(text, part) expect_says(text, part, __LINE__)

TEST_F(TensorApi, AreMadeReadWrittenAndBound) {
  runtime::Executable executable(file());
  runtime::Tensor x(executable, HONE_F32, {2, 3}), y(executable, HONE_F32, {2, 3}),
      z(executable, HONE_F32, {2, 3}, true);
  std::vector<float> values = {1, 2, 3, 4, 5, 6}, got(6, -1);
  x.read(got);
  EXPECT_EQ(got, std::vector<float>(6, 0));
  x.write(values);
  const hone_tensor_layout layout = x.layout();
  EXPECT_EQ(layout.dtype, HONE_F32);
  EXPECT_EQ(layout.rank, 2);
  EXPECT_EQ(layout.dims[1], 3);
  EXPECT_EQ(layout.strides[0], 3);
  EXPECT_EQ(layout.bytes, 24u);
  EXPECT_STREQ(layout.device, "cpu");
  EXPECT_EQ(static_cast<const float*>(layout.data)[5], 6);
  runtime::Session first(executable), second(executable);
  first.bind_input(0, x);
  first.bind_output(0, y);
  second.bind_input(0, y);
  second.bind_output(0, z);
  first.run();
  second.run();
  z.read(got);
  EXPECT_EQ(got[5], 4 * 6 + 3);
  EXPECT_EQ(first.traffic().uploaded, 0u);
  // The caller's own memory, in another order.
  std::vector<float> transposed = {1, 4, 2, 5, 3, 6};
  runtime::Tensor view(HONE_F32, {2, 3}, transposed, {1, 2});
  first.bind_input(0, view);
  first.run();
  y.read(got);
  EXPECT_EQ(got, (std::vector<float>{3, 5, 7, 9, 11, 13}));
  EXPECT_SAYS(said([&] { x.read(transposed.empty() ? got : std::span(got).first(5)); }),
              "has 24 bytes, but the memory has 20");
  EXPECT_SAYS(said([&] { runtime::Tensor(executable, HONE_F32, {2, -3}); }), "has size -3");
  EXPECT_SAYS(said([&] { runtime::Tensor(HONE_F32, {2, 4}, transposed); }),
              "24 bytes of memory, expected 32");
  EXPECT_SAYS(said([&] { first.bind_input(1, x); }), "input 1 does not exist");
  EXPECT_SAYS(said([&] { runtime::Session(executable, {.on_stream = true}); }),
              "device 'cpu' has no streams");
  EXPECT_SAYS(said([&] { first.wait_event(nullptr); }), "device 'cpu' has no events");
  EXPECT_SAYS(said([&] { first.record_event(nullptr); }), "device 'cpu' has no events");
}

TEST_F(TensorApi, TakenFromDlpackAreGivenBackOnce) {
  Producer p;
  for (std::size_t i = 0; i < 64; ++i) p.data[i] = static_cast<float>(i);
  std::vector<float> y(6);
  // By the handle.
  {
    runtime::Executable executable(file());
    runtime::Tensor t(executable, p.versioned({2, 3}));
    EXPECT_EQ(t.layout().data, p.data.data());
    EXPECT_EQ(p.freed, 0);
  }
  EXPECT_EQ(p.freed, 1);
  // By the session, after handle and executable are gone.
  {
    std::optional<runtime::Executable> executable(std::in_place, file());
    runtime::Session s(*executable);
    {
      DLManagedTensorVersioned* m = p.versioned({2, 3}, {8, 2});
      m->dl_tensor.byte_offset = 4;
      runtime::Tensor t(*executable, m);
      s.bind_input(0, t);
    }
    executable.reset();
    s.bind_output(0, {2, 3}, y);
    s.run();
    EXPECT_EQ(y, (std::vector<float>{3, 7, 11, 19, 23, 27}));
    EXPECT_EQ(p.freed, 1);
  }
  EXPECT_EQ(p.freed, 2);
  // By binding something else; the older form.
  runtime::Executable executable(file());
  runtime::Session s(executable);
  s.bind_input(0, runtime::Tensor(executable, p.make<DLManagedTensor>({2, 3})));
  EXPECT_EQ(p.freed, 2);
  EXPECT_SAYS(said([&] { s.bind_input(0, runtime::Tensor(executable, p.versioned({3, 2}))); }),
              "expected 2");
  EXPECT_EQ(p.freed, 3) << "the refused one";
  std::vector<float> x(6);
  s.bind_input(0, {2, 3}, x);
  EXPECT_EQ(p.freed, 4);
  // Without a deleter, without elements, without axes.
  DLManagedTensorVersioned* kept = p.versioned({2, 3});
  const auto deleter = std::exchange(kept->deleter, nullptr);
  {
    runtime::Tensor t(executable, kept);
  }
  deleter(kept);
  DLManagedTensorVersioned* empty = p.versioned({2, 0});
  empty->dl_tensor.data = nullptr;
  runtime::Tensor nothing(executable, empty), scalar(executable, p.versioned({}));
  s.bind_input(0, nothing);
  s.bind_output(0, nothing);
  s.run();
  EXPECT_EQ(scalar.layout().bytes, 4u);
}

TEST_F(TensorApi, OfDlpackThatCannotBeUsedAreRefusedAndStayTheCallers) {
  runtime::Executable executable(file());
  Producer p;
  const auto refused = [&](const auto& change) {
    DLManagedTensorVersioned* m = p.versioned({2, 3});
    change(*m);
    const int before = p.freed;
    const std::string text = said([&] { runtime::Tensor(executable, m); });
    EXPECT_EQ(p.freed, before) << text;
    m->deleter(m);
    return text;
  };
  using M = DLManagedTensorVersioned;
  EXPECT_SAYS(refused([](M& m) { m.version = {2, 0}; }), "is of version 2.0, expected 1.x");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.dtype = {0, 4, 1}; }), "int of 4 bits, which packs");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.dtype = {17, 4, 1}; }), "float4_e2m1fn of 4 bits");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.dtype = {5, 64, 1}; }), "complex of 64 bits");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.dtype = {2, 32, 4}; }), "in vectors of 4");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.dtype = {99, 8, 1}; }), "code 99");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.device = {2, 0}; }), "in the memory of GPU 0");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.device = {10, 1}; }), "a device of kind 10");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.data = nullptr; }), "memory is null");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.shape = nullptr; }), "shape is null");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.ndim = -1; }), "has -1 axes");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.shape[1] = -3; }), "has size -3");
  EXPECT_SAYS(refused([](M& m) { m.dl_tensor.shape[1] = INT64_MAX / 4; }),
              "does not fit in 64 bits");
  // Read-only: an input, no output, and it stays so.
  DLManagedTensorVersioned* m = p.versioned({2, 3});
  m->flags = 1;
  runtime::Tensor t(executable, m);
  runtime::Session s(executable);
  s.bind_input(0, t);
  EXPECT_SAYS(said([&] { s.bind_output(0, t); }),
              "output 'y' is bound to a tensor that is read-only");
  EXPECT_SAYS(said([&] { t.to_dlpack_unversioned(); }), "read-only");
  DLManagedTensorVersioned* again = t.to_dlpack();
  EXPECT_EQ(again->flags, 1u);
  again->deleter(again);
}

TEST_F(TensorApi, GivenToDlpackOutliveEverything) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  DLManagedTensorVersioned* given = nullptr;
  DLManagedTensor* older = nullptr;
  {
    runtime::Executable executable(file());
    runtime::Session s(executable);
    runtime::Tensor y(executable, HONE_F32, {2, 3});
    s.bind_input(0, {2, 3}, x);
    s.bind_output(0, y);
    s.run();
    given = y.to_dlpack();
    older = y.to_dlpack_unversioned();
    EXPECT_EQ(given->dl_tensor.data, y.layout().data);
  }
  EXPECT_EQ(given->version.major, 1u);
  EXPECT_EQ(given->flags, 0u);
  const DLTensorOfTest& t = given->dl_tensor;
  EXPECT_EQ(t.device.type, 1);
  EXPECT_EQ(t.ndim, 2);
  EXPECT_EQ(t.shape[1], 3);
  EXPECT_EQ(t.strides[0], 3);
  EXPECT_EQ(t.strides[1], 1);
  EXPECT_EQ(t.dtype.code, 2);
  EXPECT_EQ(t.dtype.bits, 32);
  EXPECT_EQ(static_cast<const float*>(t.data)[5], 13);
  given->deleter(given);
  EXPECT_EQ(static_cast<const float*>(older->dl_tensor.data)[0], 3);
  older->deleter(older);
  // Its own tensor comes home: both ends keep the memory.
  runtime::Executable executable(file());
  std::optional<runtime::Tensor> a(std::in_place, executable, HONE_F32, runtime::Dims{2, 3});
  runtime::Tensor b(executable, a->to_dlpack());
  a.reset();
  b.write(x);
  EXPECT_EQ(static_cast<const float*>(b.layout().data)[5], 6);
  runtime::Tensor small(executable, HONE_I4, {2});
  EXPECT_SAYS(said([&] { small.to_dlpack(); }), "has no elements like those of dtype i4");
}

}  // namespace
}  // namespace hone::tensor_test
