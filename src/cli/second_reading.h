// Reads a model a second time with independent code. This checks the import, which plan and
// reference share.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "compile/source.h"
#include "import/import.h"

namespace hone::cli {

struct SecondReading {
  int nodes = 0;   // including those in branches, bodies and functions
  int judged = 0;  // nodes whose results were checked against their operators' pages
  int alone = 0;   // of these, checked only in a model of their own, on small operands
  std::map<std::string, int> left_out;  // number of other nodes, by operator
  std::string wrong;                    // the first difference; empty: none
};

// `source` is the model from the first import. A model that is too slow in the reference is not run
// as a whole: its nodes are checked one by one.
SecondReading read_again(const std::filesystem::path&, const ImportOptions&, const Source& source);

}  // namespace hone::cli
