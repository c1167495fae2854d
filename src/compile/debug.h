// What HONE_DEBUG prints and HONE_DUMP writes while a model is compiled. Decides nothing.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "codegen/target.h"
#include "compile/pipeline.h"
#include "plan/plan.h"

namespace hone {

class Debug {
 public:
  enum Level : long { times = 1, passes, plan, source, graphs, rules };  // of HONE_DEBUG

  // Files go to HONE_DUMP/`name`, whose characters that a path could misread become '_'.
  explicit Debug(std::string_view name);

  // Whether anybody sees what a level shows: if not, its text need not be made.
  bool wants(Level level) const { return shown_ >= level || !directory_.empty(); }
  // Prints the text to stderr; a file, which grows by it, when `file` is not empty.
  void show(Level, const std::filesystem::path& file, std::string_view text);

  // One variant: its function as imported, and each pass when it is done.
  void imported(const Function&, const std::filesystem::path& variant);
  void pass(const PassRecord&, const std::filesystem::path& variant);
  // A kernel as loop nest; in files also as IR and as assembly.
  void kernel(const Kernel&, const Target&, const std::string& entry);

 private:
  void write(const std::filesystem::path& file, std::string_view text);
  long shown_;
  std::filesystem::path directory_;          // empty: no files
  std::set<std::filesystem::path> written_;  // by this compilation; what lay there goes
};

}  // namespace hone
