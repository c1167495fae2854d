#include "codegen/llvm/skeleton.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/walk.h"

namespace hone::llvm {

namespace {

std::size_t at(const RegisterTile& t, int row, int vector) {
  return static_cast<std::size_t>(row * t.vectors + vector);
}

Value multiply_add(Value a, Value b, Value c) {
  return is_float(a.dtype()) ? fma(a, b, c) : a * b + c;
}

// One k: a(r, k) times the row k of B.
Values one_step(const RegisterTile& tile, Values sums, const TileRows& a, Pointer a_k,
                const Values& b) {
  for (int r = 0; r < tile.rows; ++r) {
    Pointer place = offset(a_k, tile.dtype, a.offsets[static_cast<std::size_t>(r)]);
    Value x = broadcast(load(tile.dtype, place), tile.lanes);
    for (int v = 0; v < tile.vectors; ++v) {
      Value& sum = sums[at(tile, r, v)];
      sum = multiply_add(x, b[static_cast<std::size_t>(v)], sum);
    }
  }
  return sums;
}

Values row_of(const RegisterTile& tile, const TileColumns& b, Value k) {
  Values out;
  for (int v = 0; v < tile.vectors; ++v) out.push_back(b(k, v));
  return out;
}

}  // namespace

TileColumns packed_columns(const RegisterTile& tile, Pointer base) {
  return [tile, base](Value k, int v) {
    Pointer row = offset(base, tile.dtype, k * tile.block());
    Pointer p = offset(row, tile.dtype, std::int64_t{v} * tile.lanes);
    return load(tile.dtype, p, tile.lanes, {.invariant = true});
  };
}

Values zero_tile(Module& m, const RegisterTile& tile) {
  return Values(static_cast<std::size_t>(tile.rows * tile.vectors), m.zero(tile.vector_type()));
}

Values load_tile(const RegisterTile& tile, Pointer from) {
  Values out;
  for (int i = 0; i < tile.rows * tile.vectors; ++i)
    out.push_back(
        load(tile.dtype, offset(from, tile.dtype, std::int64_t{i} * tile.lanes), tile.lanes));
  return out;
}

void store_tile(const RegisterTile& tile, Pointer to, const Values& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    store(tile.dtype, offset(to, tile.dtype, static_cast<std::int64_t>(i) * tile.lanes), sums[i]);
}

Values multiply_add(Module& m, const RegisterTile& tile, Values sums, const TileRows& a,
                    const TileColumns& b, Value count) {
  return m.loop(m.index(0), count, 1, std::move(sums), [&](Value k, const Values& carried) {
    Pointer a_k = offset(a.base, tile.dtype, a.step == 1 ? k : k * a.step);
    return one_step(tile, carried, a, a_k, row_of(tile, b, k));
  });
}

ColumnMasks all_columns(const RegisterTile& tile) {
  return {tile.vectors, std::vector<std::optional<Value>>(static_cast<std::size_t>(tile.vectors))};
}

ColumnMasks first_columns(Module& m, const RegisterTile& tile, std::int64_t remaining) {
  ColumnMasks out;
  for (int v = 0; v < tile.vectors && remaining > 0; ++v, remaining -= tile.lanes) {
    ++out.vectors;
    bool whole = remaining >= tile.lanes;
    out.of_vector.push_back(whole ? std::nullopt
                                  : std::optional(m.tail_mask(m.index(remaining), tile.lanes)));
  }
  return out;
}

ColumnMasks first_columns(Module& m, const RegisterTile& tile, Value remaining) {
  ColumnMasks out{tile.vectors, {}};
  for (int v = 0; v < tile.vectors; ++v) {
    Value here = maximum(remaining - std::int64_t{v} * tile.lanes, m.index(0));
    out.of_vector.push_back(m.tail_mask(here, tile.lanes));
  }
  return out;
}

void for_panel(Module& m, const RegisterTile& tile, Value n, Value count,
               std::optional<std::int64_t> known,
               const std::function<void(const ColumnMasks&)>& body) {
  const std::int64_t block = tile.block();
  if (known && *known % block == 0) return body(all_columns(tile));
  auto narrow = [&] {
    body(known ? first_columns(m, tile, *known % block) : first_columns(m, tile, count - n));
  };
  if (known && *known < block) return narrow();
  m.if_(less_equal(n + block, count), [&] { body(all_columns(tile)); }, narrow);
}

void store_rows(Module& m, const RegisterTile& tile, Pointer stored, Value first, Value last,
                const ColumnMasks& columns, const TileEpilogue& epilogue) {
  m.loop(first, last, 1, [&](Value row) {
    for (int v = 0; v < columns.vectors; ++v) {
      Pointer p = offset(stored, tile.dtype, row * tile.block());
      p = offset(p, tile.dtype, std::int64_t{v} * tile.lanes);
      epilogue(row, v, load(tile.dtype, p, tile.lanes),
               columns.of_vector[static_cast<std::size_t>(v)]);
    }
  });
}

void store_whole(Module& m, const RegisterTile& tile, const Values& sums,
                 const ColumnMasks& columns, const TileEpilogue& epilogue) {
  for (int row = 0; row < tile.rows; ++row)
    for (int v = 0; v < columns.vectors; ++v)
      epilogue(m.index(row), v, sums[at(tile, row, v)],
               columns.of_vector[static_cast<std::size_t>(v)]);
}

bool is_short(const Hole& epilogue, const RegisterTile& tile) {
  constexpr std::size_t most_operations = 160;
  std::vector<hone::Value> roots = values_of(epilogue.stores);
  std::size_t operations = epilogue.stores.size();
  if (!roots.empty()) operations += nodes_below(roots).size();
  return operations * static_cast<std::size_t>(tile.rows * tile.vectors) <= most_operations;
}

void for_vectors(Module& m, int lanes, Value count,
                 const std::function<void(Value, std::optional<Value>)>& body) {
  Value rest = modulo_index(count, m.index(lanes)), whole = count - rest;
  m.loop(m.index(0), whole, lanes, [&](Value i) { body(i, std::nullopt); });
  m.if_(not_equal(rest, 0), [&] { body(whole, m.tail_mask(rest, lanes)); });
}

// ---- sizes

namespace {

class SizeEmitter {
 public:
  SizeEmitter(Module& m, const KernelArguments& in, std::span<const Dim> symbols)
      : m_(m), in_(in), symbols_(symbols) {}

  Value operator()(const Dim& d) const {
    if (auto n = d.as_number()) return m_.index(*n);
    return of(*d.expr(), d);
  }

 private:
  Value of(const DimExpr& e, const Dim& d) const {
    using Kind = DimExpr::Kind;
    if (e.kind == Kind::symbol) return symbol(d);
    if (e.kind == Kind::sum) return sum(e);
    Value a = (*this)(e.a), b = (*this)(e.b);
    switch (e.kind) {
      case Kind::floor_div:
        return floored(a, b, a / b);
      case Kind::mod:
        return a - floored(a, b, a / b) * b;
      case Kind::min:
        return minimum(a, b);
      case Kind::max:
        return maximum(a, b);
      default:
        return cast(equal(a, b), DType::i64);
    }
  }

  Value symbol(const Dim& d) const {
    auto found = std::find(symbols_.begin(), symbols_.end(), d);
    HONE_ASSERT(found != symbols_.end(), "size ", d, " is not handed to the kernel");
    return in_.size(static_cast<int>(found - symbols_.begin()));
  }

  Value sum(const DimExpr& e) const {
    Value total = m_.index(0);
    for (const DimExpr::Term& term : e.terms) {
      Value product = m_.index(term.factor);
      for (const Dim& atom : term.atoms) product = product * (*this)(atom);
      total = total + product;
    }
    return total;
  }

  // From the truncated quotient: one less where a remainder has the other sign than b.
  Value floored(Value a, Value b, Value quotient) const {
    Value rest = a - quotient * b;
    Value off = not_equal(rest, 0) & less(rest ^ b, 0);
    return select(off, quotient - 1, quotient);
  }

  Module& m_;
  const KernelArguments& in_;
  std::span<const Dim> symbols_;
};

}  // namespace

Value size_of(Module& m, const KernelArguments& in, std::span<const Dim> sizes, const Dim& d) {
  return SizeEmitter(m, in, sizes)(d);
}

}  // namespace hone::llvm
