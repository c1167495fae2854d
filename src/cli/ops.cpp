#include "ops/ops.h"

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/run/table.h"
#include "import/onnx_table.h"
#include "ops/host.h"

namespace hone::cli {

namespace {

std::string_view kind_name(OpKind k) {
  static constexpr std::string_view names[] = {
      "leaf", "elementwise", "movement", "reduction", "contraction", "control", "other"};
  return names[static_cast<std::size_t>(k)];
}

// Those that functions of the host compute come last.
std::vector<const Op*> listed_ops() {
  std::vector<const Op*> out(all_ops().begin(), all_ops().end());
  out.insert(out.end(), host_ops().begin(), host_ops().end());
  return out;
}

// "Conv 1-27"
std::string text(const OnnxOperator& o) { return cat(o.name, " ", o.since, "-", o.until); }

std::vector<const OnnxOperator*> made_of(const std::vector<OnnxOperator>& all, const Op& op) {
  std::vector<const OnnxOperator*> out;
  for (const OnnxOperator& o : all)
    if (std::ranges::find(o.becomes, &op) != o.becomes.end()) out.push_back(&o);
  return out;
}

Json json(const std::vector<OnnxOperator>& onnx) {
  Json ops = Json::Array{}, operators = Json::Array{};
  for (const Op* op : listed_ops()) {
    Json from = Json::Array{};
    for (const OnnxOperator* o : made_of(onnx, *op)) from.push(o->name);
    ops.push(Json::Object{{"name", op->name},
                          {"kind", kind_name(op->kind)},
                          {"core", op->is_core()},
                          {"doc", op->doc},
                          {"onnx", from}});
  }
  for (const OnnxOperator& o : onnx) {
    Json becomes = Json::Array{};
    for (const Op* op : o.becomes) becomes.push(op->name);
    operators.push(Json::Object{
        {"name", o.name}, {"since", o.since}, {"until", o.until}, {"becomes", becomes}});
  }
  return Json::Object{{"operations", ops}, {"onnx", operators}};
}

void print_markdown(const std::vector<OnnxOperator>& onnx) {
  std::printf("| operation | kind | made of | meaning | from ONNX |\n|---|---|---|---|---|\n");
  for (const Op* op : listed_ops()) {
    std::string from;
    for (const OnnxOperator* o : made_of(onnx, *op))
      from += cat(from.empty() ? "" : ", ", text(*o));
    std::printf("| `%s` | %s | %s | %s | %s |\n", std::string(op->name).c_str(),
                std::string(kind_name(op->kind)).c_str(), op->is_core() ? "core" : "others",
                std::string(op->doc).c_str(), from.c_str());
  }
}

void print(const std::vector<OnnxOperator>& onnx) {
  Table operations({"operation", "kind", "is", "meaning"});
  for (const Op* op : listed_ops())
    operations.add({std::string(op->name), std::string(kind_name(op->kind)),
                    op->is_core() ? "core" : "composite", std::string(op->doc)});
  std::printf("%s\n", operations.text().c_str());
  Table operators({"ONNX operator", "opsets", "becomes"});
  for (const OnnxOperator& o : onnx) {
    std::string becomes;
    for (const Op* op : o.becomes) becomes += cat(becomes.empty() ? "" : ", ", op->name);
    operators.add({std::string(o.name), cat(o.since, " to ", o.until), becomes});
  }
  std::printf("%s", operators.text().c_str());
}

}  // namespace

int ops(Words words) {
  Printing printing;
  bool markdown = false;
  Arguments a(
      "hone ops",
      "Lists the operations, and the ONNX operators with what they become: the operations in\n"
      "the graph of one small use of each.");
  a.flag("--table", "print the operations as a Markdown table", markdown);
  add_printing(a, printing);
  a.example("hone ops --table > operations.md");
  if (!a.parse(words)) return exit_ok;
  const std::vector<OnnxOperator> onnx = onnx_operators();
  if (printing.json)
    std::printf("%s\n", json(onnx).text(2).c_str());
  else if (markdown)
    print_markdown(onnx);
  else
    print(onnx);
  return exit_ok;
}

}  // namespace hone::cli
