// Chooses the candidate for each group: by strategy, by measured times or, without times, by order.
// A candidate is chosen only after it was checked against the reference.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "compile/group_times.h"
#include "compile/kernels.h"
#include "compile/options.h"
#include "compile/suspects.h"
#include "schedule/schedule.h"
#include "verify/kernel/trial_memory.h"
#include "verify/sample.h"

namespace hone {

struct Choice {
  Candidate candidate;
  std::string base;  // its name without tuning
  std::string reason;
  std::vector<CandidateRecord> records;  // of all candidates, including the chosen one
  // If the candidate calls a library and the plan may be moved to other machines: a candidate that
  // computes the group without the library.
  std::optional<Candidate> without_library = {};
  bool is_library = false;
};

class Chooser {
 public:
  // All referenced objects must outlive the chooser.
  struct Context {
    const Backend& backend;
    const CompileOptions& options;
    KernelCompiler& compile;
    std::shared_ptr<Device> device;
    std::shared_ptr<ThreadPool> pool;
    CompileStore& store;
    TimeBudget& budget;
    CompileReport& report;
  };
  explicit Chooser(const Context&);

  // Sizes of the symbols: small ones for checks, realistic ones for timing. At sizes that are not
  // the usual ones, a quarter of the remaining time is used and no forms are tried.
  struct Trials {
    Sizing check, time;
    bool are_usual = true;
    std::vector<Sizing> check_also = {};  // sizes at which kernels take other paths
  };

  // Returns one choice for each spec of the schedule. Choices for specs of earlier schedules are
  // kept. Throws UserError naming a group and its origins when no candidate passes.
  std::vector<Choice> operator()(const Schedule&, const Trials&);

 private:
  struct Option {
    Candidate candidate;
    std::string library;
    std::optional<Function> rounded;  // as in the Proposal
    CandidateRecord record;
    std::string base;  // the target's name for it
    Tuning tuning;
    bool is_checked = false;
    bool is_out() const { return !record.refused.empty(); }
  };
  // A new structure, with its candidates.
  struct Contest {
    const ScheduledSpec* spec = nullptr;
    std::string_view origins;  // of the first group with this structure
    std::string key;
    std::vector<Option> options;
    std::size_t best = 0;
    std::string reason;
    double work = 0;  // estimated cost of all groups with this structure; without a unit
  };
  std::vector<Contest> new_contests(const Schedule&, const std::vector<std::string>& keys,
                                    const Trials&);
  std::vector<Option> options_for(const GroupSpec&) const;
  // The first option that is not out; if the strategy names a library, that library's options come
  // first.
  std::size_t preferred(const std::vector<Option>&) const;
  void compile_kernels(const std::vector<Contest>&, bool all);
  // Checks candidates in order until one passes; the others are out.
  void settle(Contest&, const Trials&);
  bool passes(const GroupSpec&, Option&, const Trials&);
  void verify_option(const GroupSpec&, Option&, const Trials&);
  // For the check of a candidate.
  std::chrono::nanoseconds check_time_left() const;
  Hash128 suspect_key(const GroupSpec&, const Option&) const;
  std::string kernels_text(const Candidate&) const;
  Hash128 verdict_key(const GroupSpec&, const Candidate&, const Trials&) const;

  bool is_open(const Contest&) const;  // the choice depends on times
  bool take_known_times(Contest&);
  void measure(const std::vector<Contest>& all, std::vector<Contest*> open, const Trials&);
  void measure(Contest&, const Trials&, double seconds);
  // Times the options in `field`; the first is the default. Returns the index of the best, empty
  // when none can run.
  std::optional<std::size_t> best_of(Contest&, std::span<const std::size_t> field, const Trials&,
                                     double seconds);
  void tune(Contest&, const Trials&, double seconds);
  void tune(Contest&, const std::string& candidate, const Trials&, double seconds);
  static std::vector<std::string> worth_tuning(const Contest&);
  double prediction(const Candidate&) const;  // -1: it calls a library
  // False when the group does not allow the tuning, or an option already has the same kernels.
  bool add_tuned(Contest&, std::string_view base, const Tuning&) const;
  std::string key_of_unmeasured(const Contest&) const;
  static GroupTimes::Known known_of(const Contest&);
  static std::vector<std::size_t> by_time_without_library(const std::vector<Option>&);
  void remember(const Contest&, const Trials&) const;
  // A checked candidate without library calls, for machines that lack the library; empty when none
  // passes.
  std::optional<Candidate> without_library(Contest&, const Trials&);
  Choice choice_of(Contest&, const Trials&);

  Context c_;
  std::shared_ptr<TrialMemory> trial_memory_;
  GroupTimes times_;
  Suspects suspects_;
  std::atomic<int> verified_{0}, verified_from_cache_{0}, verified_shortly_{0};
  std::atomic<std::int64_t> check_time_{0};  // nanoseconds of all threads
  std::unordered_map<std::string, Choice> made_;
};

}  // namespace hone
