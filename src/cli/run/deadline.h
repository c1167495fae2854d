// --deadline: a command that takes longer ends with a message. A run checks the deadline between
// steps; if no step is reached, the process is terminated.
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
  // The deadline counts from now.
  void start(double seconds);

 private:
  class Watch;
  std::optional<Clock::time_point> at_;
  std::unique_ptr<Watch> watch_;
};

// Adds the option; the time starts when it is parsed.
void add_deadline(Arguments&, Deadline&);

}  // namespace hone::cli
