#include <cstdio>

#include "api/compiler.h"
#include "backend/backend.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/replace_file.h"
#include "cli/commands.h"
#include "cli/run/table.h"
#include "runtime/cache.h"

namespace hone::cli {

namespace {

// Result of one check. An empty problem means that it passed.
struct Finding {
  std::string what, found;
  std::string problem, hint;
  bool is_fine() const { return problem.empty(); }
};

// Runs a check; an exception becomes its problem.
Finding check(std::string what, std::string hint, const std::function<std::string()>& look) {
  Finding f{std::move(what), {}, {}, {}};
  try {
    f.found = look();
  } catch (const std::exception& e) {
    f.problem = e.what();
    f.hint = std::move(hint);
  }
  return f;
}

// Checks that the device opens and that its target compiles for it.
Finding device(const Backend& b) {
  return check(cat("device ", b.name), "fix what the message names, or use another machine", [&] {
    const std::string found = open_device(b.name)->description();
    static_cast<void>(b.target(b.target_names[0]));
    return found;
  });
}

Finding threads() {
  return check("threads", "set HONE_THREADS to a number, or unset it", [] {
    const Machine m = this_machine();
    return cat(default_thread_count(), " of ", m.processors, " processors, ", m.processor);
  });
}

std::vector<Finding> libraries() {
  std::vector<Finding> out;
  for (const LibraryStatus& l : device_libraries())
    out.push_back({std::string(l.name), l.failure.empty() ? cat(l.version, ", ", l.file) : "",
                   l.failure, l.failure.empty() ? "" : l.hint});
  return out;
}

Finding cache() {
  return check("compile cache", "set HONE_CACHE_DIR to a directory that only you can write to", [] {
    const std::filesystem::path directory = cache_directory();
    if (directory.empty())
      throw UserError(
          "no directory: none of HONE_CACHE_DIR, XDG_CACHE_HOME and HOME names one that can be "
          "created, so every start compiles again");
    const std::filesystem::path probe = directory / "doctor";
    replace_file(probe, {});
    std::filesystem::remove(probe);
    if (!CompileCache(directory, "kernels").keeps())
      throw UserError(directory.string(),
                      ": belongs to another user or is writable by others, so it is not used");
    return directory.string();
  });
}

std::vector<Finding> variables() {
  std::vector<std::string_view> known;
  for (const Flag& f : all_flags()) known.push_back(f.name);
  std::vector<Finding> out;
  for (const std::string& name : unknown_flags())
    out.push_back({name, "", "hone reads no such environment variable" + did_you_mean(name, known),
                   "see `hone flags`"});
  return out;
}

// y = relu(x w), compiled, verified and run.
Finding compiler(const std::string& strategy) {
  return check(cat("compile and run (", strategy, ")"),
               "check that this process may map executable memory; if it may, report this", [&] {
                 Builder b;
                 Value x = b.input(f32({8, 16}), "x"), w = b.input(f32({16, 8}), "w");
                 b.output(ops::relu(ops::matmul(x, w)), "y");
                 CompileOptions options;
                 options.strategy = strategy;
                 options.cache = false;
                 const Plan plan = compile(source(b.function(), "doctor"), options);
                 std::vector<float> ones(8 * 16, 1);
                 const Array inputs[] = {Array::of<float>(DType::f32, {8, 16}, ones),
                                         Array::of<float>(DType::f32, {16, 8}, ones)};
                 const Array y = open_session(plan)->run(inputs)[0];
                 if (y.real(0) != 16) throw UserError("the result is ", y.real(0), ", expected 16");
                 return std::string("the result is correct");
               });
}

}  // namespace

int doctor(Words words) {
  Printing printing;
  Arguments a(
      "hone doctor",
      "Looks at the machine, the libraries, the cache and the environment, compiles and runs\n"
      "a small function, and says what is missing and how to fix it. Exit code 1: something\n"
      "is missing.");
  add_printing(a, printing);
  a.example("hone doctor");
  if (!a.parse(words)) return exit_ok;
  std::vector<Finding> all;
  for (const Backend* b : backends())
    if (has_device(*b)) all.push_back(device(*b));
  all.push_back(threads());
  const auto add = [&](std::vector<Finding> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  };
  add(libraries());
  add({cache()});
  add(variables());
  add({compiler(std::string(default_backend().name))});
  bool is_fine = true;
  Json list = Json::Array{};
  for (const Finding& f : all) {
    is_fine = is_fine && f.is_fine();
    list.push(Json::Object{{"what", f.what},
                           {"ok", f.is_fine()},
                           {"found", f.found},
                           {"problem", f.problem},
                           {"hint", f.hint}});
    if (printing.json) continue;
    if (f.is_fine() && !printing.quiet)
      std::printf("ok       %s: %s\n", f.what.c_str(), f.found.c_str());
    if (!f.is_fine())
      std::printf("MISSING  %s: %s\n         %s\n", f.what.c_str(), f.problem.c_str(),
                  f.hint.c_str());
  }
  if (printing.json)
    std::printf("%s\n", Json(Json::Object{{"ok", is_fine}, {"checks", list}}).text(2).c_str());
  return is_fine ? exit_ok : exit_differs;
}

}  // namespace hone::cli
