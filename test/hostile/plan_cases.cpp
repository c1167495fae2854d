// Plan files that are damaged or forged; a forged file has correct hashes and wrong content.
// test/plan has the cases that the writer itself refuses.
#include <cstring>

#include "base/hash.h"
#include "compile/compile.h"
#include "plan/plan_file.h"
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

// The plan of a small model: a matrix product with weights, and a Softmax.
Plan small_plan() {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "8"});
  b.constant("w", reals({8, 8}, std::vector<float>(64, 0.5F)));
  b.node("MatMul", {"x", "w"}, {"h"});
  b.node("Softmax", {"h"}, {"y"});
  b.output("y");
  const Imported m = b.import();
  CompileOptions options;
  options.strategy = "cpu";
  options.cache = false;
  options.threads = 1;
  return compile(Source{"small", {{{}, m.variants[0].function}}, {}}, options);
}

Make plan(std::function<void(Plan&)> spoil) {
  return [spoil](const fs::path& file) {
    Plan p = small_plan();
    spoil(p);
    write_plan(file, p);
  };
}

// The bytes of a plan file with a change applied.
Make spoiled(std::function<void(std::string&)> spoil) {
  return [spoil](const fs::path& file) {
    write_plan(file, small_plan());
    std::string content = read_text(file);
    spoil(content);
    std::ofstream(file, std::ios::binary) << content;
  };
}

void replace(std::string& content, const std::string& from, const std::string& to) {
  const std::size_t at = content.find(from);
  if (at == content.npos || from.size() != to.size())
    throw UserError("the plan holds no ", from, "; the test is out of date");
  content.replace(at, from.size(), to);
}

// The plan's text with a replacement, and the checksum of the changed header.
Make forged(std::string from, std::string to) {
  return spoiled([from, to](std::string& content) {
    replace(content, from, to);
    std::uint64_t length = 0;
    std::memcpy(&length, content.data(), sizeof length);
    const std::string key = "\"hone.checksum\":\"";
    const std::size_t at = content.find(key);
    if (at == content.npos) throw UserError("the plan has no checksum; the test is out of date");
    const std::size_t digits = at + key.size();
    content.replace(digits, 32, std::string(32, '0'));
    content.replace(digits, 32, to_hex(hash128(content.substr(sizeof length, length))));
  });
}

Step& first_launch(Plan& p) {
  for (Step& s : p.main().variants[0].steps)
    if (s.kind == Step::Kind::launch) return s;
  throw UserError("the plan launches nothing; the test is out of date");
}

}  // namespace

Cases plan_cases() {
  Cases out;
  const auto add = [&out](const char* name, Make make, const char* expected) {
    out.push_back({name, std::move(make), ran_plan, expected, "p.hone"});
  };
  constexpr std::int64_t big = std::int64_t{1} << 40;
  add("plan_good", plan([](Plan&) {}), "ran: f32[");
  add("plan_empty", bytes(""), "is not a safetensors file");
  add("plan_of_onnx", bytes(good_model()), "is not a safetensors file");
  add("plan_cut_in_half", spoiled([](std::string& s) { s.resize(s.size() / 2); }), "refused: ");
  add("plan_bit_of_code",
      spoiled([](std::string& s) { s.back() = static_cast<char>(s.back() ^ 1); }), "is damaged");
  add("plan_other_version", spoiled([](std::string& s) {
        replace(s, "\"hone.version\":\"2\"", "\"hone.version\":\"7\"");
      }),
      "has plan format version 7");
  add("plan_view_past_end", plan([](Plan& p) { first_launch(p).operands[0].offset = big; }),
      "refused: ");
  add("plan_view_before_start", plan([](Plan& p) { first_launch(p).operands[0].offset = -64; }),
      "refused: ");
  add("plan_view_too_large", plan([](Plan& p) { first_launch(p).operands[0].dims[0] = big; }),
      "refused: ");
  add("plan_view_negative", plan([](Plan& p) { first_launch(p).operands[0].dims[0] = -1; }),
      "refused: ");
  add("plan_strides_huge", plan([](Plan& p) {
        for (Dim& d : first_launch(p).operands[0].strides) d = big;
      }),
      "refused: ");
  add("plan_arena_2_60",
      plan([](Plan& p) { p.main().variants[0].devices[0].arena_bytes = std::int64_t{1} << 60; }),
      "refused: ");
  add("plan_arena_negative",
      plan([](Plan& p) { p.main().variants[0].devices[0].arena_bytes = -4096; }), "refused: ");
  add("plan_arena_buffer_outside", plan([](Plan& p) {
        for (PlanBuffer& b : p.main().variants[0].buffers)
          if (b.kind == PlanBuffer::Kind::arena) b.offset = b.offset + Dim(big);
      }),
      "refused: ");
  add("plan_weight_shorter", plan([](Plan& p) {
        for (PlanBuffer& b : p.main().variants[0].buffers)
          if (b.kind == PlanBuffer::Kind::weight || b.kind == PlanBuffer::Kind::prepared)
            b.bytes = Dim(big);
      }),
      "refused: ");
  add("plan_scratch_2_60",
      plan([](Plan& p) { first_launch(p).scratch_bytes = std::int64_t{1} << 60; }), "refused: ");
  add("plan_library_unknown", plan([](Plan& p) {
        p.main().variants[0].steps.push_back({.kind = Step::Kind::library, .name = "no.such"});
      }),
      "refused: ");
  add("plan_host_unknown", plan([](Plan& p) {
        p.main().variants[0].steps.push_back({.kind = Step::Kind::host, .name = "system"});
      }),
      "refused: ");
  add("plan_collective", plan([](Plan& p) {
        p.main().variants[0].steps.push_back(
            {.kind = Step::Kind::collective, .name = "all_reduce"});
      }),
      "refused: ");
  // The writer refuses these, so they are patched into a written file.
  add("plan_device_9", forged(R"(\"group\":0,\"name\":\"dot\")", R"(\"device\":9,\"name\":\"do\")"),
      "is for device 9 of 1");
  add("plan_stream_3", forged(R"(\"group\":0,\"name\":\"dot\")", R"(\"stream\":3,\"name\":\"do\")"),
      "is for stream 3 of 1");
  add("plan_target_of_another_machine",
      plan([](Plan& p) { p.main().variants[0].devices[0].target = "z80"; }), "refused: ");
  add("plan_guard_never_holds",
      plan([](Plan& p) { p.main().variants[0].guards.push_back({Guard::Kind::equal, 1, 2}); }),
      "refused: ");
  return out;
}

}  // namespace hone::hostile
