// The ways in which a function is computed besides the reference. One more is one more row.
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
  int share = 100;         // per cent of the random functions it is tried on
  bool same_bits = false;  // as the first executor's
  // The results for each of the inputs. Throws when there are none; NothingToDo when the function
  // is none for this executor.
  std::function<std::vector<Arrays>(const Function&, const std::vector<Arrays>& inputs)> run;
};

struct NothingToDo {};

// The first is the compiler as people use it.
const std::vector<Executor>& executors();

// Kernels are kept in memory of this process's own and dropped when they are many.
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
  std::string executor;  // "" for what needs none
  std::string what;
};

struct Verdict {
  std::vector<Failure> failures;
  int comparisons = 0, explained = 0;
  int left_out = 0;  // executors that had nothing to do
};

// Which of the executors are tried.
using Choice = std::function<bool(const Executor&)>;
Verdict check(const Case&, const Choice&);

}  // namespace hone::fuzz
