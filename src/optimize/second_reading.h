// Reads a model a second time with independent code. This checks the import, which plan and
// reference share.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "compile/source.h"
#include "import/import.h"

namespace hone {

struct SecondReading {
  int nodes = 0;   // including those in branches, bodies and functions
  int judged = 0;  // nodes whose results were checked against their operators' pages, or equal ones
  int alone = 0;   // of these, checked only in a model of their own, on small operands
  int equal = 0;   // of these, only because a node that does the same was checked
  std::map<std::string, int> left_out;  // number of other nodes, by operator
  std::vector<std::string> unknown;     // operators of which no node was judged
  std::string limit;                    // why nodes were not tried; empty: all were
  std::string wrong;                    // the first difference; empty: none
  double ms = 0;                        // how long it took
};

// `source` is the model from the first import. A model that is too slow in the reference is not run
// as a whole: its nodes are checked one by one. Takes a few seconds at most, and memory for numbers
// within `most_bytes`.
SecondReading read_again(const std::filesystem::path&, const ImportOptions&, const Source& source,
                         std::int64_t most_bytes = std::int64_t{1} << 30);

// What a caller accepts although it may show that the model was read wrongly.
struct AcceptedReading {
  bool outputs = false;  // other outputs than the file declares (Imported::contradictions)
  bool nodes = false;    // other results of a node than its operator's page says
};
// The same, with a quarter of `max_memory` (0: 1 GiB). Throws UserError for a contradiction and
// InternalError for a wrong node, unless it is accepted.
SecondReading checked_reading(const std::filesystem::path&, const ImportOptions&, const Source&,
                              const std::vector<std::string>& contradictions,
                              std::int64_t max_memory, const AcceptedReading&);

// What to tell about nodes that were not judged; empty if all were.
std::string unjudged_warning(const SecondReading&);

}  // namespace hone
