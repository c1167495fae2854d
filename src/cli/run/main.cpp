// hone-run: loads a plan file and runs it once. Holds no compiler, so it starts in milliseconds;
// `hone run` does the same and takes models too.
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "cli/run/exit.h"
#include "cli/run/run.h"
#include "plan/plan_file.h"

namespace hone::cli {
namespace {

constexpr std::string_view help =
    R"(Runs a plan file once on given inputs.
usage: hone-run PLAN.hone [options]

  -i, --input NAME=FILE    an input: .npy, .pb (TensorProto) or raw bytes; FILE alone takes the
                           first input that is not given yet; repeatable
  -o, --output-dir DIR     where NAME.npy of each result goes (default: here)
      --threads N          threads to use; 0, the default, asks the machine
      --max-memory BYTES   refuse to run when more is needed
      --time               print what opening and running took
      --json               print JSON
  -q, --quiet              print nothing
      --version            print the version
  -h, --help               print this

example: hone-run model.hone --input image=x.npy --output-dir out
exit codes: 0 done, 2 command line, 3 plan, file or machine, 4 defect of hone
)";

// The command line is at fault.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string plan;
  PlanLimits limits;
  RunRequest request;
  bool wants_help = false, wants_version = false;
};

std::int64_t whole_number(std::string_view option, std::string_view text) {
  std::int64_t n = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0)
    throw UsageError(cat(option, ": '", text, "' is not a whole number"));
  return n;
}

// "--name value", "--name=value" and "-nvalue", one option at a time.
class Arguments {
 public:
  Arguments(int argc, char** argv) : at_(argv + 1), end_(argv + argc) {}

  bool next() {
    if (at_ == end_) return false;
    name_ = *at_++;
    given_.reset();
    const bool is_long = name_.starts_with("--");
    if (const std::size_t eq = name_.find('='); is_long && eq != name_.npos) {
      given_ = name_.substr(eq + 1);
      name_ = name_.substr(0, eq);
    } else if (!is_long && is_option() && name_.size() > 2) {
      given_ = name_.substr(2);
      name_ = name_.substr(0, 2);
    }
    return true;
  }
  bool is_option() const { return name_.size() > 1 && name_[0] == '-'; }
  bool is(std::string_view brief, std::string_view full) const {
    return name_ == full || (!brief.empty() && name_ == brief);
  }
  std::string value() {
    if (given_) return std::string(*given_);
    if (at_ == end_) throw UsageError(cat(name_, ": needs a value"));
    return *at_++;
  }
  // Of an option without value.
  void none() const {
    if (given_) throw UsageError(cat(name_, ": takes no value"));
  }
  const std::string_view& name() const { return name_; }

 private:
  char **at_, **end_;
  std::string_view name_;
  std::optional<std::string_view> given_;
};

bool* switch_of(const Arguments& a, Options& o) {
  if (a.is("", "--time")) return &o.request.print_times;
  if (a.is("", "--json")) return &o.request.json;
  if (a.is("-q", "--quiet")) return &o.request.quiet;
  if (a.is("", "--version")) return &o.wants_version;
  if (a.is("-h", "--help")) return &o.wants_help;
  return nullptr;
}

Options parse(int argc, char** argv) {
  Options o;
  for (Arguments a(argc, argv); a.next();) {
    if (!a.is_option()) {
      if (!o.plan.empty()) throw UsageError(cat(a.name(), ": a plan is given already, ", o.plan));
      o.plan = a.name();
    } else if (bool* on = switch_of(a, o)) {
      a.none();
      *on = true;
    } else if (a.is("-i", "--input")) {
      o.request.inputs.push_back(a.value());
    } else if (a.is("-o", "--output-dir")) {
      o.request.output_dir = a.value();
    } else if (a.is("", "--threads")) {
      o.limits.threads =
          static_cast<int>(std::min<std::int64_t>(whole_number(a.name(), a.value()), 1 << 20));
    } else if (a.is("", "--max-memory")) {
      o.limits.max_memory = whole_number(a.name(), a.value());
    } else {
      throw UsageError(cat(a.name(), ": is no option of hone-run"));
    }
  }
  if (o.plan.empty() && !o.wants_help && !o.wants_version) throw UsageError("no plan is given");
  return o;
}

int run(const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  const auto runner = plan_runner(std::make_shared<const Plan>(read_plan(o.plan)), o.limits);
  return run_once(*runner, o.request, std::chrono::steady_clock::now() - start);
}

int dispatch(int argc, char** argv) try {
  const Options o = parse(argc, argv);
  if (o.wants_help) std::fputs(std::string(help).c_str(), stdout);
  if (o.wants_version) std::puts("hone-run " HONE_VERSION);
  return o.wants_help || o.wants_version ? int{exit_ok} : run(o);
} catch (const UsageError& e) {
  std::fprintf(stderr, "hone-run: %s; see hone-run --help\n", e.what());
  return exit_usage;
}

}  // namespace
}  // namespace hone::cli

int main(int argc, char** argv) {
  // libgomp's threads would otherwise spin after each library call and starve our pool.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  return hone::cli::guarded("hone-run", [&] { return hone::cli::dispatch(argc, argv); });
}
