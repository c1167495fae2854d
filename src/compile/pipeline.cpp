#include "compile/pipeline.h"

#include <algorithm>
#include <chrono>

#include "pass/codes.h"
#include "pass/drop_carried.h"
#include "pass/expand.h"
#include "pass/fold.h"
#include "pass/fold_batch_norm.h"
#include "pass/join_products.h"
#include "pass/layout.h"
#include "pass/raise.h"
#include "pass/simplify.h"
#include "pass/sink.h"

namespace hone {

namespace {

// A pass without rules to report.
template <Function (*pass)(const Function&)>
Function plain(const Function& f, RuleLog*) {
  return pass(f);
}

constexpr Pass passes[] = {
    {"fold", "small constants computed by the reference", plain<fold>},
    {"codes", "dtypes of eight bits and less that nothing computes in, as integers",
     plain<small_dtypes_as_codes>, true},
    {"simplify", "algebra and movement rules that keep every value", simplify},
    {"fold-batch-norm", "normalisation into the weights of its convolution",
     plain<fold_batch_norm>},
    {"raise", "softmax, norms and activations spelled in small operations, by name", raise},
    {"layout", "channels-last convolutions, transposes pushed outwards and merged", plain<layout>},
    {"expand", "composites that no kernel takes whole, in core operations",
     [](const Function& f, RuleLog*) { return expand(f); }},
    {"drop-carried", "what loops carry and nobody reads", plain<drop_carried>},
    {"sink", "reshapes and transposes behind what can join a contraction or reduction",
     plain<sink>},
    {"join-products", "products of one value with several constants, as one product",
     plain<join_products>},
    {"fold-again", "what became constant", plain<fold>},
    {"simplify-again", "the same rules on what the passes above left", simplify},
};

void check_names(const PassOptions& options) {
  for (const std::string& name : options.off) {
    auto pass = std::ranges::find(options.list, name, &Pass::name);
    if (pass != options.list.end() && !pass->is_needed) continue;
    std::string all;
    for (const Pass& p : options.list)
      if (!p.is_needed) all += cat(all.empty() ? "" : ", ", p.name);
    throw UserError("passes: ",
                    pass == options.list.end()
                        ? cat("there is no pass '", name, "'")
                        : cat("pass '", name, "' cannot be left out: ", pass->does),
                    "; passes that can be left out are ", all);
  }
}

void check_types(const Pass& pass, const Function& before, const Function& after) {
  if (after.is_unchanged(before)) return;
  HONE_ASSERT(before.params().size() == after.params().size() &&
                  before.results().size() == after.results().size(),
              "pass '", pass.name, "' changed the number of parameters or results");
  for (std::size_t i = 0; i < before.params().size(); ++i)
    HONE_ASSERT(before.param(i).type() == after.param(i).type(), "pass '", pass.name,
                "' turned parameter ", i, " from ", before.param(i).type(), " into ",
                after.param(i).type());
  for (std::size_t i = 0; i < before.results().size(); ++i) {
    const Function::Result &was = before.results()[i], &is = after.results()[i];
    HONE_ASSERT(was.value.type() == is.value.type() && was.stored_to == is.stored_to, "pass '",
                pass.name, "' turned result ", i, " from ", was.value.type(), " into ",
                is.value.type(), ", or stores it elsewhere");
  }
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
  const bool keep = options.keep || options.watch;
  Function f = function;
  std::size_t nodes = live_nodes(f).size();
  for (const Pass& pass : options.list) {
    if (std::find(options.off.begin(), options.off.end(), pass.name) != options.off.end()) continue;
    PassRecord record{.name = pass.name};
    auto start = std::chrono::steady_clock::now();
    Function next = pass.run(f, keep ? &record.rules : nullptr);
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    check_types(pass, f, next);
    if (verify_each) verify(next);
    record.ms = took.count();
    record.changed = &next.graph() != &f.graph();
    record.nodes_before = nodes;
    if (record.changed) nodes = live_nodes(next).size();
    record.nodes_after = nodes;
    if (keep) record.after = next;
    if (options.watch) options.watch(record);
    if (records) records->push_back(std::move(record));
    f = std::move(next);
  }
  return f;
}

}  // namespace hone
