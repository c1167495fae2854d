// A model read a second time, by other code: what plan and reference share, the import, is checked
// against it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "compile/source.h"
#include "import/import.h"

namespace hone::cli {

struct SecondReading {
  int nodes = 0;                        // those of branches, bodies and functions too
  int judged = 0;                       // whose results were compared with their operators' pages
  int alone = 0;                        // of these, in a model of their own only, on small operands
  std::map<std::string, int> left_out;  // the others, by operator
  std::string wrong;                    // the first difference; empty: there is none
};

// `source` is the model as it was read at first. A model that is much work for the reference is not
// run as a whole: its nodes are judged alone.
SecondReading read_again(const std::filesystem::path&, const ImportOptions&, const Source& source);

}  // namespace hone::cli
