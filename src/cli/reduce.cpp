#include <cstdio>
#include <filesystem>

#include "backend/backend.h"
#include "base/json.h"
#include "base/replace_file.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "compile/evidence.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

Case read_case(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    return parse_case({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  } catch (const UserError& e) {
    throw UserError(path, ": is not a case of `hone optimize --keep-evidence`: ", e.what());
  }
}

}  // namespace

int reduce(Words words) {
  ModelOptions options;
  std::string input, output;
  double seconds = 60;
  Arguments a(
      "hone reduce",
      "Shrinks a case that shows a bug of the compiler: fewer nodes, sizes and results, as long\n"
      "as compiled and reference results differ.");
  a.positional("CASE", "a .hone-ir, as `hone optimize --keep-evidence` writes it", input);
  a.text("-o,--output", "FILE", "the smaller case (default: CASE-reduced.hone-ir)", output);
  a.real("--seconds", "S", "time to spend (default: 60)", seconds);
  a.choice("--strategy", strategies(), "as the case was compiled (default: auto)",
           options.strategy);
  a.flag("--one-op-groups", "no fusion: each operation alone", options.one_op_groups);
  a.number("--threads", "N", "threads to use (default: 0, as many as the machine offers)",
           options.threads);
  add_printing(a, options);
  a.example(cat("hone reduce evidence/model.hone-ir --strategy ", default_backend().name));
  if (!a.parse(words)) return exit_ok;

  const CompileOptions compiled = compile_options(options);
  const auto most = std::chrono::seconds(static_cast<std::int64_t>(seconds));
  const Evidence e = reduced_evidence(read_case(input), compiled, most);
  const auto nodes = static_cast<std::int64_t>(live_nodes(e.found.function).size());
  fs::path file;
  if (!e.fault.empty()) {
    const fs::path from = input;
    file = output.empty()
               ? from.parent_path() / fit_file_name(from.stem().string(), "-reduced.hone-ir")
               : fs::path(output);
    write_atomic(file, case_text(e.found, cat("hone ", HONE_VERSION, ", strategy ",
                                              compiled.strategy, "\nreduced: ", e.fault, "\n")));
  }
  if (options.json)
    std::printf("%s\n",
                Json(Json::Object{{"case", file.string()}, {"nodes", nodes}, {"fault", e.fault}})
                    .text(2)
                    .c_str());
  else if (e.fault.empty())
    std::printf("compiled and reference results agree: there is nothing to reduce\n");
  else
    std::printf("%s: %lld nodes; %s\n", file.c_str(), static_cast<long long>(nodes),
                e.fault.c_str());
  return e.fault.empty() ? exit_ok : exit_differs;
}

}  // namespace hone::cli
