// Times of candidates that this machine measured in earlier runs, and the time that is left for
// measuring others.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/store.h"
#include "kernel/tuning.h"
#include "plan/plan.h"
#include "runtime/device.h"

namespace hone {

// Seconds that all comparisons of an optimization may take together.
class TimeBudget {
 public:
  explicit TimeBudget(double seconds) : left_(seconds) {}
  double left() const { return left_; }

  // Takes the time that it lives from the budget.
  class Use {
   public:
    explicit Use(TimeBudget& budget) : budget_(budget) {}
    ~Use() { budget_.left_ -= seconds(); }
    Use(const Use&) = delete;
    double seconds() const {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

   private:
    TimeBudget& budget_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

 private:
  double left_;
};

// By structure, layouts and sizes of the group, target, build, processor and threads: entries of
// another machine that shares the directory are not found.
class GroupTimes {
 public:
  GroupTimes(Store& store, std::string_view target, const Device* device, int threads);

  // Of a candidate that its builder makes in many ways.
  struct Form {
    std::string base;  // its name without tuning
    Tuning tuning;
  };
  struct Known {
    std::string winner;            // its name among the candidates
    std::vector<Form> forms = {};  // of the winner and of what stands in for a library, if tuned
    std::string library = {};      // that the winner calls and its version; empty: none
    std::vector<CandidateRecord> records = {};
  };
  // `group` says all about the group and its sizes.
  std::optional<Known> find(std::string_view group) const;
  void store(std::string_view group, const Known&) const;

 private:
  Hash128 key(std::string_view group) const;
  Store& store_;
  std::string machine_;
};

// "NAME VERSION"; opens the library.
std::string library_version(std::string_view library);

}  // namespace hone
