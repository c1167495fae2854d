// graph_cost SHAPE NODES: the compiler's cost without code generation. Imports a model of that many
// ONNX nodes, runs the passes, and compiles it for the null target. Under callgrind each part is
// one dump; without it, calls of operator new are counted and wall time is shown.
#include <valgrind/callgrind.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include "backend/backend.h"
#include "backend/null/target/null_target.h"
#include "compile/compile.h"
#include "import/import.h"

namespace {

long news = 0;

}  // namespace

void* operator new(std::size_t n) {
  ++news;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace hone;

// The few fields of ONNX that these models have, in protobuf's wire format.
std::string varint(std::uint64_t n) {
  std::string out;
  for (; n >= 128; n >>= 7) out += static_cast<char>(n | 128);
  return out += static_cast<char>(n);
}
std::string number(int field, std::uint64_t n) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(n);
}
std::string bytes(int field, const std::string& content) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(content.size()) + content;
}

std::string tensor(const std::string& name) {  // f32[64]
  std::string shape = bytes(1, number(1, 64));
  return bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, shape)));
}

class Model {
 public:
  std::string input() {
    std::string name = "x" + std::to_string(inputs_++);
    graph_ += bytes(11, tensor(name));
    return name;
  }
  std::string node(const char* op, const std::vector<std::string>& operands) {
    std::string name = "v" + std::to_string(nodes_++), text;
    for (const std::string& o : operands) text += bytes(1, o);
    graph_ += bytes(1, text + bytes(2, name) + bytes(3, "node" + name) + bytes(4, op));
    return name;
  }
  void output(const std::string& name) { graph_ += bytes(12, tensor(name)); }
  int nodes() const { return nodes_; }
  std::string text() const {
    return number(1, 8) + bytes(8, number(2, 17)) + bytes(7, graph_ + bytes(2, "g"));
  }

 private:
  std::string graph_;
  int inputs_ = 0, nodes_ = 0;
};

// Each node has one operand, which no other node reads.
Model chain(int nodes) {
  Model m;
  std::string x = m.input();
  while (m.nodes() < nodes) x = m.node(m.nodes() % 2 ? "Tanh" : "Sigmoid", {x});
  m.output(x);
  return m;
}

// No node reads another: each is a group of one operation and a result.
Model wide(int nodes) {
  Model m;
  std::vector<std::string> x = {m.input()};
  while (m.nodes() < nodes) {
    x.push_back(m.input());
    for (std::size_t i = 0; i + 1 < x.size() && m.nodes() < nodes; ++i)
      m.output(m.node("Add", {x[i], x.back()}));
  }
  return m;
}

// Branches that split and join again.
Model diamond(int nodes) {
  Model m;
  std::string x = m.input();
  while (m.nodes() < nodes) {
    std::string a = m.node("Tanh", {x}), b = m.node("Sigmoid", {x});
    x = m.node("Add", {a, b});
  }
  m.output(x);
  return m;
}

template <class F>
auto counted(const char* part, F&& f) {
  const auto start = std::chrono::steady_clock::now();
  const long before = news;
  CALLGRIND_ZERO_STATS;
  CALLGRIND_START_INSTRUMENTATION;
  auto result = f();
  CALLGRIND_STOP_INSTRUMENTATION;
  CALLGRIND_DUMP_STATS_AT(part);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  std::printf("%s_news %ld\n", part, news - before);
  if (!RUNNING_ON_VALGRIND) std::printf("%s takes %.0f us\n", part, took.count());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: graph_cost chain|wide|diamond NODES\n"), 2;
  const int nodes = std::atoi(argv[2]);
  const Model model = std::strcmp(argv[1], "chain") == 0  ? chain(nodes)
                      : std::strcmp(argv[1], "wide") == 0 ? wide(nodes)
                                                          : diamond(nodes);
  std::string file = (std::filesystem::temp_directory_path() / "graph_cost_XXXXXX").string();
  if (const int fd = mkstemp(file.data()); fd < 0) return 1;
  std::ofstream(file, std::ios::binary) << model.text();
  Imported imported = counted("import", [&] { return import_onnx(file); });
  std::filesystem::remove(file);
  const Function& f = imported.variants.at(0).function;
  std::vector<PassRecord> passes;
  counted("passes", [&] { return run_passes(f, {}, &passes); });
  CompileReport report;
  const Backend generates_nothing = {"null", null::make_target, null::target_names, {}, nullptr};
  Plan plan = counted("compile", [&] {
    return compile({"graph", {{{}, f}}, {}},
                   {.strategy = "cpu",
                    .backend = &generates_nothing,
                    .verification = Verification::none,
                    .threads = 1,
                    .cache = false},
                   &report);
  });
  std::printf("nodes %zu\npasses_run %zu\ngroups %d\nkernels %d\n", live_nodes(f).size(),
              passes.size(), report.groups, report.kernels);
  return 0;
}
