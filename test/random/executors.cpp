#include "test/random/executors.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>

#include "backend/cpu/device/cpu_device.h"
#include "backend/devices/devices.h"
#include "compile/compile.h"
#include "compile/spread.h"
#include "ops/ops.h"
#include "plan/plan_file.h"
#include "runtime/session.h"
#include "test/codegen/guarded.h"
#include "test/far/far.h"
#include "test/random/c_executor.h"
#include "verify/reduce/judge.h"

namespace hone::fuzz {

namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Plan> plan_of(const Function& f, CompileOptions options) {
  options.threads = 1;
  options.passes.verify_each = true;
  return std::make_shared<const Plan>(compile({"random", {{{}, f}}, {}}, options));
}

std::vector<Arrays> run_plan(std::shared_ptr<const Plan> plan, const std::vector<Arrays>& inputs,
                             int threads = 1) {
  Session session(Executable::load(plan, open_devices(*plan)), {.threads = threads});
  std::vector<Arrays> out;
  for (const Arrays& i : inputs) out.push_back(session.run(i));
  return out;
}

Executor compiled(std::string name, int share, const CompileOptions& options) {
  return {std::move(name), share, false, [options](const Function& f, const auto& inputs) {
            return run_plan(plan_of(f, options), inputs);
          }};
}

CompileOptions cpu() { return {.strategy = "cpu", .verification = Verification::none}; }

CompileOptions without(std::string_view pass) {
  CompileOptions o = cpu();
  o.passes.off = {std::string(pass)};
  return o;
}

CompileOptions without_passes() {
  CompileOptions o = cpu();
  for (const Pass& p : pipeline())
    if (!p.is_needed) o.passes.off.emplace_back(p.name);
  return o;
}

Executor on_threads(int threads) {
  return {cat("threads-", threads), 8, true, [=](const Function& f, const auto& inputs) {
            return run_plan(plan_of(f, cpu()), inputs, threads);
          }};
}

std::vector<Arrays> through_file(const Function& f, const std::vector<Arrays>& inputs) {
  const fs::path file = fs::path(std::getenv("HONE_CACHE_DIR")) / "plan.hone";
  write_plan(file, *plan_of(f, cpu()));
  return run_plan(std::make_shared<const Plan>(read_plan(file)), inputs);
}

// ---- memory that reveals errors: it is followed by inaccessible pages, and filled with NaN bytes
// before it is written.

constexpr int poison = 0xff;

std::size_t padded(std::size_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

class TellingAllocator : public Allocator {
 public:
  DeviceMemory alloc(std::size_t bytes) override {
    auto memory = std::make_unique<test::GuardedBuffer>(padded(bytes), test::Guard::behind);
    auto* data = static_cast<std::byte*>(memory->data());
    std::memset(data, poison, padded(bytes));
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    memory_[address] = std::move(memory);
    return {address, 0};
  }
  void free(DeviceMemory m, std::size_t) noexcept override { memory_.erase(m.handle); }

 private:
  std::map<std::uint64_t, std::unique_ptr<test::GuardedBuffer>> memory_;
};

// A tensor in its own memory.
class Tensor {
 public:
  Tensor(DType dtype, std::vector<std::int64_t> dims)
      : array_(Array::zeros(dtype, std::move(dims))),
        bytes_(array_.bytes().size()),
        memory_(padded(bytes_), test::Guard::behind) {
    std::memset(memory_.data(), poison, padded(bytes_));
  }
  explicit Tensor(const Array& a) : Tensor(a.dtype(), a.dims()) {
    std::memcpy(memory_.data(), a.bytes().data(), bytes_);
  }
  TensorRef ref() const {
    return {array_.dtype(), array_.dims(),
            memory_of(static_cast<std::byte*>(memory_.data()), bytes_)};
  }
  Array array() const {
    return Array(array_.dtype(), array_.dims(),
                 Storage::copy({static_cast<const std::byte*>(memory_.data()), bytes_}));
  }
  void expect_bytes_behind() const {
    const auto* data = static_cast<const unsigned char*>(memory_.data());
    for (std::size_t i = bytes_; i < padded(bytes_); ++i)
      if (data[i] != poison) throw InternalError("bytes behind a tensor were written");
  }

 private:
  Array array_;
  std::size_t bytes_;
  test::GuardedBuffer memory_;
};

Arrays run_in_guarded_memory(Session& session, const Arrays& inputs) {
  const Plan& plan = session.executable().plan();
  std::vector<std::unique_ptr<Tensor>> in, out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(std::make_unique<Tensor>(inputs[i]));
    session.bind_input(i, in[i]->ref());
  }
  const std::vector<std::vector<std::int64_t>> dims = session.output_dims();
  std::vector<const Tensor*> results;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int alias = plan.main().result_alias.at(i);
    if (alias < 0)
      out.push_back(std::make_unique<Tensor>(plan.main().results[i].type.dtype, dims[i]));
    results.push_back(alias < 0 ? out.back().get() : in[static_cast<std::size_t>(alias)].get());
    session.bind_output(i, results[i]->ref());
  }
  session.run();
  for (const auto& list : {&in, &out})
    for (const auto& t : *list) t->expect_bytes_behind();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!plan.main().params[i].donated &&
        !std::ranges::equal(in[i]->array().bytes(), inputs[i].bytes()))
      throw InternalError(cat("input ", i, " was written"));
  Arrays got;
  for (const Tensor* t : results) got.push_back(t->array());
  return got;
}

std::vector<Arrays> guarded(const Function& f, const std::vector<Arrays>& inputs) {
  Session session(Executable::load(plan_of(f, cpu()), open_device("cpu")),
                  {.threads = 1, .allocator = std::make_shared<TellingAllocator>()});
  std::vector<Arrays> out;
  for (const Arrays& i : inputs) out.push_back(run_in_guarded_memory(session, i));
  return out;
}

CompileOptions far() {
  return {.strategy = "auto",
          .backend = &test::far_backend(),
          .verification = Verification::none,
          .cache = false};
}

// Places each group on the processor or on one of two far devices, pseudorandomly.
std::vector<Arrays> spread_by_chance(const Function& f, const std::vector<Arrays>& inputs) {
  CompileOptions near = cpu(), distant = far();
  near.is_joined = distant.is_joined = true;
  const std::shared_ptr<const Plan> here = plan_of(f, near), there = plan_of(f, distant);
  const Plan* plans[] = {here.get(), there.get(), there.get()};
  std::uint64_t state = hash128(print(f)).low | 1;
  Assignment assignment;
  for (std::size_t g = 0; g < here->main().variants[0].groups.size(); ++g) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    assignment.push_back(static_cast<std::uint16_t>((state >> 33) % 3));
  }
  auto plan = std::make_shared<const Plan>(spread(plans, std::span(&assignment, 1)));
  return run_plan(plan, inputs);
}

// Uses the placement that the strategy predicts to be best, without measuring.
std::vector<Arrays> spread_by_multi(const Function& f, const std::vector<Arrays>& inputs) {
  std::shared_ptr<const Plan> plan;
  try {
    plan = plan_of(f, {.strategy = "multi", .verification = Verification::none});
  } catch (const UserError& e) {
    if (std::strstr(e.what(), "no part of it can be computed on another device"))
      throw NothingToDo();
    throw;
  }
  return run_plan(plan, inputs);
}

// gcc takes longer than everything else together.
constexpr int c_share = 3;

std::vector<Executor> make_executors() {
  std::vector<Executor> all;
  all.push_back(compiled("cpu", 100, cpu()));
  for (const Pass& p : pipeline())
    if (!p.is_needed) all.push_back(compiled(cat("without-", p.name), 10, without(p.name)));
  all.push_back(compiled("without-passes", 12, without_passes()));
  CompileOptions one = cpu();
  one.one_op_groups = true;
  all.push_back(compiled("one-op-groups", 12, one));
  CompileOptions v3 = cpu();
  v3.targets = {"x86-64-v3"};
  all.push_back(compiled("x86-64-v3", 15, v3));
  all.push_back(compiled("verified", 8, {.strategy = "cpu"}));
  all.push_back(compiled("onednn", 10, {.strategy = "onednn", .verification = Verification::none}));
  all.push_back({"c", c_share, false, run_as_c});
  all.push_back({"guarded", 15, true, guarded});
  all.push_back({"file", 8, true, through_file});
  static const test::FarListed listed;
  all.push_back(compiled("far", 10, far()));
  all.push_back({"spread", 5, false, spread_by_chance});
  all.push_back({"multi", 5, false, spread_by_multi});
  all.push_back(on_threads(2));
  all.push_back(on_threads(4));
  return all;
}

}  // namespace

const std::vector<Executor>& executors() {
  static const std::vector<Executor> all = make_executors();
  return all;
}

ScratchDirectory::ScratchDirectory() {
  fs::path parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  path_ = parent / cat("hone-random-", ::getpid());
  fs::remove_all(path_);
  fs::create_directories(path_);
  fs::permissions(path_, fs::perms::owner_all);
  ::setenv("HONE_CACHE_DIR", path_.c_str(), 1);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void ScratchDirectory::empty_when_large() {
  constexpr std::ptrdiff_t many = 2000;
  const fs::path kernels = fs::path(path_) / "kernels";
  if (fs::is_directory(kernels) &&
      std::distance(fs::directory_iterator(kernels), fs::directory_iterator()) > many)
    fs::remove_all(kernels);
}

namespace {

std::string same_bits(const std::vector<Arrays>& a, const std::vector<Arrays>& b) {
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::size_t i = 0; i < a[r].size(); ++i)
      if (!std::ranges::equal(a[r][i].bytes(), b[r][i].bytes()))
        return cat("run ", r, ": result ", i, " ", a[r][i].type(), " has other bits");
  return "";
}

// Large constants are compared by storage, which a text round trip does not preserve.
bool has_large_constant(const Function& f) {
  constexpr std::size_t compared_by_content = 4096;
  for (NodeId n : live_nodes(f))
    for (const Attrs::Entry& e : f.graph().attrs(n).entries()) {
      if (const auto* a = std::get_if<Array>(&e.second);
          a && a->bytes().size() > compared_by_content)
        return true;
      if (const auto* body = std::get_if<FunctionRef>(&e.second);
          body && has_large_constant(**body))
        return true;
    }
  return false;
}

std::string text_round_trip(const Function& f) {
  const std::string text = print(f);
  const Function again = parse(text, find_op);
  if (!has_large_constant(f) && !same_structure(f, again))
    return "the text reads as another function";
  return print(again) == text ? "" : "the text changes when it is printed again";
}

class Checker {
 public:
  Checker(const Case& c, Verdict& verdict) : case_(c), verdict_(verdict) {}

  void operator()(const Choice& chosen) {
    guard("", [&] { return text_round_trip(case_.function); });
    if (!prepare()) return;
    for (const Executor& e : executors())
      if (chosen(e)) guard(e.name, [&] { return judged(e); });
    for (const Judge& j : judges_) verdict_.explained += j.explained();
  }

 private:
  bool prepare() {
    guard("ref", [&] {
      for (const CaseRun& r : case_.runs) {
        judges_.emplace_back(case_.function, r);
        inputs_.push_back(judges_.back().inputs());
      }
      return std::string();
    });
    return judges_.size() == case_.runs.size();
  }

  std::string judged(const Executor& e) {
    std::vector<Arrays> got = e.run(case_.function, inputs_);
    for (std::size_t r = 0; r < got.size(); ++r) {
      ++verdict_.comparisons;
      if (std::string why = judges_[r](got[r]); !why.empty()) return cat("run ", r, ": ", why);
    }
    if (e.same_bits && !first_.empty()) return same_bits(got, first_);
    if (&e == &executors().front()) first_ = std::move(got);
    return "";
  }

  template <class F>
  void guard(const std::string& executor, F f) {
    std::string why;
    try {
      why = f();
    } catch (const NothingToDo&) {
      ++verdict_.left_out;
    } catch (const std::exception& e) {
      why = cat("throws: ", e.what());
    }
    if (!why.empty()) verdict_.failures.push_back({executor, why});
  }

  const Case& case_;
  Verdict& verdict_;
  std::deque<Judge> judges_;
  std::vector<Arrays> inputs_;
  std::vector<Arrays> first_;
};

}  // namespace

Verdict check(const Case& c, const Choice& chosen) {
  Verdict v;
  Checker(c, v)(chosen);
  return v;
}

}  // namespace hone::fuzz
