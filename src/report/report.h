// All that was seen while a model was optimized, as one JSON value: what the page shows and other
// programs may read. Measures nothing itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "compile/optimize.h"

namespace hone {

// What only the caller knows.
struct ReportContext {
  std::string command;     // as typed
  std::string model_file;  // what was optimized
  std::string plan_file;   // where the plan is
  std::int64_t plan_bytes = 0;
  double import_ms = -1;  // reading the model; -1: it was not read
  std::vector<std::string> warnings;
  bool samples_are_made_up = false;  // no inputs were given: random data
};

// Parts that were not seen (a plan file tells less than a compilation) are null or empty. The
// profile must be there.
Json report(const Optimized&, const ReportContext&);

// One page that needs no network and no other file.
std::string report_page(const Json& report);

// The page; the JSON alone when the file's name ends in .json.
void write_report(const std::filesystem::path&, const Optimized&, const ReportContext&);

}  // namespace hone
