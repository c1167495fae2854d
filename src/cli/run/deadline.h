// --deadline: a command that takes longer ends with a message. A run looks at it between steps;
// what does not come to a step is ended with the process.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "cli/run/arguments.h"

namespace hone::cli {

class Deadline {
 public:
  Deadline();
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> at() const { return at_; }
  // From now on.
  void start(double seconds);

 private:
  class Watch;
  std::optional<Clock::time_point> at_;
  std::unique_ptr<Watch> watch_;
};

// The option; the time starts when it is read.
void add_deadline(Arguments&, Deadline&);

}  // namespace hone::cli
