// Reads and writes the tensor files that the command line names.
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

// The directories test_data_set_K in `root`, in order.
std::vector<std::filesystem::path> data_sets(const std::filesystem::path& root);
// Reads input_K or output_K files, .pb or .npy. For a sequence or optional, its tensors in order.
std::vector<Array> read_set(const std::filesystem::path& set, std::string_view kind);
// Reads NAME.npy or .pb for each parameter, as `hone run` writes results; empty when one is
// missing.
std::vector<Array> read_named(const std::filesystem::path& set, std::span<const PlanParam> params);

// Throws UserError when the number of inputs, an element type, a rank or a fixed size differs.
void check_inputs(std::span<const Array>, std::span<const PlanParam>, std::string_view where);

// One array for each parameter, from "NAME=FILE", "NAME:FILE" or, in order, "FILE"; a FILE.npz
// holds several by name. Throws UserError when one is missing, given twice, not found, or of
// another type. The session checks symbolic sizes.
std::vector<Array> read_inputs(const std::vector<std::string>& specs,
                               std::span<const PlanParam> params);

// A result and its file; no file if it was dumped from a branch that was not taken.
struct Written {
  std::string name;
  Type type;
  std::filesystem::path file = {};
};
// Throws UserError when the directory does not exist and cannot be created.
void make_output_directory(const std::filesystem::path&);
// A unique DIRECTORY/NAME.npy for each result. Throws UserError when one is a file that this
// process has mapped, such as an input.
std::vector<std::filesystem::path> result_files(const std::filesystem::path& directory,
                                                std::span<const PlanParam> results);
// Writes one file for each result.
std::vector<Written> write_results(std::span<const std::filesystem::path> files,
                                   std::span<const PlanParam> results, std::span<const Array>);

}  // namespace hone::cli
