// The options and the result of importing a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.h"

namespace hone {

struct ImportOptions {
  struct Range {
    std::int64_t low = 1, high = 1 << 20;
  };
  // By symbol name: the file's own, or INPUT_dK for axis K of an input whose size has no name
  // (characters other than letters, digits, '_' and '.' are replaced by '_'). low == high makes the
  // size a number. NODE.n states the upper bound of a data-dependent size at node NODE that nothing
  // else bounds (65,536, or less for several at once).
  std::map<std::string, Range> dims = {};
  // Sizes of whole inputs by name; they override the file.
  std::map<std::string, std::vector<std::int64_t>> shapes = {};
  // Ranks, by name, of inputs for which the file gives none; their sizes are open.
  std::map<std::string, int> ranks = {};
  // An initializer that is also an input keeps its value unless `shapes` or `contents` name it.
  // Input contents by name. Where a node needs them (a target shape, axes, a count), the model is
  // read for these contents, and the function rejects others.
  std::map<std::string, Array> contents = {};
  // Tensors by name that replace initializers or inputs; a replaced input is no longer an input.
  // Shapes must be those of the model; floats are rounded to its dtype.
  std::map<std::string, Array> weights = {};
  // Element types of inputs that are sequences or optionals, by name: each element becomes an input
  // NAME.K, and the model is read for that number of elements.
  std::map<std::string, std::vector<Type>> elements = {};
  // External data may be reached through links to any location, and may have several names.
  bool allow_links = false;
  std::int64_t most_nodes = 1'000'000;                    // after inlining
  std::int64_t most_value_bytes = std::int64_t{1} << 40;  // per value, where sizes are numbers
  std::size_t most_variants = 16;
  // Open sizes that meet in a broadcast are taken as equal. The model then has a second variant,
  // for runs in which they differ and one of them is 1, unless this is false.
  bool has_broadcast_variants = true;
  // Extra results: inner values by their ONNX name, including those of branches; CALL/NAME inside a
  // call of a model function. If a run may not compute one (its branch is not taken, or it exists
  // only for other sizes), it is then zero, and a bool result named NAME + dump_flag follows it
  // that says whether it was computed.
  std::vector<std::string> dump = {};
};
inline constexpr std::string_view dump_flag = " was computed";

// A condition on sizes that an `If` (or another rank-changing node) depends on: `condition` is a
// Dim that is 0 or 1.
struct Assumption {
  Dim condition;
  bool holds = true;
};

// One reading of the model, valid when all assumptions hold. If a branch of a data-dependent `If`
// is ill-typed under them, it contains ops::refuse with the reason.
struct ImportedVariant {
  std::vector<Assumption> assumptions;
  Function function;
};

// The prefix of a warning that holds only for some sizes; its condition follows.
inline constexpr std::string_view warning_about_sizes = "for sizes with ";

struct Imported {
  std::string name;
  std::vector<ImportedVariant> variants;  // exactly one when no rank depends on a size
  std::vector<std::string> warnings;
  // A line for each output whose dtype, rank or fixed size differs from the file's declaration:
  // either the declaration or the import is wrong.
  std::vector<std::string> contradictions;
};

}  // namespace hone
