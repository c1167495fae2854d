#include "compile/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/flags.h"
#include "pass/expand.h"
#include "pass/fold.h"
#include "pass/fold_batch_norm.h"
#include "pass/layout.h"
#include "pass/raise.h"
#include "pass/simplify.h"
#include "pass/sink.h"

namespace hone {

namespace {

constexpr Pass passes[] = {
    {"fold", "small constants computed by the reference", fold},
    {"simplify", "algebra and movement rules that keep every value", simplify},
    {"fold-batch-norm", "normalisation into the weights of its convolution", fold_batch_norm},
    {"raise", "softmax, norms and activations spelled in small operations, by name", raise},
    {"layout", "channels-last convolutions, transposes pushed outwards and merged", layout},
    {"expand", "composites that no kernel takes whole, in core operations",
     [](const Function& f) { return expand(f); }},
    {"sink", "reshapes and transposes behind what can join a contraction or reduction", sink},
    {"fold-again", "what became constant", fold},
    {"simplify-again", "the same rules on what the passes above left", simplify},
};

void check_names(const PassOptions& options) {
  for (const std::string& name : options.off) {
    bool known = std::any_of(std::begin(passes), std::end(passes),
                             [&](const Pass& p) { return p.name == name; });
    if (known) continue;
    std::string all;
    for (const Pass& p : passes) all += cat(all.empty() ? "" : ", ", p.name);
    throw UserError("passes: there is no pass '", name, "'; passes are ", all);
  }
}

void check_types(const Pass& pass, const Function& before, const Function& after) {
  HONE_ASSERT(before.param_types() == after.param_types(), "pass '", pass.name,
              "' changed the parameters");
  std::vector<Type> was = before.result_types(), is = after.result_types();
  HONE_ASSERT(was.size() == is.size(), "pass '", pass.name, "' changed the number of results");
  for (std::size_t i = 0; i < was.size(); ++i)
    HONE_ASSERT(was[i] == is[i], "pass '", pass.name, "' turned result ", i, " from ", was[i],
                " into ", is[i]);
}

void dump(const Function& f, std::size_t number, std::string_view name) {
  std::string directory = flag("HONE_DUMP");
  if (directory.empty()) return;
  std::filesystem::create_directories(directory);
  std::vector<Array> large;
  write_atomic(std::filesystem::path(directory) / cat("graph-", number, "-", name, ".txt"),
               print(f, &large));
}

}  // namespace

std::span<const Pass> pipeline() { return passes; }

Function run_passes(const Function& function, const PassOptions& options,
                    std::vector<PassRecord>* records) {
  check_names(options);
#ifdef NDEBUG
  const bool verify_each = options.verify_each;
#else
  const bool verify_each = true;
#endif
  const long debug = flag_number("HONE_DEBUG");
  Function f = function;
  dump(f, 0, "imported");
  for (std::size_t i = 0; i < std::size(passes); ++i) {
    const Pass& pass = passes[i];
    if (std::find(options.off.begin(), options.off.end(), pass.name) != options.off.end()) continue;
    auto start = std::chrono::steady_clock::now();
    Function next = pass.run(f);
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    check_types(pass, f, next);
    if (verify_each) verify(next);
    bool changed = &next.graph() != &f.graph();
    if (debug >= 2)
      std::fprintf(stderr, "pass %-16s %8.3f ms%s\n", std::string(pass.name).c_str(), took.count(),
                   changed ? "" : "  no change");
    if (changed) dump(next, i + 1, pass.name);
    if (records)
      records->push_back(
          {pass.name, took.count(), live_nodes(f).size(), live_nodes(next).size(), changed});
    f = next;
  }
  return f;
}

}  // namespace hone
