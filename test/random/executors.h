// The ways in which a function is computed besides the reference. Adding one takes one more row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "test/random/generate.h"

namespace hone::fuzz {

using Arrays = std::vector<Array>;

struct Executor {
  std::string name;
  int share = 100;         // percentage of the random functions it is tried on
  bool same_bits = false;  // must give the same bits as the first executor
  // The results for each of the inputs. Throws if there are none; throws NothingToDo if the
  // executor does not apply to the function.
  std::function<std::vector<Arrays>(const Function&, const std::vector<Arrays>& inputs)> run;
};

struct NothingToDo {};

// The first is the compiler with its default settings.
const std::vector<Executor>& executors();

// Keeps kernels in this process's own memory and drops them when there are too many.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  void empty_when_large();

 private:
  std::string path_;
};

struct Failure {
  std::string executor;  // "" if no executor was involved
  std::string what;
};

struct Verdict {
  std::vector<Failure> failures;
  int comparisons = 0, explained = 0;
  int left_out = 0;  // executors that had nothing to do
};

// Which executors are tried.
using Choice = std::function<bool(const Executor&)>;
Verdict check(const Case&, const Choice&);

}  // namespace hone::fuzz
