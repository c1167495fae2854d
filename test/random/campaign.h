// Many random functions in child processes, so that a crash or an endless loop is one more finding,
// named by its seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/random/executors.h"

namespace hone::fuzz {

struct CampaignOptions {
  std::uint64_t seed = 1;  // function i is that of seed + i
  std::int64_t count = 1000;
  double seconds = 0;      // 0: no limit
  int jobs = 0;            // processes; 0: one for each processor
  int nodes = 0;           // of each function; 0: 2 to 60
  bool all = false;        // every executor on every function
  std::string only;        // the first executor and the one of this name
  int most_seconds = 100;  // of one function
};

struct Finding {
  std::uint64_t seed = 0;
  std::vector<Failure> failures;  // none: the process died
  std::string death;              // "signal 11", "took too long"
};

struct CampaignResult {
  std::int64_t functions = 0, nodes = 0, comparisons = 0, explained = 0, left_out = 0;
  double seconds = 0;
  std::vector<Finding> findings;
};

CampaignResult run_campaign(const CampaignOptions&);

// The executors that a seed chooses.
Choice choice_for(std::uint64_t seed, const CampaignOptions&);

// What becomes of a case in a process of its own.
Finding try_apart(const Case&, const Choice&, int most_seconds);

// The smallest case that fails as the finding does.
Case minimised(const Case&, const Finding&, const CampaignOptions&);

std::string text_of(const Finding&);

}  // namespace hone::fuzz
