#include "optimize/prove.h"

#include <algorithm>
#include <utility>

#include "backend/devices/devices.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "compile/memory_need.h"
#include "plan/plan_file.h"
#include "runtime/self_test.h"
#include "verify/model/whole.h"

namespace hone {

namespace fs = std::filesystem;

namespace {

// Removed with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& beside) : path_(unused_name(beside)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

[[noreturn]] void refuse(const fs::path& file, std::string_view why) {
  throw InternalError(
      file.string(),
      ": the written plan does not compute what was verified, so it was not kept: ", why);
}

void prove_here(const fs::path& file, const fs::path& written) {
  const auto plan = std::make_shared<const Plan>(read_plan(written, VerifyData::all));
  try {
    run_self_tests(plan, open_devices(*plan), {.is_same_machine = true});
  } catch (const UserError& e) {
    refuse(file, e.what());
  }
}

}  // namespace

std::vector<std::string> self_test_command() {
  const fs::path self = this_program();
  const fs::path beside = self.parent_path() / "hone-run";
  std::error_code error;
  if (fs::is_regular_file(beside, error)) return {beside.string(), "--selftest"};
  if (self.filename() == "hone") return {self.string(), "selftest"};
  return {};
}

void state_written_memory(const fs::path& beside, Plan& plan,
                          std::span<const std::vector<Array>> inputs, int threads,
                          std::optional<std::int64_t> limit) {
  const auto chosen = std::ranges::find_if(plan.main().strategies, &StrategyRecord::chosen);
  if (chosen == plan.main().strategies.end()) return;
  constexpr int most_writes = 4;  // another number of digits changes the length of the header
  for (int i = 0; i < most_writes; ++i) {
    const TemporaryFile temporary(beside);
    write_plan(temporary.path(), plan);
    const auto read = std::make_shared<const Plan>(read_plan(temporary.path()));
    const auto executable = Executable::load(read, open_devices(*read));
    std::int64_t most = 0;
    for (const std::vector<Array>& set : inputs) {
      const MemoryReport m = memory_need(executable, set, threads, false);
      if (limit) check_memory_need(m, plan.name, *limit, false);
      most = std::max(most, static_cast<std::int64_t>(m.peak()));
    }
    if (std::exchange(chosen->peak_bytes, most) == most) return;
  }
}

std::int64_t write_proved(const fs::path& file, const Plan& plan,
                          std::vector<std::string> command) {
  const TemporaryFile temporary(file);
  write_plan(temporary.path(), plan);
  if (contents_of(read_plan(temporary.path(), VerifyData::all)) != contents_of(plan))
    refuse(file, "reading it gives another plan than was written");
  if (command.empty()) {
    prove_here(file, temporary.path());
  } else {
    command.insert(command.end(), {"--same-machine", "-q", temporary.path().string()});
    const ProcessResult done = run_process(command);
    if (done.status >= 128) refuse(file, cat("its self-test ended by signal ", done.status - 128));
    if (done.status != 0) refuse(file, done.output);
  }
  const auto bytes = static_cast<std::int64_t>(fs::file_size(temporary.path()));
  move_file(temporary.path(), file);
  return bytes;
}

}  // namespace hone
