// Debug output while a model is compiled: HONE_DEBUG prints, HONE_DUMP writes files. Does not
// affect the result.
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
  enum Level : long { times = 1, passes, plan, source, graphs, rules };  // levels of HONE_DEBUG

  // Files go to HONE_DUMP/`name`; characters that are not safe in a path become '_'.
  explicit Debug(std::string_view name);

  // Whether output of a level is enabled; if not, its text need not be made.
  bool wants(Level level) const { return shown_ >= level || !directory_.empty(); }
  // Prints the text to stderr, and appends it to a file when `file` is not empty.
  void show(Level, const std::filesystem::path& file, std::string_view text);

  // For one variant: its function as imported, and the result of each pass.
  void imported(const Function&, const std::filesystem::path& variant);
  void pass(const PassRecord&, const std::filesystem::path& variant);
  // A kernel as a loop nest; in files also as IR and assembly.
  void kernel(const Kernel&, const Target&, const std::string& entry);

 private:
  void write(const std::filesystem::path& file, std::string_view text);
  long shown_;
  std::filesystem::path directory_;          // empty: no files
  std::set<std::filesystem::path> written_;  // by this compilation; older contents are replaced
};

}  // namespace hone
