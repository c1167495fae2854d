#include "ops/ops.h"

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/run/table.h"
#include "import/onnx/table.h"
#include "ops/host.h"

namespace hone::cli {

namespace {

std::string_view kind_name(OpKind k) {
  static constexpr std::string_view names[] = {
      "leaf", "elementwise", "movement", "reduction", "contraction", "control", "other"};
  return names[static_cast<std::size_t>(k)];
}

// Operations that host functions compute come last.
std::vector<const Op*> listed_ops() {
  std::vector<const Op*> out(all_ops().begin(), all_ops().end());
  out.insert(out.end(), host_ops().begin(), host_ops().end());
  return out;
}

// "7 to 9", "7 on"
std::string opsets(const OnnxOperator& o) {
  return o.until ? cat(o.since, " to ", *o.until) : cat(o.since, " on");
}

std::string names(const std::vector<const Op*>& ops, std::string_view quote) {
  std::string out;
  for (const Op* op : ops) out += cat(out.empty() ? "" : ", ", quote, op->name, quote);
  return out;
}

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
    Json row = Json::Object{
        {"name", o.name}, {"domain", o.domain}, {"since", o.since}, {"becomes", becomes}};
    if (o.until) row.add("until", *o.until);
    operators.push(row);
  }
  return Json::Object{{"operations", ops}, {"onnx", operators}};
}

void print_markdown(const std::vector<OnnxOperator>& onnx) {
  std::printf("| ONNX operator | domain | opsets | becomes |\n|---|---|---|---|\n");
  for (const OnnxOperator& o : onnx)
    std::printf("%s\n", cat("| ", o.name, " | ", o.domain, " | ", opsets(o), " | ",
                            names(o.becomes, "`"), " |")
                            .c_str());
  std::printf("\n| operation | kind | made of | meaning |\n|---|---|---|---|\n");
  for (const Op* op : listed_ops())
    std::printf("%s\n", cat("| `", op->name, "` | ", kind_name(op->kind), " | ",
                            op->is_core() ? "core" : "others", " | ", op->doc, " |")
                            .c_str());
}

void print(const std::vector<OnnxOperator>& onnx) {
  Table operations({"operation", "kind", "is", "meaning"});
  for (const Op* op : listed_ops())
    operations.add({std::string(op->name), std::string(kind_name(op->kind)),
                    op->is_core() ? "core" : "composite", std::string(op->doc)});
  std::printf("%s\n", operations.text().c_str());
  Table operators({"ONNX operator", "domain", "opsets", "becomes"});
  for (const OnnxOperator& o : onnx)
    operators.add({std::string(o.name), std::string(o.domain), opsets(o), names(o.becomes, "")});
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
  a.flag("--table", "print them as the two Markdown tables of docs/operators.md", markdown);
  add_printing(a, printing);
  a.example("hone ops --table > operators.md");
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
