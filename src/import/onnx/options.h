// What is asked of the import of a model, and what it gives.
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
  // (other characters than letters, digits, '_' and '.' are replaced by '_'). low == high makes the
  // size a number. NODE.n states what a size that data decides at node NODE may be at most, where
  // nothing else bounds it (65,536, or less for several at once).
  std::map<std::string, Range> dims = {};
  // Sizes of whole inputs by name; they replace what the file says.
  std::map<std::string, std::vector<std::int64_t>> shapes = {};
  // Ranks of inputs for which the file gives none, by name; their sizes are open.
  std::map<std::string, int> ranks = {};
  // An initializer that is also an input keeps its value unless `shapes` or `contents` name it.
  // What inputs hold, by name. Where a node must know it (a target shape, axes, a count), the model
  // is read for these contents, and the function refuses others.
  std::map<std::string, Array> contents = {};
  // Tensors by name that take the place of initializers, or of inputs, which then are no inputs any
  // more. Shapes must be those of the model; floats are rounded to its dtype.
  std::map<std::string, Array> weights = {};
  // Types of the elements of inputs that are sequences or optionals, by name: each element becomes
  // an input NAME.K, and the model is read for that many.
  std::map<std::string, std::vector<Type>> elements = {};
  // External data may be reached by links that lead anywhere, and have several names.
  bool allow_links = false;
  std::int64_t most_nodes = 1'000'000;                    // after inlining
  std::int64_t most_value_bytes = std::int64_t{1} << 40;  // of one value, where sizes are numbers
  std::size_t most_variants = 16;
  // Extra results: inner values by their ONNX name, those of branches too; CALL/NAME inside a call
  // of one of the model's functions. Where a run may leave one out (its branch is not taken, or
  // only other sizes have it) it is zero then, and a bool result named NAME + dump_flag follows it
  // that says whether it was computed.
  std::vector<std::string> dump = {};
};
inline constexpr std::string_view dump_flag = " was computed";

// A condition on sizes that an `If` (or another rank-changing node) asked about: `condition` is a
// Dim that is 0 or 1.
struct Assumption {
  Dim condition;
  bool holds = true;
};

// One reading of the model: what it is when all assumptions hold. Where one branch of a data-driven
// `If` is ill-typed under them, that branch holds ops::refuse with the reason.
struct ImportedVariant {
  std::vector<Assumption> assumptions;
  Function function;
};

// How a warning starts that holds for some sizes only; its condition follows.
inline constexpr std::string_view warning_about_sizes = "for sizes with ";

struct Imported {
  std::string name;
  std::vector<ImportedVariant> variants;  // exactly one when no size decides a rank
  std::vector<std::string> warnings;
  // A line for each output that is not of the dtype, rank or fixed size that the file declares: the
  // declaration is wrong, or the import is.
  std::vector<std::string> contradictions;
};

}  // namespace hone
