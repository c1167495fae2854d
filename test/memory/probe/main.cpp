// A process that opens a plan file, runs it on one test set with bound memory, and prints as JSON
// its memory report and what malloc and mmap actually returned.
// usage: memory_probe PLAN SET_DIRECTORY THREADS SESSIONS RUNS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/device/cpu_device.h"
#include "backend/devices/devices.h"
#include "base/error.h"
#include "base/json.h"
#include "base/process_memory.h"
#include "import/tensor_file.h"
#include "runtime/session.h"
#include "test/memory/watch.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

// Aligned memory of the caller for one input or output.
struct Tensor {
  explicit Tensor(const Array& a) : dtype(a.dtype()), dims(a.dims()) {
    bytes = a.bytes().size();
    data = std::aligned_alloc(buffer_alignment, (bytes / buffer_alignment + 1) * buffer_alignment);
    std::memcpy(data, a.bytes().data(), bytes);
  }
  ~Tensor() { std::free(data); }
  Tensor(const Tensor&) = delete;
  TensorRef ref() const { return {dtype, dims, memory_of(static_cast<std::byte*>(data), bytes)}; }

  DType dtype;
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0;
  void* data = nullptr;
};
using Tensors = std::vector<std::unique_ptr<Tensor>>;

Tensors read(const fs::path& set, const char* kind) {
  Tensors out;
  for (int i = 0; fs::exists(set / cat(kind, "_", i, ".pb")); ++i)
    out.push_back(std::make_unique<Tensor>(read_tensor_pb(set / cat(kind, "_", i, ".pb"))));
  return out;
}

// True if the outputs hold these bytes. Clears them, so that the next run must write them again.
bool take(const Tensors& outputs, const std::vector<std::byte>& expected) {
  const std::byte* at = expected.data();
  bool is_equal = true;
  for (const auto& t : outputs) {
    is_equal &= std::memcmp(t->data, at, t->bytes) == 0;
    std::memset(t->data, 0xff, t->bytes);
    at += t->bytes;
  }
  return is_equal;
}

// Copies into `to`, which is large enough.
void copy(const Tensors& outputs, std::vector<std::byte>& to) {
  std::byte* at = to.data();
  for (const auto& t : outputs) at = std::copy_n(static_cast<std::byte*>(t->data), t->bytes, at);
}

Json probe(const fs::path& plan, const fs::path& set, int threads, int count, int runs) {
  const Tensors inputs = read(set, "input"), outputs = read(set, "output");
  std::size_t bytes = 0;
  for (const auto& t : outputs) bytes += t->bytes;
  std::vector<std::byte> first(bytes);
  const std::size_t resident = resident_memory().bytes;
  const test::Watch watch;
  std::vector<std::unique_ptr<Session>> sessions;
  const auto executable = Executable::open(plan, open_device("cpu"));
  std::size_t expected = 0;
  for (int i = 0; i < count; ++i) {
    Session& s = *sessions.emplace_back(
        std::make_unique<Session>(executable, SessionOptions{.threads = threads}));
    for (std::size_t k = 0; k < inputs.size(); ++k) s.bind_input(k, inputs[k]->ref());
    for (std::size_t k = 0; k < outputs.size(); ++k) s.bind_output(k, outputs[k]->ref());
    const MemoryReport m = s.memory();
    expected = i == 0 ? m.peak() : expected + m.session();
    s.run();
  }
  copy(outputs, first);
  sessions[0]->run();
  const long before = watch.allocations();
  bool is_equal = true;
  for (int i = 0; i < runs; ++i) {
    is_equal &= take(outputs, first);
    sessions[0]->run();
  }
  const long in_runs = watch.allocations() - before;
  const Json seen = Json::Object{{"expected", expected},
                                 {"seen", watch.peak()},
                                 {"allocations", in_runs},
                                 {"library_calls", sessions[0]->counters().library_calls},
                                 {"equal_bits", is_equal && take(outputs, first)},
                                 {"rss_before", resident},
                                 {"peak_rss", resident_memory().peak}};
  return seen;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    const hone::Json out =
        hone::probe(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]));
    std::printf("%s\n", out.text().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
