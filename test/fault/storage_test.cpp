// Planted faults around a compilation: damaged files and cache entries, failing system calls, a
// missing library, a failing code generator. Each ends in a message or in right numbers, as the
// table says; never in a wrong number, a crash or another strategy.
#include <errno.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "backend/backend.h"
#include "base/json.h"
#include "base/log.h"
#include "base/process.h"
#include "compile/group_times.h"
#include "plan/plan_file.h"
#include "runtime/libraries.h"
#include "test/fault/calls.h"
#include "test/fault/child.h"
#include "test/fault/models.h"

namespace hone::test {
namespace {

enum class Ending { message, right_numbers };

const SmallModel& model() {
  static const SmallModel m = small_models()[0];
  return m;
}

std::string judged(const std::shared_ptr<const Plan>& plan) {
  const Function& f = model().source.variants[0].function;
  const std::vector<Array>& inputs = model().inputs[0];
  std::vector<Array> got = session_of(plan)->run(inputs);
  std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::stepwise);
  std::vector<Wide> wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!accept(got[i], strict[i], wide[i]).ok) return cat("wrong numbers in result ", i);
  return "right numbers";
}

Plan compiled(CompileOptions options = {.strategy = "cpu"}, CompileReport* report = nullptr) {
  options.threads = 1;
  return compile(model().source, options, report);
}

std::string ending_of(const std::function<std::string()>& f) {
  return in_child([&]() -> std::string {
    try {
      return f();
    } catch (const UserError& e) {
      fail_call("", 0, 0);
      return cat("message: ", e.what());
    } catch (const std::bad_alloc&) {
      fail_call("", 0, 0);
      return "message: out of memory";
    }
  });
}

void expect(Ending expected, const std::string& ending, const std::string& name) {
  if (expected == Ending::message)
    EXPECT_TRUE(ending.starts_with("message: ")) << name << " ended in: " << ending;
  else
    EXPECT_EQ(ending, "right numbers") << name;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

struct Damage {
  std::string name;
  std::function<void(std::string&)> to;
};

void flip(std::string& bytes, double part) {
  bytes[static_cast<std::size_t>(part * static_cast<double>(bytes.size() - 1))] ^= 0x10;
}

std::vector<Damage> damages() {
  std::vector<Damage> all;
  for (double part : {0.0, 0.001, 0.1, 0.5, 0.9, 0.999})
    all.push_back({cat("truncated to ", part), [part](std::string& b) {
                     b.resize(static_cast<std::size_t>(part * static_cast<double>(b.size())));
                   }});
  for (double part : {0.0, 0.0005, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0})
    all.push_back({cat("bit flipped at ", part), [part](std::string& b) { flip(b, part); }});
  all.push_back({"a byte appended", [](std::string& b) { b += 'x'; }});
  all.push_back({"zeros", [](std::string& b) { std::fill(b.begin(), b.end(), '\0'); }});
  return all;
}

TEST(DamagedPlanFile, IsRefused) {
  for (const Damage& d : damages())
    expect(Ending::message, ending_of([&] {
             EmptyCache cache;
             const fs::path file = cache.directory() / "plan.hone";
             write_plan(file, compiled());
             std::string bytes = bytes_of(file);
             d.to(bytes);
             put(file, bytes);
             return judged(std::make_shared<const Plan>(read_plan(file, VerifyData::all)));
           }),
           d.name);
}

// A damaged entry is treated as missing.
TEST(DamagedCacheEntry, IsMadeAgain) {
  for (const Damage& d : damages())
    expect(Ending::right_numbers, ending_of([&]() -> std::string {
             EmptyCache cache;
             CompileReport first, second;
             compiled({.strategy = "cpu"}, &first);
             for (const auto& e : fs::recursive_directory_iterator(cache.directory())) {
               if (!e.is_regular_file()) continue;
               std::string bytes = bytes_of(e.path());
               d.to(bytes);
               put(e.path(), bytes);
             }
             const auto plan = std::make_shared<const Plan>(compiled({.strategy = "cpu"}, &second));
             if (second.compiled != first.compiled || second.verified != first.verified)
               return "a damaged entry was taken";
             return judged(plan);
           }),
           d.name);
}

// Each entry is overwritten with the content of its neighbour.
TEST(DamagedCacheEntry, OfAnotherKeyIsMadeAgain) {
  expect(Ending::right_numbers, ending_of([&]() -> std::string {
           EmptyCache cache;
           CompileReport first, second;
           compiled({.strategy = "cpu"}, &first);
           std::vector<fs::path> files;
           for (const auto& e : fs::directory_iterator(cache.directory() / "kernels"))
             files.push_back(e.path());
           if (files.size() < 2) return "too few entries";
           const std::string last = bytes_of(files.back());
           for (std::size_t i = files.size(); i-- > 1;) put(files[i], bytes_of(files[i - 1]));
           put(files[0], last);
           const auto plan = std::make_shared<const Plan>(compiled({.strategy = "cpu"}, &second));
           return second.compiled == first.compiled ? judged(plan) : "a foreign entry was taken";
         }),
         "exchanged entries");
}

struct Call {
  const char* name;
  int error;
  Ending writing, compiling;  // when writing a plan file; when compiling with a cache
};

constexpr Call calls[] = {
    {"write", ENOSPC, Ending::message, Ending::right_numbers},
    {"write", EIO, Ending::message, Ending::right_numbers},
    {"fsync", EIO, Ending::message, Ending::right_numbers},
    {"rename", EACCES, Ending::message, Ending::right_numbers},
    {"open", EMFILE, Ending::message, Ending::right_numbers},
};

TEST(FailingCall, LeavesTheOldPlanFile) {
  for (const Call& c : calls)
    expect(c.writing, ending_of([&]() -> std::string {
             EmptyCache cache;
             const fs::path file = cache.directory() / "plan.hone";
             const Plan plan = compiled();
             write_plan(file, plan);
             const std::string before = bytes_of(file);
             try {
               fail_call(c.name, 1, c.error);
               write_plan(file, plan);
             } catch (const UserError& e) {
               fail_call("", 0, 0);
               if (bytes_of(file) != before) return "the old file is damaged";
               throw;
             }
             return calls_made() > 0 ? "nothing was said" : "the call was not made";
           }),
           cat(c.name, " ", std::strerror(c.error)));
}

TEST(FailingCall, LeavesCompilingWithoutACache) {
  for (const Call& c : calls)
    expect(c.compiling, ending_of([&] {
             EmptyCache cache;
             fail_call(c.name, 1, c.error);
             const auto plan = std::make_shared<const Plan>(compiled());
             fail_call("", 0, 0);
             return judged(plan);
           }),
           cat(c.name, " ", std::strerror(c.error)));
}

TEST(FailingCall, OfMemoryIsAMessage) {
  for (const char* name : {"mprotect", "mmap", "alloc"})
    expect(Ending::message, ending_of([&] {
             EmptyCache cache;
             const auto plan = std::make_shared<const Plan>(compiled());
             fail_call(name, 1, ENOMEM);
             return judged(plan);
           }),
           name);
}

// The n-th allocation and all later ones fail; n grows until a run needs fewer than n.
TEST(FailingCall, OfAnyAllocationEndsInAMessage) {
  int messages = 0;
  for (long n = 1; n < 40'000'000; n = n * 3 + 1) {
    const std::string ending = ending_of([&] {
      CompileOptions options{.strategy = "cpu", .cache = false};
      fail_call("new", n, ENOMEM);
      const auto plan = std::make_shared<const Plan>(compiled(options));
      const auto session = session_of(plan);
      session->run(model().inputs[0]);
      fail_call("", 0, 0);
      return judged(plan);
    });
    messages += ending.starts_with("message: ");
    EXPECT_TRUE(ending.starts_with("message: ") || ending == "right numbers")
        << n << ": " << ending;
    if (ending == "right numbers") break;
  }
  EXPECT_GT(messages, 5);
}

// An open library stays open, so these tests run in a process that has not used it.
bool is_fresh_process() {
  constexpr const char* mark = "HONE_TEST_IS_FRESH";
  if (std::getenv(mark)) return true;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  ::setenv(mark, "1", 1);
  const ProcessResult r = run_process(std::vector<std::string>{
      "/proc/self/exe", cat("--gtest_filter=", test.test_suite_name(), ".", test.name())});
  ::unsetenv(mark);
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_NE(r.output.find("[  PASSED  ] 1 test"), std::string::npos) << r.output;
  return false;
}

// A strategy that names the library fails without it; `auto` may do without.
TEST(MissingLibrary, IsNotReplacedInSilence) {
  if (!is_fresh_process()) return;
  for (const auto& [strategy, expected] :
       {std::pair("onednn", Ending::message), std::pair("auto", Ending::right_numbers)})
    expect(expected, ending_of([&] {
             fail_call("dlopen", 1, ENOENT);
             return judged(
                 std::make_shared<const Plan>(compiled({.strategy = strategy, .cache = false})));
           }),
           strategy);
}

TEST(MissingLibrary, IsMissedByAPlanThatNeedsIt) {
  if (!is_fresh_process()) return;
  expect(Ending::message, ending_of([]() -> std::string {
           EmptyCache cache;
           const fs::path file = cache.directory() / "plan.hone";
           // In a separate process, so that this one does not open the library.
           in_child([&] {
             write_plan(file, compiled({.strategy = "onednn"}));
             return std::string();
           });
           fail_call("dlopen", 1, ENOENT);
           return judged(std::make_shared<const Plan>(read_plan(file)));
         }),
         "a plan of library calls");
}

// Changes every remembered comparison that includes a library so that the library wins.
void let_libraries_win(const EmptyCache& cache) {
  const CompileCache times(cache.directory(), "times");
  for (const auto& file : fs::directory_iterator(cache.directory() / "times")) {
    const std::string hex = file.path().filename().string();
    const Hash128 key{std::stoull(hex.substr(0, 16), nullptr, 16),
                      std::stoull(hex.substr(16), nullptr, 16)};
    const std::vector<std::byte> entry = times.find(key).value();
    const Json known =
        Json::parse({reinterpret_cast<const char*>(entry.data()), entry.size()}, "measured times");
    const Json* candidates = known.find("candidates");
    if (!candidates) continue;  // a record of the machine's rates
    for (std::string_view library : default_backend().libraries)
      for (const Json& c : candidates->array())
        if (c.at("name").text_value() == library) {
          const std::string text = Json(Json::Object{{"winner", library},
                                                     {"forms", Json::Array{}},
                                                     {"library", library_version(library)},
                                                     {"candidates", *candidates}})
                                       .text();
          times.store(key, std::as_bytes(std::span(text)));
        }
  }
}

// A plan that `auto` made with the library runs without it and reports that.
TEST(MissingLibrary, IsReplacedInAPlanOfAuto) {
  if (!is_fresh_process()) return;
  expect(Ending::right_numbers, ending_of([]() -> std::string {
           EmptyCache cache;
           const fs::path file = cache.directory() / "plan.hone";
           const std::string made = in_child([&]() -> std::string {
             compiled({.measure = true});
             let_libraries_win(cache);
             CompileReport report;
             write_plan(file, compiled({}, &report));
             return report.library_groups > 0 ? "with a library" : "without";
           });
           if (made != "with a library") return made;
           const auto plan = std::make_shared<const Plan>(read_plan(file));
           std::size_t calls = 0;
           for (const Variant& v : plan->main().variants) calls += !libraries_of(v).empty();
           if (calls != 1 || plan->main().variants.size() != 2) return "no second variant";
           fail_call("dlopen", 1, ENOENT);
           std::vector<std::string> warnings;
           set_log_sink(
               [](void* to, const char* line) {
                 static_cast<std::vector<std::string>*>(to)->emplace_back(line);
               },
               &warnings);
           const std::string ending = judged(plan);
           set_log_sink(nullptr, nullptr);
           if (warnings.size() != 1 ||
               warnings[0].find("groups run generated kernels instead") == std::string::npos)
             return cat(warnings.size(), " warnings");
           return ending;
         }),
         "a plan of auto");
}

// ---- a failing code generator

class FailingTarget final : public Target {
 public:
  explicit FailingTarget(std::unique_ptr<Target> good) : good_(std::move(good)) {}
  const TargetInfo& info() const override { return good_->info(); }
  std::string_view version() const override { return good_->version(); }
  Listing list(const CompileJob& job) const override { return good_->list(job); }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    if (jobs.empty()) return {};
    std::vector<Binary> out = good_->compile(jobs, pool);
    how(out);
    return out;
  }

  static void (*how)(std::vector<Binary>&);

 private:
  std::unique_ptr<Target> good_;
};
void (*FailingTarget::how)(std::vector<Binary>&) = nullptr;

struct Failure {
  const char* name;
  void (*how)(std::vector<Binary>&);
};

constexpr Failure failures[] = {
    {"the compiler refuses", [](std::vector<Binary>&) { throw UserError("planted"); }},
    {"a binary is missing", [](std::vector<Binary>& b) { b.pop_back(); }},
    {"a binary is empty", [](std::vector<Binary>& b) { b.front().code.clear(); }},
    {"an entry is missing", [](std::vector<Binary>& b) { b.front().entries.clear(); }},
    {"an entry lies outside",
     [](std::vector<Binary>& b) { b.front().entries[0].offset = 1 << 30; }},
};

TEST(FailingCodeGenerator, IsAMessage) {
  for (const Failure& f : failures)
    expect(Ending::message, ending_of([&]() -> std::string {
             Backend b = backend("cpu");
             FailingTarget::how = f.how;
             b.target = [](std::string_view isa) -> std::unique_ptr<Target> {
               return std::make_unique<FailingTarget>(backend("cpu").target(isa));
             };
             try {
               return judged(std::make_shared<const Plan>(
                   compiled({.strategy = "cpu", .backend = &b, .cache = false})));
             } catch (const InternalError& e) {
               return cat("message: ", e.what());
             }
           }),
           f.name);
}

}  // namespace
}  // namespace hone::test
