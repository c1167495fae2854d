// Times of candidates that this machine measured in earlier runs, and the time left for measuring
// others.
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

// Total seconds for all comparisons of an optimization.
class TimeBudget {
 public:
  explicit TimeBudget(double seconds) : left_(seconds) {}
  double left() const { return left_; }

  // Subtracts its lifetime from the budget.
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

// The key is the group's structure, layouts and sizes, the target, build, processor and number of
// threads; so entries of another machine that shares the directory are not found.
class GroupTimes {
 public:
  GroupTimes(Store& store, std::string_view target, const Device* device, int threads);

  // A form of a candidate whose builder can make several.
  struct Form {
    std::string base;  // its name without tuning
    Tuning tuning;
  };
  struct Known {
    std::string winner;            // its name among the candidates
    std::vector<Form> forms = {};  // of the winner and of the library's replacement, if tuned
    std::string library = {};      // that the winner calls, with version; empty: none
    std::vector<CandidateRecord> records = {};
  };
  // `group` describes the group and its sizes completely.
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
