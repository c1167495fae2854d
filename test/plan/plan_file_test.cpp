#include "plan/plan_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/sanitizer.h"
#include "plan/check.h"
#include "plan/plan_json.h"
#include "type/safetensors.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

const Dim n = Dim::symbol("n", 1, 1000), m = Dim::symbol("m.x", 0, 7);

View dense(std::uint32_t buffer, DType dtype, Dims dims) {
  return {buffer, 0, dtype, dims, dense_strides(Shape(dims))};
}

Array floats(std::vector<std::int64_t> dims, float first) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, first + static_cast<double>(i));
  return a;
}

Storage bytes_of(std::size_t count, int value) {
  return Storage::from(std::vector<std::byte>(count, static_cast<std::byte>(value)));
}

// Steps of every kind, and fields that differ from their defaults.
Variant rich_variant() {
  Variant v;
  v.devices[0].target = "x86-64-v3";
  v.guards = {{Guard::Kind::less_equal, n, 512}, {Guard::Kind::not_equal, n * 2, m}};
  v.buffers = {{PlanBuffer::Kind::param, 0, 0, n * 4},
               {PlanBuffer::Kind::result, 0, 0, n * 4},
               {PlanBuffer::Kind::weight, 1, 0, 24},
               {PlanBuffer::Kind::prepared, 1, 0, 100},
               {PlanBuffer::Kind::arena, 0, 64 * n, 64}};
  Step launch{.kind = Step::Kind::launch, .index = 1, .name = "add"};
  launch.operands = {dense(0, DType::f32, {n}), {2, 8, DType::f32, {n, 3}, {0, n}}};
  launch.written = {false, true};
  launch.scalars = {n, floor_div(n + 3, 4)};
  launch.chunks = ceil_div(n, 16);
  launch.scratch_bytes = 256;
  Step library{.kind = Step::Kind::library, .name = "onednn.matmul"};
  library.settings = {{"relu", 1}, {"pad", -3}};
  Step copy{.kind = Step::Kind::copy};
  copy.operands = {dense(0, DType::f32, {n}), dense(1, DType::f32, {n})};
  copy.written = {false, true};
  Step refuse{.kind = Step::Kind::refuse, .name = "sizes \"differ\""};
  refuse.scalars = {n, m};
  Step loop{.kind = Step::Kind::loop};
  loop.operands = {dense(4, DType::b1, {})};
  loop.written = {false};
  loop.body = {copy, refuse};
  loop.otherwise = {launch};
  const Step record{.kind = Step::Kind::record, .device = 1, .stream = 2, .index = 1};
  const Step wait{.kind = Step::Kind::wait, .stream = 0, .index = 1};
  v.devices.push_back({"other", "any", 3, 128, 64});
  v.events = 2;
  v.buffers.push_back({PlanBuffer::Kind::arena, 0, 64, 64, 1});
  v.steps = {launch, library, copy, loop, record, wait};
  v.prepare = {copy};
  const std::vector<CandidateRecord> considered = {{"generated", 1.5, 1.25, 2, 0.1, 1e-7, ""},
                                                   {"onednn", -1, -1, -1, -1, -1, "no"}};
  v.groups = {{"add", "node 3 \"Add\"", "generated", "measured", n * 12, n,
               std::make_shared<const std::vector<CandidateRecord>>(considered)}};
  v.results = {f32({n})};
  v.devices[0].arena_bytes = 64 * n + 64;
  v.devices[0].arena_lower_bound = 64 * n;
  return v;
}

Plan rich_plan() {
  Plan p;
  p.name = "a \"name\" ü";
  p.strategy = "auto";
  p.verification = "kernels";
  p.measured = true;
  p.main().params = {{"x", f32({n}), true}, {"y", i64({m, 2}), false}};
  p.main().results = {{"z", f32({n}), true}};
  p.main().result_alias = {0};
  p.main().checks = {{n, m + 1, "x and y differ"}};
  p.main().variants = {rich_variant(), rich_variant()};
  p.main().variants[1].devices[0].target = "any";
  Binary b;
  b.target = "x86-64-v3";
  b.code = std::vector<std::byte>(128, std::byte{0xcc});
  b.entries = {{"first", 0}, {"second", 64}};
  b.helpers = {{32, 1}};
  p.binaries = {b};
  p.kernels = {{0, "first", {1, 2}}, {0, "second", {~0ull, 3}, 128, 4096}};
  p.weights = {{"w/1", floats({2, 3}, 1)}, {"w/1", floats({2, 3}, 9)}, {"t", floats({6}, 1)}};
  p.prepared = {{"p", Type(DType::u8, {100}), bytes_of(100, 7)},
                {"q", Type(DType::u8, {100}), bytes_of(100, 7)},
                {"r", Type(DType::u8, {5}), {}}};
  p.main().strategies = {
      {.name = "cpu", .ms = 1.25, .ratio_to_best = 1, .failure = "", .chosen = true},
      {.name = "ref", .peak_bytes = 1 << 20, .failure = "too slow"}};
  p.main().graph = "%0 = param\n\"quoted\" ü";
  p.main().graph_arrays = {floats({2, 3}, 1), floats({4}, 5)};
  p.machine = "{\"cpu\":\"any\"}";
  p.content = Hash128{5, 6};
  SelfTest t;
  t.variant = 1;
  t.is_exact = false;
  t.inputs = {{.dtype = DType::f32, .dims = {7}, .seed = 3, .low = -2, .high = 2},
              {.dtype = DType::i64, .dims = {1, 2}, .given = Array::zeros(DType::i64, {1, 2})}};
  t.results = {{{7}, {7, 8}, {0, 6}, {0.1, std::numeric_limits<double>::infinity()}, 1e-5}};
  p.main().self_tests = {t, {.missing = "none"}};
  p.states = {{"w.\"x\"", "model", f32({2, 3}), 0, floats({2, 3}, 4)},
              {"count", "model", i64({}), 64},
              {"m", "optimizer", f32({2, 3}), 0}};
  PlanEntry second;
  second.name = "update";
  second.params = {{"w", f32({2, 3}), true}, {"x", f32({n})}};
  second.results = {{"next", f32({2, 3})}};
  second.result_alias = {0};
  second.states = {0, -1};
  second.variants = {rich_variant()};
  second.variants[0].results = {f32({2, 3})};
  second.graph = "%0 = another";
  p.entries.push_back(second);
  return p;
}

// A different path in each process.
fs::path temp_file(std::string_view name) {
  return fs::path(testing::TempDir()) / cat("hone_", ::getpid(), "_", name);
}

fs::path written_plan() {
  const fs::path path = temp_file("plan_file_test.hone");
  write_plan(path, rich_plan());
  return path;
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

// The error of reading a file of these bytes, or "accepted".
std::string refusal(std::string_view bytes) {
  const fs::path path = temp_file("broken.hone");
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    read_plan(path);
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

// The JSON with hashes of the tensors' bytes, so that equal text means equal plans.
std::string whole_text(const Plan& p) {
  return plan_to_json(p,
                      [](std::string_view, const Array& a) { return to_hex(hash128(a.bytes())); })
             .text() +
         p.main().graph;
}

TEST(PlanFile, ReadsBackWhatWasWritten) {
  const Plan before = rich_plan(), after = read_plan(written_plan(), VerifyData::all);
  EXPECT_EQ(whole_text(after), whole_text(before));
  EXPECT_EQ(after.weights[1].data.real(0), 9);
  EXPECT_EQ(after.main().variants[0].steps[0].operands[1].strides[1], n);
  EXPECT_EQ(after.binaries, before.binaries);
  EXPECT_EQ(after.prepared[2].data.size(), 0u);
}

// A variant assumes that its guards hold. Simplifying a guard under that assumption would make it
// always true, and the variant would run sizes for which it has no memory.
TEST(PlanFile, GuardsKeepTheirQuestionWhereTheVariantKnowsTheAnswer) {
  const auto steps_over = [](const Dim& s) { return equal(Dim(1), floor_div(s, Dim(500))); };
  const Dim few = Dim::symbol("n", 500, 999);
  Plan before = rich_plan();
  Variant& v = before.main().variants[0];
  v.guards = {{Guard::Kind::equal, steps_over(n), 1}};
  for (PlanBuffer& b : v.buffers)
    if (!b.bytes.is_number()) b.bytes = few * 4;
  const fs::path path = temp_file("guards.hone");
  write_plan(path, before);
  const Plan after = read_plan(path);
  ASSERT_EQ(after.main().variants[0].guards.size(), 1u);
  EXPECT_EQ(after.main().variants[0].guards[0].a, steps_over(n));
  EXPECT_EQ(after.main().variants[0].guards[0].a.eval([](std::string_view) { return 400; }), 0);
  EXPECT_EQ(whole_text(after), whole_text(before));
}

// A check may be what a variant's narrower bounds follow from.
TEST(PlanFile, ChecksKeepTheirQuestionWhereTheVariantKnowsTheAnswer) {
  const Dim half = floor_div(n, Dim(2)), few = Dim::symbol("n", 8, 9);
  Plan before = rich_plan();
  Variant& v = before.main().variants[0];
  for (PlanBuffer& b : v.buffers)
    if (!b.bytes.is_number()) b.bytes = few * 4;
  Step refuse;
  refuse.kind = Step::Kind::refuse;
  refuse.name = "half of n is not 4";
  refuse.scalars = {half, 4};
  v.steps.push_back(refuse);
  const fs::path path = temp_file("checks.hone");
  write_plan(path, before);
  const Plan after = read_plan(path);
  EXPECT_EQ(after.main().variants[0].steps.back().scalars, refuse.scalars);
  EXPECT_EQ(whole_text(after), whole_text(before));
}

TEST(PlanFile, IsASafetensorsFileWithEachContentOnce) {
  const Safetensors file = read_safetensors(written_plan());
  // Weights 0 and 2 and graph array 0 are equal; prepared buffers 0 and 1 are equal, too.
  std::vector<std::string> names;
  for (const SafetensorsEntry& t : file.tensors) names.push_back(t.name);
  EXPECT_EQ(names, (std::vector<std::string>{"code.0", "w/1", "tensor.2.w/1", "prepared.p",
                                             "start w.\"x\"", "graph.2", "selftest"}));
}

TEST(PlanFile, WeightsAreNotCopied) {
  const Plan p = read_plan(written_plan());
  EXPECT_EQ(p.weights[0].data.bytes().data(), p.weights[2].data.bytes().data());
  EXPECT_EQ(p.weights[0].data.bytes().data(), p.main().graph_arrays[0].bytes().data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p.prepared[0].data.bytes().data()) % 64, 0u);
}

// Bytes on a device with its own memory: each download allocates new memory.
class Downloaded final : public ResidentBytes {
 public:
  explicit Downloaded(int value) : value_(value) {}
  std::size_t size() const override { return 100; }
  Storage download() const override { return bytes_of(100, value_); }

 private:
  int value_;
};

TEST(PlanFile, PreparedBytesOfADeviceAreWritten) {
  Plan before = rich_plan();
  for (int i : {0, 1})
    before.prepared[static_cast<std::size_t>(i)].resident = std::make_shared<Downloaded>(7 + i);
  const fs::path path = temp_file("resident.hone");
  write_plan(path, before);
  const Plan after = read_plan(path, VerifyData::all);
  for (int i : {0, 1})
    EXPECT_EQ(after.prepared[static_cast<std::size_t>(i)].data.bytes()[99], std::byte(7 + i));
}

TEST(PlanFile, EveryTruncationIsRefused) {
  const std::string whole = content(written_plan());
  ASSERT_EQ(refusal(whole), "accepted");
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 97)
    EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
  EXPECT_NE(refusal(whole.substr(0, whole.size() - 1)), "accepted");
  EXPECT_NE(refusal(whole + '\0'), "accepted");
}

TEST(PlanFile, EveryFlippedBitIsRefused) {
  const std::string whole = content(written_plan());
  const std::size_t step = with_address_sanitizer ? 13 : 1;
  for (std::size_t at = 0; at < whole.size(); at += step) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ (1 << (at % 8)));
    ASSERT_NE(refusal(broken), "accepted") << "byte " << at << " of " << whole.size();
  }
}

TEST(PlanFile, SaysWhatIsWrong) {
  EXPECT_NE(refusal("hello").find("is not a safetensors file"), std::string::npos);
  std::string other(8, '\0');
  other[0] = 2;
  EXPECT_NE(refusal(other + "{}").find("but not a plan"), std::string::npos);
  std::string whole = content(written_plan());
  const std::size_t version = whole.find("\"hone.version\":\"2\"");
  ASSERT_NE(version, std::string::npos);
  whole[version + 16] = '9';
  EXPECT_NE(refusal(whole).find("plan format version 9, expected 2"), std::string::npos)
      << refusal(whole);
  whole = content(written_plan());
  const std::size_t wanted = whole.find("\"hone.requires\":\"[\\\"entries\\\",\\\"states\\\"]\"");
  ASSERT_NE(wanted, std::string::npos);
  whole.replace(whole.find("states", wanted), 6, "wheels");
  EXPECT_NE(refusal(whole).find("requires 'wheels', which this version of hone does not have"),
            std::string::npos)
      << refusal(whole);
  whole = content(written_plan());
  whole.back() ^= 1;
  EXPECT_NE(refusal(whole).find("is damaged: the checksum of tensor 'selftest'"), std::string::npos)
      << refusal(whole);
}

// A forged file has correct hashes, so its contents must still be checked.
TEST(PlanCheck, RefusesWhatLeadsNowhere) {
  struct Case {
    void (*spoil)(Plan&);
    std::string_view says;
  };
  const Case cases[] = {
      {[](Plan& p) { p.main().result_alias = {1}; }, "is not donated"},
      {[](Plan& p) { p.main().result_alias = {}; }, "result_alias"},
      {[](Plan& p) { p.kernels[0].binary = 1; }, "is in binary"},
      {[](Plan& p) { p.kernels[0].entry = "third"; }, "not in its binary"},
      {[](Plan& p) { p.binaries[0].entries[0].offset = 128; }, "is outside"},
      {[](Plan& p) { p.main().variants.clear(); }, "no variant"},
      {[](Plan& p) { p.main().variants[0].results.clear(); }, "results"},
      {[](Plan& p) { p.main().variants[0].buffers[0].index = 2; }, "index 2 of 2"},
      {[](Plan& p) { p.main().variants[0].buffers[3].index = 3; }, "index 3 of 3"},
      {[](Plan& p) { p.main().variants[0].steps[0].index = 2; }, "kernel 2 of 2"},
      {[](Plan& p) { p.main().variants[0].steps[0].group = 1; }, "group 1 of 1"},
      {[](Plan& p) { p.main().variants[0].steps[0].written.pop_back(); }, "as read or written"},
      {[](Plan& p) { p.main().variants[0].steps[0].operands[0].buffer = 6; }, "buffer 6 of 6"},
      {[](Plan& p) { p.main().variants[0].steps[0].operands[0].strides.clear(); }, "strides"},
      {[](Plan& p) { p.main().variants[0].devices.clear(); }, "0 devices"},
      {[](Plan& p) { p.main().variants[0].devices[0].streams = 0; }, "0 streams"},
      {[](Plan& p) { p.main().variants[0].buffers[0].device = 2; }, "device 2 of 2"},
      {[](Plan& p) { p.main().variants[0].steps[0].device = 2; }, "device 2 of 2"},
      {[](Plan& p) { p.main().variants[0].steps[0].stream = 1; }, "stream 1 of 1"},
      {[](Plan& p) { p.main().variants[0].steps[0].operands[0].buffer = 5; }, "another device"},
      {[](Plan& p) { p.main().variants[0].steps[4].index = 2; }, "event 2 of 2"},
      {[](Plan& p) { p.main().variants[0].events = ~0u; }, "events"},
      {[](Plan& p) { p.main().variants[0].steps[2].operands[0].dtype = DType::i8; }, "one type"},
      {[](Plan& p) { p.main().variants[0].steps[3].operands[0].dtype = DType::i8; }, "bool"},
      {[](Plan& p) { p.main().variants[0].steps[3].body[1].scalars.pop_back(); }, "refuse"},
      {[](Plan& p) { p.main().variants[0].steps[1].name = ""; }, "without a name"},
      {[](Plan& p) { p.main().variants[0].prepare[0].body.resize(1); }, "it has a body"},
      {[](Plan& p) {
         for (int i = 0; i < 100; ++i) {
           Step outer{.kind = Step::Kind::call};
           outer.body.swap(p.main().variants[0].steps);
           p.main().variants[0].steps.push_back(outer);
         }
       },
       "nested more than"},
      {[](Plan& p) { p.entries.clear(); }, "no entry"},
      {[](Plan& p) { p.entries[1].name = p.main().name; }, "two have the name"},
      {[](Plan& p) { p.states[1].name = p.states[0].name; }, "another state's"},
      {[](Plan& p) { p.states[1].offset = 0; }, "the states before it end at"},
      {[](Plan& p) { p.states[1].offset = 24; }, "the states before it end at"},
      {[](Plan& p) { p.states[0].type = f32({n, 3}); }, "no fixed size"},
      {[](Plan& p) { p.states[0].start = floats({3, 2}, 1); }, "value of another type"},
      {[](Plan& p) { p.entries[1].states = {0}; }, "1 states for 2 parameters"},
      {[](Plan& p) { p.entries[1].states = {3, -1}; }, "state 3 of 3"},
      {[](Plan& p) { p.entries[1].states = {1, -1}; }, "but it is i64[]"},
      {[](Plan& p) { p.entries[1].states = {0, 0}; }, "two parameters for state"},
      {[](Plan& p) {
         p.entries[1].results.push_back(p.entries[1].results[0]);
         p.entries[1].result_alias = {0, 0};
       },
       "stores two results"},
  };
  check(rich_plan(), "plan");
  for (const Case& c : cases) {
    Plan p = rich_plan();
    c.spoil(p);
    try {
      check(p, "plan");
      ADD_FAILURE() << "accepted: " << c.says;
    } catch (const UserError& e) {
      EXPECT_NE(std::string_view(e.what()).find(c.says), std::string_view::npos) << e.what();
    }
  }
}

TEST(PlanJson, RefusesOtherForms) {
  const Json good = plan_to_json(rich_plan());
  const auto load = [](std::string_view) { return Array(); };
  for (const auto& [key, value] : good.object()) {
    Json without = Json::Object();
    for (const auto& [k, v] : good.object())
      if (k != key) without.add(k, v);
    EXPECT_THROW(plan_from_json(without, load), UserError) << key;
  }
  EXPECT_THROW(plan_from_json(Json(), load), UserError);
}

}  // namespace
}  // namespace hone
