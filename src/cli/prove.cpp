#include "cli/prove.h"

#include "backend/devices/devices.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "cli/run/exit.h"
#include "cli/run/self_test.h"
#include "plan/plan_file.h"
#include "verify/whole.h"

namespace hone::cli {

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
    if (done.status != exit_ok) refuse(file, done.output);
  }
  const auto bytes = static_cast<std::int64_t>(fs::file_size(temporary.path()));
  move_file(temporary.path(), file);
  return bytes;
}

}  // namespace hone::cli
