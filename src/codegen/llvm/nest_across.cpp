// The part of Renderer that transposes square blocks in registers: memory is read in order along
// one loop and written in order along another.
#include <algorithm>

#include "base/error.h"
#include "codegen/llvm/expression.h"
#include "kernel/positions.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace {

// Exchanges blocks of `half` lanes between two rows.
void exchange(Value& a, Value& b, int half) {
  std::vector<int> low, high;
  const int lanes = a.lanes();
  for (int i = 0; i < lanes; ++i) {
    const bool first = (i & half) == 0;
    low.push_back(first ? i : lanes + i - half);
    high.push_back(first ? i + half : lanes + i);
  }
  Value new_a = permute(a, b, low);
  b = permute(a, b, high);
  a = new_a;
}

Values transposed_square(Values rows) {
  const int n = static_cast<int>(rows.size());
  for (int half = n / 2; half > 0; half /= 2)
    for (int i = 0; i < n; ++i)
      if ((i & half) == 0)
        exchange(rows[static_cast<std::size_t>(i)], rows[static_cast<std::size_t>(i + half)], half);
  return rows;
}

}  // namespace

Values transposed(Values rows) {
  const int n = static_cast<int>(rows.size()), lanes = rows[0].lanes();
  if (n == lanes) return transposed_square(std::move(rows));
  Values out;
  if (n < lanes) {
    for (int first = 0; first < lanes; first += n) {
      Values part;
      for (const Value& row : rows) part.push_back(slice_lanes(row, first, n));
      if (n == 1) {
        out.push_back(part[0]);
        continue;
      }
      for (Value& v : transposed_square(std::move(part))) out.push_back(v);
    }
    return out;
  }
  auto middle = rows.begin() + n / 2;
  Values low = transposed({rows.begin(), middle}), high = transposed({middle, rows.end()});
  for (std::size_t i = 0; i < low.size(); ++i) out.push_back(concat_lanes(low[i], high[i]));
  return out;
}

std::vector<Renderer::Expression> Renderer::crossing_loads(const Stmt& outer) {
  const Stmt& inner = outer.body[0];
  const Dim p = loop_symbol(outer.var, outer.extent), q = loop_symbol(inner.var, inner.extent);
  std::vector<Expression> out;
  std::vector<Expression> roots = values_of(inner.body);
  for (NodeId n : nodes_below(roots)) {
    Expression e(&roots[0].graph(), n);
    if (!e.is(ops::load) || reads_(e).written) continue;
    const Dim& at = e.attrs().dims("offset").at(0);
    // Loads are made before the body, so they may not need registers that the body declares. Each
    // row is read under one condition.
    const Dependences d = dependences(e);
    const auto is_known = [&](RegId r) { return registers_.contains(r); };
    if (!std::ranges::all_of(d.registers, is_known)) continue;
    if (e.operand_count() > 0 && dependences(e.operand(0)).loops.contains(outer.var)) continue;
    if (stride_of(at, p) == Dim(1) && mentions(at, q) && stride_of(at, q) != Dim(1))
      out.push_back(e);
  }
  return out;
}

// Mask of the lanes from q on that are read.
std::optional<Value> Renderer::mask_of_rows(const Expression& load, VarId lane, Value q,
                                            const Lanes& lanes) {
  auto cache = cache_;
  set_variable(lane, q);
  set_lanes(lanes);
  std::optional<Value> mask = combined_mask(load);
  set_lanes({});
  cache_ = std::move(cache);
  return mask;
}

// Elements [p, p + block) of the outer loop times the lanes from q on.
void Renderer::across_tile(const Stmt& outer, const std::vector<Expression>& loads, Value p,
                           int block, Value q, const Lanes& lanes) {
  const Stmt& inner = outer.body[0];
  std::vector<Values> columns;
  set_variable(outer.var, p);
  for (const Expression& e : loads) {
    const DType dtype = buffer_dtype(static_cast<int>(e.attrs().integer("param")));
    const std::optional<Value> mask = mask_of_rows(e, inner.var, q, lanes);
    Values rows;
    for (int i = 0; i < lanes.count; ++i) {
      set_variable(inner.var, q + i);
      Pointer from = address(e);
      if (!mask)
        rows.push_back(load(dtype, from, block));
      else
        rows.push_back(load_masked(dtype, from, broadcast(extract(*mask, i), block)));
    }
    columns.push_back(transposed(std::move(rows)));
  }
  set_variable(inner.var, q);
  set_lanes(lanes);
  for (int j = 0; j < block; ++j) {
    auto cache = cache_;
    set_variable(outer.var, p + j);
    for (std::size_t i = 0; i < loads.size(); ++i)
      cache_.insert_or_assign(loads[i].node(), columns[i][static_cast<std::size_t>(j)]);
    this->block(inner.body);
    cache_ = std::move(cache);
  }
  set_lanes({});
}

void Renderer::across_loop(const Stmt& s) {
  HONE_ASSERT(s.body.size() == 1 && s.body[0].loop == LoopKind::lanes,
              "an across loop is not around a lanes loop");
  const Stmt& inner = s.body[0];
  hoist(s);
  const Lanes lanes{inner.var, lanes_for(inner), std::nullopt};
  std::int64_t block = m_.target().vector_bits / 32;
  if (auto n = s.extent.as_number())
    while (block > 1 && block > *n) block /= 2;
  const std::vector<Expression> loads = crossing_loads(s);
  Value rows = position(s.extent), columns = position(inner.extent);
  Value whole_rows = rows - modulo_index(rows, m_.index(block));
  Value whole_columns = columns - modulo_index(columns, m_.index(lanes.count));
  m_.loop(m_.index(0), whole_rows, block, [&](Value p) {
    m_.loop(m_.index(0), whole_columns, lanes.count,
            [&](Value q) { across_tile(s, loads, p, static_cast<int>(block), q, lanes); });
    if (auto n = inner.extent.as_number(); n && *n % lanes.count == 0) return;
    m_.if_(less(whole_columns, columns), [&] {
      Lanes masked = lanes;
      masked.mask = m_.tail_mask(columns - whole_columns, lanes.count);
      across_tile(s, loads, p, static_cast<int>(block), whole_columns, masked);
    });
  });
  m_.loop(whole_rows, rows, 1, [&](Value p) {
    auto cache = cache_;
    set_variable(s.var, p);
    lanes_loop(inner);
    cache_ = std::move(cache);
  });
  forget_memory();
}

}  // namespace hone::llvm
