#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

struct Interval {
  std::int64_t low, high;

  bool fits(DType t) const {
    const int bits = bit_size(t) - is_signed(t);
    if (bits >= 63) return is_signed(t) || low >= 0;
    const std::int64_t most = (std::int64_t{1} << bits) - 1;
    return high <= most && low >= (is_signed(t) ? -most - 1 : 0);
  }
};

// Proves that the registers of positions are not computed in too few bits. Runs with small sizes do
// not show that. Values that data decides are not judged.
class PositionProof {
 public:
  explicit PositionProof(const Kernel& kernel) : kernel_(kernel) {
    for_each_dim(kernel.body, [&](const Dim& d) {
      for (const Dim& s : d.symbols())
        if (const std::optional<RegId> reg = register_of(s)) registers_.insert(*reg);
      return true;
    });
  }

  void run() {
    for_each_statement(kernel_.body, [&](const Stmt& s) {
      if ((s.kind == Kind::declare || s.kind == Kind::assign) && registers_.contains(s.reg))
        interval(s.value);
    });
  }

 private:
  std::optional<Interval> interval(const Value& v) {
    const auto [at, is_new] = known_.try_emplace(v);
    if (!is_new) return at->second;
    std::optional<Interval> out = computed(v);
    if (out && !out->fits(v.dtype()))
      throw UserError("kernel '", kernel_.name, "': a position between ", out->low, " and ",
                      out->high, " is computed in ", v.dtype());
    return known_[v] = out;
  }

  std::optional<Interval> computed(const Value& v) {
    if (is_float(v.dtype()) || v.dtype() == DType::b1) return std::nullopt;
    if (v.is(ops::dims)) {
      const Dim& d = v.attrs().dims("dims").at(0);
      return Interval{d.low(), d.high()};
    }
    if (v.is(ops::constant)) {
      const std::int64_t n = v.attrs().get<Array>("value").integer(0);
      return Interval{n, n};
    }
    std::vector<Interval> in;
    for (const Value& operand : v.operands()) {
      if (operand.dtype() == DType::b1) continue;
      const std::optional<Interval> i = interval(operand);
      if (!i) return std::nullopt;
      in.push_back(*i);
    }
    return combined(v.op(), in);
  }

  static std::optional<Interval> combined(const Op& op, const std::vector<Interval>& in) {
    if (in.empty()) return std::nullopt;
    const auto [a, b] = std::pair(in.front(), in.back());
    if (&op == &ops::cast) return a;
    if (&op == &ops::select) return Interval{std::min(a.low, b.low), std::max(a.high, b.high)};
    if (&op == &ops::minimum) return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
    if (&op == &ops::maximum) return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    Interval out = a;
    bool overflows = true;
    if (&op == &ops::add)
      overflows = __builtin_add_overflow(a.low, b.low, &out.low) ||
                  __builtin_add_overflow(a.high, b.high, &out.high);
    else if (&op == &ops::sub)
      overflows = __builtin_sub_overflow(a.low, b.high, &out.low) ||
                  __builtin_sub_overflow(a.high, b.low, &out.high);
    else if (&op == &ops::mul && a.low >= 0 && b.low >= 0)
      overflows = __builtin_mul_overflow(a.low, b.low, &out.low) ||
                  __builtin_mul_overflow(a.high, b.high, &out.high);
    if (!overflows) return out;
    return std::nullopt;
  }

  const Kernel& kernel_;
  std::set<RegId> registers_;
  std::unordered_map<Value, std::optional<Interval>, ValueHash> known_;
};

bool is_loop_of(const Stmt& s, LoopKind kind) { return s.kind == Kind::loop && s.loop == kind; }

class Checker {
 public:
  explicit Checker(const Kernel& kernel) : kernel_(kernel) {}

  void run() const {
    const auto grids = std::ranges::count_if(
        kernel_.body, [](const Stmt& s) { return is_loop_of(s, LoopKind::grid); });
    const bool is_one_grid = grids == 1 && kernel_.body.size() == 1;
    require(is_one_grid || kernel_.chunks == Dim(1),
            "several statements are run as chunks; only one grid loop can be");
    if (is_one_grid)
      require(kernel_.body[0].extent == kernel_.chunks, "its grid loop does not run its chunks");
    for (const Stmt& s : kernel_.body) statement(s, true);
    require(kernel_.body.empty() || kernel_.graph, "its statements have no graph");
  }

 private:
  template <class... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (!holds) throw InternalError(cat("kernel '", kernel_.name, "': ", parts...));
  }

  void block(const Block& body) const {
    for (const Stmt& s : body) statement(s, false);
  }

  void statement(const Stmt& s, bool is_outermost) const {
    require(is_outermost || !is_loop_of(s, LoopKind::grid), "a grid loop inside a statement");
    if (is_loop_of(s, LoopKind::group)) require(s.extent.is_number(), "a group of unknown size");
    if (is_loop_of(s, LoopKind::unrolled))
      require(s.extent.is_number(), "an unrolled loop of unknown extent");
    if (s.kind == Kind::loop && s.loop != LoopKind::grid)
      require(std::ranges::none_of(s.body,
                                   [](const Stmt& t) { return is_loop_of(t, LoopKind::group); }),
              "a group loop that is not in a grid loop");
    if (std::ranges::any_of(s.body, [](const Stmt& t) { return is_loop_of(t, LoopKind::group); }))
      require(s.body.size() == 1, "a grid loop holds more than a group loop");
    if (s.kind == Kind::reduce_group || s.kind == Kind::barrier)
      require(s.extent.is_number() && s.extent.number() >= 1 && s.extent.number() <= 32 &&
                  std::has_single_bit(static_cast<unsigned>(s.extent.number())),
              "a reduction or barrier of ", s.extent, " neighbouring threads");
    if (s.kind == Kind::store || s.kind == Kind::fetch || s.kind == Kind::copy_async)
      memory(s.param);
    if (s.tile >= 0) tile(s);
    block(s.body);
    block(s.otherwise);
  }

  void memory(int param) const {
    const std::size_t count = kernel_.params.size() + kernel_.memory.size();
    require(param >= 0 && static_cast<std::size_t>(param) < count,
            unknown_number("parameter", "p", param, count));
  }

  void tile(const Stmt& s) const {
    const std::size_t count = kernel_.tiles.size();
    require(static_cast<std::size_t>(s.tile) < count, unknown_number("tile", "t", s.tile, count));
    const KernelTile& t = kernel_.tiles[static_cast<std::size_t>(s.tile)];
    require(t.rows > 0 && t.columns > 0, "tile t", s.tile, " is empty");
    if (s.kind == Kind::tile_fill)
      return require(s.columns == Dim(t.columns), "a part of tile t", s.tile, " is filled");
    memory(s.a.param);
    require(std::ssize(s.a.rows) == t.rows, "tile t", s.tile, " has ", t.rows, " rows, and ",
            s.a.rows.size(), " are given");
    if (s.columns.is_number())
      require(s.columns.number() >= 0 && s.columns.number() <= t.columns, "tile t", s.tile, " has ",
              t.columns, " columns, not ", s.columns);
    if (s.kind != Kind::tile_multiply) return;
    memory(s.b.param);
    require(s.k_group > 0, "k in groups of ", s.k_group);
  }

  const Kernel& kernel_;
};

}  // namespace

// Throws UserError if a position is computed in fewer bits than the bounds of its sizes need.
void check(const Kernel& kernel) {
  Checker(kernel).run();
  PositionProof(kernel).run();
}

}  // namespace hone
