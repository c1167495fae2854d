#include "kernel/nest/memory_hints.h"

#include <algorithm>
#include <unordered_set>

#include "kernel/nest/lower.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

bool is_lanes(const Stmt& s) { return s.kind == Kind::loop && s.loop == LoopKind::lanes; }

// ---- results that bypass the caches

std::unordered_set<std::int64_t> loaded_params(const Block& body) {
  std::unordered_set<std::int64_t> out;
  std::vector<Value> values = values_of(body);
  for (NodeId n : nodes_below(values)) {
    const Graph& graph = values[0].graph();
    if (&graph.op(n) == &ops::load) out.insert(graph.attrs(n).integer("param"));
  }
  return out;
}

// Sizes at run time are often larger than the typical ones.
constexpr double headroom = 16;

bool may_be_large(const KernelParam& p, const TargetInfo& target) {
  double bytes = byte_size(p.dtype);
  bool is_known = true;
  for (std::size_t i = 0; i < p.dims.size(); ++i) {
    if (p.strides[i] == Dim(0)) continue;
    bytes *= typical(p.dims[i]);
    is_known &= p.dims[i].is_number();
  }
  return bytes * (is_known ? 1 : headroom) >= static_cast<double>(target.stream_bytes);
}

// ---- prefetching

class Fetcher {
 public:
  Fetcher(const Kernel& kernel, const TargetInfo& target) : kernel_(kernel), target_(target) {}

  void add(Block& block) {
    for (Stmt& s : block) {
      if (s.kind != Kind::loop || is_lanes(s)) continue;
      add(s.body);
      const auto lanes = std::count_if(s.body.begin(), s.body.end(), is_lanes);
      const bool is_alone = std::none_of(s.body.begin(), s.body.end(), [](const Stmt& inner) {
        return inner.kind == Kind::loop && !is_lanes(inner);
      });
      if (is_alone && lanes == 1) read_on(*std::find_if(s.body.begin(), s.body.end(), is_lanes));
      if (is_alone && lanes > 1) next_rows(s);
    }
  }

 private:
  // Unconditional loads of params that are contiguous along the loop, from positions known before
  // it.
  std::vector<Value> loads_along(const Stmt& loop) const {
    std::vector<Value> out, values = values_of(loop.body);
    std::unordered_set<RegId> own;
    bool is_innermost = true;
    for_each_statement(loop.body, [&](const Stmt& s) {
      if (s.kind == Kind::declare) own.insert(s.reg);
      is_innermost &= s.kind != Kind::loop;
    });
    if (!is_innermost) return {};
    auto is_own = [&](const Dim& d) { return register_of(d) && own.contains(*register_of(d)); };
    for (NodeId n : nodes_below(values)) {
      Value v(&values[0].graph(), n);
      if (!v.is(ops::load) || v.operand_count() > 0) continue;
      const std::size_t p = param_of(v);
      const Dims symbols = offset_of(v).symbols();
      if (std::any_of(symbols.begin(), symbols.end(), is_own)) continue;
      if (p < kernel_.params.size() && !kernel_.params[p].written &&
          stride_of(offset_of(v), symbol_of(loop)) == Dim(1))
        out.push_back(v);
    }
    return out;
  }
  static std::size_t param_of(Value load) {
    return static_cast<std::size_t>(load.attrs().integer("param"));
  }
  static const Dim& offset_of(Value load) { return load.attrs().dims("offset").at(0); }

  static void fetch(Stmt& loop, Value load, Dim offset, int cache) {
    Stmt s{.kind = Kind::fetch, .param = static_cast<int>(param_of(load))};
    s.offset = std::move(offset);
    s.cache = cache;
    loop.body.push_back(std::move(s));
  }

  // The hardware prefetcher stops at the end of a page, and is not far enough ahead where much is
  // computed.
  void read_on(Stmt& loop) const {
    constexpr std::int64_t page_bytes = 4096;
    for (Value v : loads_along(loop))
      if (const KernelParam& p = kernel_.params[param_of(v)]; may_be_large(p, target_))
        fetch(loop, v, offset_of(v) + page_bytes / byte_size(p.dtype), 2);
  }

  // Work of one iteration, in vector instructions.
  static double weight(const Stmt& loop) {
    double sum = 0;
    std::vector<Value> values = values_of(loop.body);
    for (NodeId n : nodes_below(values)) sum += values[0].graph().op(n).cost;
    return sum;
  }

  // A row is read by its first loop, which does little else and would wait. So the row for the next
  // iteration of `outer` is prefetched by the later loop that computes most.
  void next_rows(Stmt& outer) const {
    Stmt *first = nullptr, *busiest = nullptr;
    for (Stmt& s : outer.body) {
      if (!is_lanes(s)) continue;
      if (!first)
        first = &s;
      else if (s.extent == first->extent && (!busiest || weight(s) > weight(*busiest)))
        busiest = &s;
    }
    if (!busiest) return;
    const Dim turn = symbol_of(outer);
    // During the last loop, the first loop of the next iteration may already have run.
    const auto last = std::find_if(outer.body.rbegin(), outer.body.rend(), is_lanes);
    const int ahead = busiest == &*last ? 2 : 1;
    const Replacement next[] = {{turn, turn + ahead}, {symbol_of(*first), symbol_of(*busiest)}};
    for (Value v : loads_along(*first)) {
      if (!mentions(offset_of(v), turn)) continue;
      // The cache also holds kept rows, written rows, and what all rows share.
      const double bytes =
          4 * typical(first->extent) * byte_size(kernel_.params[param_of(v)].dtype);
      if (bytes <= static_cast<double>(target_.l2_bytes))
        fetch(*busiest, v, replace(offset_of(v), next),
              bytes <= static_cast<double>(target_.l1_bytes) ? 1 : 2);
    }
  }

  const Kernel& kernel_;
  const TargetInfo& target_;
};

}  // namespace

void add_memory_hints(Kernel& kernel, Block& body, const TargetInfo& target) {
  const std::unordered_set<std::int64_t> loaded = loaded_params(body);
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    KernelParam& p = kernel.params[i];
    if (p.written && !loaded.contains(static_cast<std::int64_t>(i)) && may_be_large(p, target))
      p.streams_from = target.stream_bytes;
  }
  Fetcher(kernel, target).add(body);
}

}  // namespace hone
