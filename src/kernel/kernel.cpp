#include "kernel/kernel.h"

#include <algorithm>

#include "ops/ops.h"

namespace hone {

namespace {

std::vector<Type> infer_leaf(const Call& c) { return {Type(c.attrs.get<DType>("dtype"), Shape())}; }

Samples no_samples() { return {}; }

}  // namespace

Dim loop_symbol(VarId var, const Dim& extent) {
  // A loop without iterations has no positions; its symbol still needs a range.
  return Dim::symbol(SymbolKind::loop, var, 0, std::max<std::int64_t>(extent.high() - 1, 0));
}

Dim register_symbol(RegId reg, std::int64_t low, std::int64_t high) {
  return Dim::symbol(SymbolKind::reg, reg, low, high);
}

std::optional<VarId> loop_of(const Dim& symbol) { return symbol.number_of(SymbolKind::loop); }
std::optional<RegId> register_of(const Dim& symbol) { return symbol.number_of(SymbolKind::reg); }

constinit const Op ops::load = {
    .name = "load",
    .doc = "The element at attribute offset of kernel parameter param, or 0 without memory access.",
    .kind = OpKind::leaf,
    .infer = infer_leaf,
    .cost = 0,
    .ulps = 0,
    .samples = no_samples,
};

constinit const Op ops::reg = {
    .name = "reg",
    .doc = "The current value of the kernel's register index.",
    .kind = OpKind::leaf,
    .infer = infer_leaf,
    .cost = 0,
    .ulps = 0,
    .samples = no_samples,
};

constinit const Op ops::tile_element = {
    .name = "tile_element",
    .doc = "The element at attribute offset (row, column) of the kernel's register tile index.",
    .kind = OpKind::leaf,
    .infer = infer_leaf,
    .cost = 0,
    .ulps = 0,
    .samples = no_samples,
};

bool has_grid(const Kernel& k) {
  return k.body.size() == 1 && k.body[0].kind == Stmt::Kind::loop &&
         k.body[0].loop == LoopKind::grid;
}

bool spreads(const Kernel& kernel) {
  return std::ranges::any_of(kernel.memory,
                             [](const KernelMemory& m) { return m.scope == MemoryScope::spread; });
}

int group_threads(const Kernel& k) {
  std::int64_t most = 1;
  for (const Stmt& grid : k.body)
    for (const Stmt& s : grid.body)
      if (s.kind == Stmt::Kind::loop && s.loop == LoopKind::group)
        most = std::max(most, s.extent.number());
  return static_cast<int>(most);
}

}  // namespace hone
