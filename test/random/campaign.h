// Runs many random functions in child processes, so that a crash or an endless loop is also a
// finding, identified by its seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/random/executors.h"

namespace hone::fuzz {

struct CampaignOptions {
  std::uint64_t seed = 1;  // function i uses seed + i
  std::int64_t count = 1000;
  double seconds = 0;        // 0: no limit
  int jobs = 0;              // processes; 0: one for each processor
  int nodes = 0;             // per function; 0: 2 to 60
  bool derivatives = false;  // as further results
  bool all = false;          // every executor on every function
  std::string only;          // only the first executor and the one of this name
  int most_seconds = 100;    // per function
};

struct Finding {
  std::uint64_t seed = 0;
  std::vector<Failure> failures;  // empty if the process died
  std::string death;              // "signal 11", "took too long"
};

struct CampaignResult {
  std::int64_t functions = 0, nodes = 0, comparisons = 0, explained = 0, left_out = 0;
  double seconds = 0;
  std::vector<Finding> findings;
};

CampaignResult run_campaign(const CampaignOptions&);

// The executors selected for a seed.
Choice choice_for(std::uint64_t seed, const CampaignOptions&);

// Runs a case in a separate process.
Finding try_apart(const Case&, const Choice&, int most_seconds);

// The smallest case that fails in the same way as the finding.
Case minimised(const Case&, const Finding&, const CampaignOptions&);

std::string text_of(const Finding&);

}  // namespace hone::fuzz
