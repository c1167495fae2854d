// Functions between passes as JSON: each node once, each pass as differences. Does no layout.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "base/json.h"
#include "compile/compile.h"

namespace hone {

// Numbers strings; equal strings get the same number.
class TextTable {
 public:
  std::int64_t number(const std::string&);
  Json take() { return std::move(texts_); }

 private:
  std::unordered_map<std::string, std::int64_t> numbers_;
  Json texts_ = Json::Array{};
};

// The functions of one variant, from import to schedule.
//   texts   list of strings; "text" below is an index into it
//   nodes   [op text, type text, attributes text, origins text]: what a node is, without operands
//   stages  one for the import (pass -1) and for each pass that changed something:
//     pass       index into the list of passes
//     functions  the whole one, then bodies of control nodes, by path ("", "12.then"):
//       path
//       nodes   index into `nodes`, for each node, operands first
//       inputs  for each node, of its operands: node, or [node, result]
//       before  for each node: its place in the same function of the stage before, -1: it is new
//       rules   {node: text} the rule that made it in this pass
//       results nodes
//     fired      [index into `nodes`, text]: the rule that replaced the node
Json graphs_json(const VariantReport&);

}  // namespace hone
