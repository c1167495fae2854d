// Everything recorded while a model was optimized, as one JSON value, for the page and for other
// programs. Measures nothing itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "compile/optimize.h"

namespace hone {

// Information that only the caller has.
struct ReportContext {
  std::string command;     // as typed
  std::string model_file;  // what was optimized
  std::string plan_file;   // where the plan was written
  std::int64_t plan_bytes = 0;
  double import_ms = -1;  // time to read the model; -1: it was not read
  std::vector<std::string> warnings;
  bool samples_are_made_up = false;  // no inputs were given; random data was used
};

// Unknown parts are null or empty (a plan file has less than a compilation). The profile is
// required.
Json report(const Optimized&, const ReportContext&);

// A self-contained page: needs no network and no other file.
std::string report_page(const Json& report);

// Writes the page, or only the JSON when the file's name ends in .json.
void write_report(const std::filesystem::path&, const Optimized&, const ReportContext&);

}  // namespace hone
