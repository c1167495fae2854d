#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

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

void check(const Kernel& kernel) { Checker(kernel).run(); }

}  // namespace hone
