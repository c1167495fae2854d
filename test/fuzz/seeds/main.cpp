// Writes the seeds of the corpus: `fuzz_seeds test/fuzz/corpus`. Former findings are stored there,
// too, and are not changed.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "compile/compile.h"
#include "export/onnx/export.h"
#include "plan/plan_file.h"
#include "plan/plan_json.h"
#include "test/import/gguf_file.h"
#include "test/ops/harness.h"

namespace hone::fuzz {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary).write(content.data(), static_cast<long>(content.size()));
}

// The first sample of each operation, as text and, if ONNX can express it, as ONNX.
void write_functions(const fs::path& corpus) {
  for (const Op* op : all_ops()) {
    const std::vector<harness::Case> cases = harness::cases_of(*op);
    if (cases.empty()) continue;
    const Function& f = cases[0].function;
    write(corpus / "ir_text" / cat(op->name, ".txt"), print(f));
    fs::create_directories(corpus / "onnx");
    try {
      export_onnx(f, corpus / "onnx" / cat(op->name, ".onnx"));
    } catch (const UserError&) {
    }
  }
}

Plan plan_of(const Op& op) {
  CompileOptions options;
  options.strategy = "cpu";
  options.targets = {"x86-64-v3"};
  options.cache = false;
  options.threads = 1;
  return compile(Source{std::string(op.name), {{{}, harness::cases_of(op)[0].function}}, {}},
                 options);
}

void write_plans(const fs::path& corpus) {
  for (const Op* op : {&ops::relu, &ops::matmul, &ops::lstm, &ops::while_loop, &ops::if_else}) {
    const Plan p = plan_of(*op);
    const Json json =
        plan_to_json(p, [](std::string_view name, const Array&) { return std::string(name); });
    write(corpus / "plan" / cat(op->name, ".json"), json.text());
    if (op == &ops::relu) write_plan(corpus / "plan" / "relu.hone", p);
  }
}

std::string safetensors_file(const std::string& header, std::size_t data) {
  std::string out(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(out.data(), &size, sizeof size);
  return out + header + std::string(data, '\1');
}

void write_safetensors(const fs::path& to) {
  const std::pair<const char*, std::string> files[] = {
      {"empty", safetensors_file("{}", 0)},
      {"one", safetensors_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8)},
      {"two", safetensors_file(R"({"a":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},)"
                               R"("b":{"dtype":"I8","shape":[],"data_offsets":[4,5]}})",
                               5)},
      {"metadata", safetensors_file(R"({"__metadata__":{"k\u00e9":"v\n"},)"
                                    R"("a":{"dtype":"BOOL","shape":[0],"data_offsets":[0,0]}}  )",
                                    0)},
      {"small", safetensors_file(R"({"a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]},)"
                                 R"("b":{"dtype":"U64","shape":[1],"data_offsets":[3,11]}})",
                                 11)},
      {"not_json", safetensors_file("[1e3,-0.5,null,true]", 0)},
  };
  for (const auto& [name, content] : files) write(to / cat(name, ".safetensors"), content);
}

void write_gguf(const fs::path& to) {
  constexpr std::uint32_t text = 8, array = 9;
  GgufFile words, nested, aligned;
  words.head(1, 2).text("k").put(array).put(text).put<std::uint64_t>(1).text("word");
  words.text("f").put<std::uint32_t>(6).put(1.5F).tensor("a", {2}, 0, 0).data(8);
  nested.head(0, 1).text("k").put(array).put(array).put<std::uint64_t>(1);
  nested.put<std::uint32_t>(4).put<std::uint64_t>(1).put<std::uint32_t>(7);
  aligned.head(1, 1, 2).alignment(64).tensor("b", {2, 2}, 1, 0).data(8, 64);
  write(to / "words.gguf", words.bytes);
  write(to / "nested.gguf", nested.bytes);
  write(to / "aligned.gguf", aligned.bytes);
  // One block of each quantised type.
  const std::pair<std::uint32_t, std::size_t> blocks[] = {{2, 18}, {3, 20},   {6, 22},   {7, 24},
                                                          {8, 34}, {12, 144}, {13, 176}, {14, 210}};
  for (const auto& [type, bytes] : blocks)
    write(to / cat("block", type, ".gguf"),
          GgufFile().head(1, 0).tensor("t", {type < 12 ? 32U : 256U}, type, 0).data(bytes).bytes);
}

}  // namespace
}  // namespace hone::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds CORPUS\n");
    return 2;
  }
  const std::filesystem::path corpus = argv[1];
  hone::fuzz::write_functions(corpus);
  hone::fuzz::write_plans(corpus);
  hone::fuzz::write_safetensors(corpus / "safetensors");
  hone::fuzz::write_gguf(corpus / "gguf");
}
