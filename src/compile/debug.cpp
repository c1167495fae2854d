#include "compile/debug.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "base/flags.h"
#include "base/replace_file.h"

namespace hone {

namespace {

namespace fs = std::filesystem;

std::string as_file_name(std::string_view name, std::string_view ending = "") {
  std::string out(name);
  std::ranges::replace_if(
      out, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '.'; }, '_');
  if (out.empty() || out[0] == '.') out.insert(out.begin(), '_');
  return fit_file_name(out, ending);
}

std::string graph_text(const Function& f) {
  std::vector<Array> large;  // shown as numbers instead of being printed
  return print(f, &large);
}

std::string pass_line(const PassRecord& r) {
  char text[160];
  std::snprintf(text, sizeof text, "pass %-16.*s %8.3f ms  %zu -> %zu nodes%s\n",
                static_cast<int>(r.name.size()), r.name.data(), r.ms, r.nodes_before, r.nodes_after,
                r.changed ? "" : "  no change");
  return text;
}

std::string rules_text(const PassRecord& r) {
  std::string out;
  for (const RuleLog::Firing& firing : r.rules.firings) {
    Value v(&r.rules.functions[firing.function].graph(), firing.node);
    out += cat("rule ", firing.rule, " in ", r.name, " at ", v.op().name, " ", v.type(), " (",
               origins_text(v), ")\n");
  }
  return out;
}

}  // namespace

Debug::Debug(std::string_view name) : shown_(flag_number("HONE_DEBUG")) {
  const std::string root = flag("HONE_DUMP");
  if (!root.empty()) directory_ = fs::path(root) / as_file_name(name);
}

void Debug::show(Level level, const fs::path& file, std::string_view text) {
  if (shown_ >= level) std::fwrite(text.data(), 1, text.size(), stderr);
  if (!file.empty()) write(file, text);
}

void Debug::write(const fs::path& file, std::string_view text) {
  if (directory_.empty() || text.empty()) return;
  const fs::path path = directory_ / file;
  const bool is_new = written_.insert(file).second;
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  std::ofstream out(path, is_new ? std::ios::trunc : std::ios::app);
  if (!(out << text << std::flush))
    throw UserError("HONE_DUMP: cannot write ", path.string(),
                    "; give a directory that can be written");
}

void Debug::imported(const Function& f, const fs::path& variant) {
  if (wants(graphs)) show(graphs, variant / "graph-0-imported.txt", graph_text(f));
}

void Debug::pass(const PassRecord& r, const fs::path& variant) {
  show(passes, variant / "passes.txt", pass_line(r));
  if (r.changed && wants(graphs)) {
    std::span<const Pass> all = pipeline();
    auto number = std::ranges::find(all, r.name, &Pass::name) - all.begin() + 1;
    show(graphs, variant / cat("graph-", number, "-", r.name, ".txt"), graph_text(*r.after));
  }
  if (wants(rules)) show(rules, variant / "rules.txt", rules_text(r));
}

void Debug::kernel(const Kernel& kernel, const Target& target, const std::string& entry) {
  if (!wants(source)) return;
  const auto file = [&](std::string_view ending) {
    return "kernels/" + as_file_name(kernel.name + "-" + entry, ending);
  };
  show(source, file(".txt"), print(kernel));
  if (directory_.empty()) return;
  const Listing listing = target.list({&kernel, entry});
  write(file(".ll"), listing.ir);
  write(file(".s"), listing.assembly);
}

}  // namespace hone
