// Tensors that the command line names, from files to files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"
#include "type/array.h"

namespace hone::cli {

// The directories test_data_set_K below `root`, in order.
std::vector<std::filesystem::path> data_sets(const std::filesystem::path& root);
// input_K.pb or .npy, or output_K of one of them; of a sequence or optional its tensors, in order.
std::vector<Array> read_set(const std::filesystem::path& set, std::string_view kind);
// NAME.npy or .pb for each parameter, as `hone run` writes results; empty when one is missing.
std::vector<Array> read_named(const std::filesystem::path& set, std::span<const PlanParam> params);

// Throws UserError when the number, an element type, a rank or a fixed size is another one.
void check_inputs(std::span<const Array>, std::span<const PlanParam>, std::string_view where);

// One array for each parameter, from "NAME=FILE" or from "FILE" in their order; a FILE.npz holds
// several by name. Throws UserError when one is missing, given twice or not there, or has another
// type; whether its symbolic sizes fit is the session's question. NAME:FILE is read too.
std::vector<Array> read_inputs(const std::vector<std::string>& specs,
                               std::span<const PlanParam> params);

// A result and the file it is in; no file when it was dumped from a branch that was not taken.
struct Written {
  std::string name;
  Type type;
  std::filesystem::path file = {};
};
// Throws UserError when it is not there and cannot be made.
void make_output_directory(const std::filesystem::path&);
// DIRECTORY/NAME.npy for each result, each another one. Throws UserError when one of them is a file
// that this process has mapped, such as an input.
std::vector<std::filesystem::path> result_files(const std::filesystem::path& directory,
                                                std::span<const PlanParam> results);
// One file for each result.
std::vector<Written> write_results(std::span<const std::filesystem::path> files,
                                   std::span<const PlanParam> results, std::span<const Array>);

}  // namespace hone::cli
