// Which candidate computes each group: by strategy, by the clock or, without it, by order, and only
// after the candidate was checked against the reference.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "compile/compile.h"
#include "compile/kernels.h"
#include "compile/sample.h"
#include "compile/trial_memory.h"
#include "schedule/schedule.h"

namespace hone {

struct Choice {
  Candidate candidate;
  std::string reason;
  std::vector<CandidateRecord> records;  // of all candidates, the chosen one among them
  bool is_library = false;
};

class Chooser {
 public:
  Chooser(const Backend& backend, const CompileOptions& options, KernelCompiler& compile,
          std::shared_ptr<Device> device, std::shared_ptr<ThreadPool> pool,
          const CompileCache& verdicts, CompileReport& report);

  // Sizes of the symbols: small ones to check candidates at, those of use to time them at.
  struct Trials {
    Sizing check, time;
  };

  // One choice for each spec of the schedule; those of specs met in earlier schedules are kept.
  // Throws UserError naming a group and its origins when no candidate passes.
  std::vector<Choice> operator()(const Schedule&, const Trials&);

 private:
  struct Option {
    Candidate candidate;
    bool is_library = false;
    CandidateRecord record;
    bool is_out() const { return !record.refused.empty(); }
  };
  // A structure that was not met before, with its candidates.
  struct Contest {
    const ScheduledSpec* spec = nullptr;
    std::string_view origins;  // of the first group that has it
    std::string key;
    std::vector<Option> options;
    std::size_t best = 0;
  };
  std::vector<Contest> new_contests(const Schedule&, const std::vector<std::string>& keys);
  void compile_preferred(const std::vector<Contest>&);
  void check(Contest&, const Sizing&);
  Choice decide(Contest&, const Trials&);
  std::vector<Option> options_for(const GroupSpec&);
  // The first that is not out, a library's first when the strategy is its name.
  std::size_t preferred(const std::vector<Option>&) const;
  bool passes(const GroupSpec&, Option&, const Sizing&);
  Hash128 verdict_key(const GroupSpec&, const Candidate&, const Sizing&) const;
  std::size_t measured_best(const GroupSpec&, std::vector<Option>&, std::size_t start,
                            const Trials&, std::string& reason);

  const Backend& backend_;
  const CompileOptions& options_;
  KernelCompiler& compile_;
  std::shared_ptr<TrialMemory> trial_memory_;
  std::shared_ptr<ThreadPool> pool_;
  const CompileCache& verdicts_;
  CompileReport& report_;
  std::shared_ptr<ThreadPool> one_thread_ = make_thread_pool({.threads = 1, .affinity = {}});
  std::atomic<int> verified_{0}, verified_from_cache_{0};
  std::unordered_map<std::string, Choice> made_;
};

}  // namespace hone
