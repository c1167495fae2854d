#include "kernel/tiles/attention.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.h"
#include "kernel/nest/block_writer.h"
#include "kernel/nest/blocking.h"
#include "kernel/nest/loops.h"
#include "kernel/problem/attention_problem.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- tuning

struct AttentionTuning {
  std::int64_t queries = 1;  // of a chunk, whole tiles
  std::int64_t keys = 16;    // of a block, whole tiles
  std::int64_t rows = 1, columns = 16;

  Tuning named() const {
    return {{"queries", queries}, {"keys", keys}, {"rows", rows}, {"columns", columns}};
  }
};

// The tile with the fewest cycles per query and key; on a tie the narrower one, whose columns of
// values stay in the L1 cache.
TileShape best_tile(const AttentionProblem& p, std::int64_t rows, const TargetInfo& target) {
  TileShape best;
  double best_cycles = 0;
  for (std::int64_t vectors = 1; vectors <= 8; ++vectors) {
    const std::int64_t most = TileShape::most_rows(vectors, target),
                       columns = vectors * target.lanes(4);
    if (most < 1) continue;
    const TileShape tile{even_part(rows, most), vectors};
    const double of_score = static_cast<double>(p.depth) / static_cast<double>(columns),
                 of_mixture = static_cast<double>(ceil_ratio(p.width, columns)),
                 cycles = tile.cycles() * static_cast<double>(ceil_ratio(rows, tile.rows)) *
                          (of_score + of_mixture);
    if (best_cycles > 0 && cycles >= best_cycles) continue;
    best = tile;
    best_cycles = cycles;
  }
  return best;
}

// A chunk's queries, scores and sums, and a block of keys and values.
std::int64_t bytes_in_use(const AttentionProblem& p, std::int64_t queries, std::int64_t keys) {
  return 4 * (queries * (p.depth + p.width + keys) + keys * (p.depth + p.width));
}

// Fits in half of the L2 cache, with enough chunks to keep threads busy.
AttentionTuning tuned(const AttentionProblem& p, const TargetInfo& target, const Tuning& given) {
  constexpr std::int64_t most_queries = 96, most_keys = 128;
  const std::int64_t m = tiling_size(p.queries), n = tiling_size(p.keys),
                     heads = certain_size(product(p.leading)), lanes = target.lanes(4);
  std::int64_t queries = even_part(m, most_queries), keys = std::min(n, most_keys);
  auto is_too_much = [&] { return bytes_in_use(p, queries, keys) > target.l2_bytes / 2; };
  while (keys > 32 && is_too_much()) keys /= 2;
  while (queries > 8 && is_too_much()) queries /= 2;
  auto is_too_long = [&] {
    const double cycles = static_cast<double>(queries * n * (p.depth + p.width) / lanes);
    return heads * ceil_ratio(m, queries) < enough_chunks && cycles > 2 * least_chunk_cycles;
  };
  while (queries > 8 && is_too_long()) queries = even_part(m, queries / 2);
  auto positive = [&](std::string_view name, std::int64_t otherwise) {
    return std::max<std::int64_t>(1, value_or(given, name, otherwise));
  };
  queries = positive("queries", queries);
  const TileShape tile = best_tile(p, queries, target);
  AttentionTuning t;
  t.rows = positive("rows", tile.rows);
  t.columns = whole_tiles(positive("columns", tile.vectors * lanes), lanes);
  t.queries = whole_tiles(queries, t.rows);
  t.keys = whole_tiles(positive("keys", keys), t.columns);
  return t;
}

// ---- statements

// The operands and results as expressions of indices: of the matrix, the query, the key and the
// element.
struct Attention {
  AttentionProblem problem;
  Dim batch = 1;
  Splice query, mask, value, epilogue;  // (b, m, d), (b, m, s), (b, s, e), (b, m, e)
  Dim matrix;                           // of keys and values, over b
  int packed_keys = -1;                 // a parameter
};

class AttentionWriter {
 public:
  AttentionWriter(Kernel& kernel, Lowering& lowering, const Attention& a, const AttentionTuning& t)
      : kernel_(kernel), lowering_(lowering), out_(lowering), a_(a), p_(a.problem), t_(t) {}

  void write() {
    lay_out();
    const Dim sizes[] = {a_.batch, ceil_div(p_.queries, t_.queries)};
    kernel_.chunks = product(sizes);
    out_.loop(LoopKind::grid, kernel_.chunks,
              [&](const Dim& chunk) { chunk_of(lowering_.positions().split(chunk, sizes)); });
    kernel_.graph = lowering_.shared_graph();
    kernel_.body = out_.take();
  }

 private:
  enum Scratch { queries, scores, sums, largest, totals, scratch_count };

  void lay_out() {
    query_stride_ = spread_stride(p_.depth, 4);
    score_stride_ = spread_stride(t_.keys, 4);
    sum_stride_ = spread_stride(p_.width, 4);
    const std::array<std::int64_t, scratch_count> sizes = {
        t_.queries * query_stride_, t_.queries * score_stride_, t_.queries * sum_stride_,
        t_.queries, t_.queries};
    first_scratch_ = static_cast<int>(kernel_.params.size());
    for (std::int64_t elements : sizes) kernel_.memory.push_back({DType::f32, elements});
    place_memory(kernel_);
    kernel_.tiles = {{DType::f32, static_cast<int>(t_.rows), static_cast<int>(t_.columns)}};
  }

  // ---- expressions

  Value in(Scratch where, const Dim& at) const {
    return lowering_.load(first_scratch_ + where, DType::f32, at);
  }
  Value reg(RegId r) const { return lowering_.reg(r, DType::f32); }
  Value number(double x) const { return lowering_.number(x, DType::f32); }
  Value apply(const Op& op, Value a, Value b) const { return lowering_.apply(op, {a, b}); }

  void put(Scratch where, const Dim& at, Value v) {
    out_.add({.kind = Kind::store, .param = first_scratch_ + where, .offset = at, .value = v});
  }
  RegId declare(Value v) {
    const RegId r = lowering_.positions().new_register();
    out_.add({.kind = Kind::declare, .reg = r, .value = v});
    return r;
  }
  Value keep(Value v) { return reg(declare(v)); }
  void accumulate(RegId r, const Op& combine, Value v) {
    out_.add({.kind = Kind::accumulate, .reg = r, .combine = &combine, .value = v});
  }
  void rows(const Dim& count, const std::function<void(const Dim&)>& body) {
    out_.loop(LoopKind::serial, count, body);
  }
  void lanes(const Dim& count, const std::function<void(const Dim&)>& body) {
    out_.loop(LoopKind::lanes, count, body);
  }

  // ---- chunks

  // How many of `all` are in a block of `most` that starts at `first`.
  Dim part_of(const Dim& all, const Dim& first, std::int64_t most) {
    if (all.is_number() && all.number() % most == 0) return most;
    return out_.keep(min(Dim(most), all - first));
  }

  void chunk_of(const Dims& at) {
    batch_ = out_.keep(at[0]);
    first_query_ = out_.keep(at[1] * Dim(t_.queries));
    rows_ = part_of(p_.queries, first_query_, t_.queries);
    row_tiles_ = out_.keep(ceil_div(rows_, t_.rows));
    const Dim matrix = replace(a_.matrix, std::array{Replacement{a_.query.vars[0], batch_}});
    first_panel_ = out_.keep(matrix * ceil_div(p_.keys, t_.columns));
    visible_ = p_.keys;
    if (p_.last_key)
      visible_ = out_.keep(min(p_.keys, max(Dim(0), first_query_ + rows_ + *p_.last_key)));
    copy_queries();
    first_sums();
    rows(ceil_div(visible_, t_.keys), [&](const Dim& block) { block_of_keys(block); });
    results();
  }

  // Queries past the last are copies of it; their results are not stored.
  void copy_queries() {
    rows(row_tiles_ * Dim(t_.rows), [&](const Dim& r) {
      const Dim query = out_.keep(min(first_query_ + r, p_.queries - Dim(1)));
      lanes(p_.depth, [&](const Dim& d) {
        put(queries, r * Dim(query_stride_) + d,
            spliced(lowering_.graph(), a_.query, std::array{batch_, query, d}));
      });
    });
    lanes(t_.queries, [&](const Dim& r) {
      put(largest, r, number(-infinity));
      put(totals, r, number(0));
    });
  }

  // Keys that no query of the chunk sees count 0 times their value, which is NaN for an infinite
  // value, as in the operation's expansion.
  void first_sums() {
    lanes(p_.width, [&](const Dim& e) {
      Value start = number(0);
      if (p_.last_key) {
        const RegId sum = declare(start);
        rows(p_.keys - visible_, [&](const Dim& s) {
          const Dim at[] = {batch_, visible_ + s, e};
          Value v = lowering_.convert(spliced(lowering_.graph(), a_.value, at), DType::f32);
          accumulate(sum, ops::add, apply(ops::mul, number(0), v));
        });
        start = reg(sum);
      }
      rows(t_.queries, [&](const Dim& r) { put(sums, r * Dim(sum_stride_) + e, start); });
    });
  }

  void block_of_keys(const Dim& block) {
    first_key_ = out_.keep(block * Dim(t_.keys));
    count_ = part_of(visible_, first_key_, t_.keys);
    score_tiles(block);
    rows(rows_, [&](const Dim& r) { row_of_scores(r); });
    mixture();
  }

  // ---- tiles

  // Rows of a piece of scratch, starting at `first`.
  TileWindow window(Scratch where, const Dim& first, std::int64_t stride) const {
    TileWindow w{first_scratch_ + where, first, {}, 1};
    for (std::int64_t r = 0; r < t_.rows; ++r) w.rows.push_back(r * stride);
    return w;
  }
  void tile(Kind kind, const TileWindow& w, const Dim& columns) {
    out_.add({.kind = kind, .tile = 0, .columns = columns, .a = w});
  }
  void multiply(const Dim& extent, const Dim& columns, TileWindow a, TileWindow b) {
    out_.add({.kind = Kind::tile_multiply,
              .extent = extent,
              .tile = 0,
              .columns = columns,
              .a = std::move(a),
              .b = std::move(b)});
  }

  void score_tiles(const Dim& block) {
    const Dim first_panel = out_.keep(first_panel_ + block * Dim(t_.keys / t_.columns));
    rows(ceil_div(count_, t_.columns), [&](const Dim& c) {
      const Dim panel = out_.keep((first_panel + c) * Dim(p_.depth * t_.columns));
      rows(row_tiles_, [&](const Dim& t) {
        const Dim row = t * Dim(t_.rows);
        out_.add({.kind = Kind::tile_fill, .value = number(0), .tile = 0, .columns = t_.columns});
        multiply(p_.depth, t_.columns, window(queries, row * Dim(query_stride_), query_stride_),
                 {a_.packed_keys, panel, {}, t_.columns});
        const Dim place = row * Dim(score_stride_) + c * Dim(t_.columns);
        tile(Kind::tile_store, window(scores, place, score_stride_), t_.columns);
      });
    });
  }

  void mixture() {
    const std::int64_t whole = p_.width / t_.columns, rest = p_.width % t_.columns;
    rows(whole, [&](const Dim& c) { mix(out_.keep(c * Dim(t_.columns)), t_.columns); });
    if (rest > 0) mix(whole * t_.columns, rest);
  }

  void mix(const Dim& first, std::int64_t columns) {
    const Value& load = a_.value.value;
    const Dim at[] = {batch_, first_key_, first};
    const TileWindow values = {load_param(load),
                               place_of_load(load, a_.value, at),
                               {},
                               *stride_of(load.attrs().dims("offset").at(0), a_.value.vars[1])};
    rows(row_tiles_, [&](const Dim& t) {
      const Dim row = t * Dim(t_.rows);
      const TileWindow mixed = window(sums, row * Dim(sum_stride_) + first, sum_stride_);
      tile(Kind::tile_load, mixed, columns);
      multiply(count_, columns, window(scores, row * Dim(score_stride_), score_stride_), values);
      tile(Kind::tile_store, mixed, columns);
    });
  }

  // ---- rows

  // Scores become exponentials. Existing sums are rescaled when a larger score appears. A row with
  // only -infinity so far is not shifted: exp then gives 0, as it should.
  void row_of_scores(const Dim& r) {
    const Dim row = out_.keep(r * Dim(score_stride_)), seen = seen_by(r);
    const RegId most = declare(number(-infinity));
    lanes(seen, [&](const Dim& j) {
      Value s = scaled(in(scores, row + j));
      if (p_.changes_scores()) {
        s = keep(changed(s, r, j));
        put(scores, row + j, s);
      }
      accumulate(most, ops::maximum, s);
    });
    Value before = keep(in(largest, r)), now = keep(apply(ops::maximum, before, reg(most)));
    Value is_low = apply(ops::eq, now, number(-infinity));
    Value shift = keep(lowering_.apply(ops::select, {is_low, number(0), now}));
    out_.branch(apply(ops::ne, now, before), [&] { shrink(r, now, before, shift); });
    const RegId sum = declare(number(0));
    lanes(seen, [&](const Dim& j) {
      const Value s = p_.changes_scores() ? in(scores, row + j) : scaled(in(scores, row + j));
      const Value p = keep(lowering_.apply(ops::exp, {apply(ops::sub, s, shift)}));
      put(scores, row + j, p);
      accumulate(sum, ops::add, p);
    });
    if (p_.last_key)
      lanes(count_ - seen, [&](const Dim& j) { put(scores, row + seen + j, number(0)); });
    put(totals, r, apply(ops::add, in(totals, r), reg(sum)));
  }

  // How many keys of the block the query may see.
  Dim seen_by(const Dim& r) {
    if (!p_.last_key) return count_;
    const Dim behind = first_query_ + r + *p_.last_key + Dim(1) - first_key_;
    return out_.keep(max(Dim(0), min(count_, behind)));
  }

  void shrink(const Dim& r, Value now, Value before, Value shift) {
    Value factor = keep(lowering_.apply(ops::exp, {apply(ops::sub, before, shift)}));
    put(largest, r, now);
    put(totals, r, apply(ops::mul, in(totals, r), factor));
    lanes(p_.width, [&](const Dim& e) {
      const Dim at = r * Dim(sum_stride_) + e;
      put(sums, at, apply(ops::mul, in(sums, at), factor));
    });
  }

  Value scaled(Value s) const { return p_.scale == 1 ? s : apply(ops::mul, s, number(p_.scale)); }

  // The scaled score as the softmax takes it.
  Value changed(Value s, const Dim& row, const Dim& j) const {
    Value mask;
    if (p_.mask)
      mask = spliced(lowering_.graph(), a_.mask,
                     std::array{batch_, first_query_ + row, first_key_ + j});
    return changed_score(lowering_, p_, s, mask);
  }

  // The sum over no keys is 0.
  void results() {
    rows(rows_, [&](const Dim& r) {
      Value inverse = apply(ops::div, number(1), in(totals, r));
      if (p_.keys.low() < 1)
        inverse = lowering_.apply(ops::select, {lowering_.below(0, p_.keys), inverse, number(0)});
      inverse = keep(inverse);
      const Dim query = out_.keep(first_query_ + r);
      lanes(p_.width, [&](const Dim& e) {
        Value y = apply(ops::mul, in(sums, r * Dim(sum_stride_) + e), inverse);
        const Dim at[] = {batch_, query, e};
        for (Stmt& s : spliced_stores(lowering_.graph(), a_.epilogue, at, y))
          out_.add(std::move(s));
      });
    });
  }

  Kernel& kernel_;
  Lowering& lowering_;
  BlockWriter out_;
  const Attention& a_;
  const AttentionProblem& p_;
  const AttentionTuning& t_;
  int first_scratch_ = 0;
  std::int64_t query_stride_ = 0, score_stride_ = 0, sum_stride_ = 0;
  Dim batch_, first_query_, rows_, row_tiles_, first_panel_, visible_;  // of the chunk
  Dim first_key_, count_;                                               // of the block of keys
};

// ---- candidates

// [shared..., keys, depth] as [matrices, panels, depth, columns], zero-padded.
Type packed_keys(const AttentionProblem& p, std::int64_t columns) {
  return {DType::f32,
          Shape{product(p.shared), ceil_div(p.keys, columns), Dim(p.depth), Dim(columns)}};
}
Value pack_keys(Value k, const AttentionProblem& p, std::int64_t columns) {
  const Dims dims = packed_keys(p, columns).shape.dims;
  Value x = cast_to(reshape_to(k, {dims[0], p.keys, dims[2]}), DType::f32);
  const Dim missing = dims[1] * Dim(columns) - p.keys;
  x = pad_with(x, scalar(x.graph(), 0, DType::f32), {0, 0, 0}, {0, missing, 0});
  return transpose_by(reshape_to(x, {dims[0], dims[1], Dim(columns), dims[2]}), Axes{0, 1, 3, 2});
}

Type packed_values(const AttentionProblem& p) {
  return {DType::f32, Shape{product(p.shared), p.keys, Dim(p.width)}};
}
Value pack_values(Value v, const AttentionProblem& p) {
  return cast_to(reshape_to(v, packed_values(p).shape.dims), DType::f32);
}

// True for a load that is contiguous over elements and has a constant stride over keys.
bool lie_in_order(const Splice& v) {
  auto load = plain_load(v, DType::f32);
  return load && stride_along(*load, v.vars[2]) == 1 &&
         stride_of(load->attrs().dims("offset").at(0), v.vars[1]);
}

// Fills in the expressions around it; values are read in place unless they are packed. Returns
// nullopt if the group does not allow that.
std::optional<Attention> spliced_into(AnchoredGroup& group, const AttentionProblem& p, bool pack) {
  Attention a{.problem = p, .batch = product(p.leading)};
  Values read = {p.q};
  if (p.mask) read.push_back(p.mask);
  if (!pack) read.push_back(p.v);
  group.set_operands(read, pack ? 2 : 1);
  const AttentionPlaces at(p, group.lowering().positions());
  a.matrix = at.matrix;
  auto query =
      group.element(p.q, at(at.lead, at.m, at.d), std::array{at.b, at.m, at.d}, DType::f32);
  auto epilogue = group.epilogue(at(at.lead, at.m, at.e), std::array{at.b, at.m, at.e});
  if (!query || !epilogue) return std::nullopt;
  a.query = std::move(*query);
  a.epilogue = std::move(*epilogue);
  if (p.mask) {
    std::optional<Splice> mask = mask_element(group, p, at);
    if (!mask) return std::nullopt;
    a.mask = std::move(*mask);
  }
  if (pack) {
    const Dims in_order = at({a.matrix}, at.s, at.e);
    const Value load =
        group.lowering().load(group.set_temporary(1, packed_values(p)), DType::f32,
                              (a.matrix * p.keys + in_order[1]) * Dim(p.width) + in_order[2]);
    a.value = {{at.b, at.s, at.e}, load, {}, {}};
    return a;
  }
  auto value =
      group.element(p.v, at(at.shared, at.s, at.e), std::array{at.b, at.s, at.e}, DType::f32);
  if (!value || !lie_in_order(*value)) return std::nullopt;
  a.value = std::move(*value);
  return a;
}

Candidate candidate_of(AnchoredGroup& group, Attention a, const AttentionTuning& t, bool pack) {
  Candidate out;
  out.name = "attention";
  const AttentionProblem& p = a.problem;
  auto packed = [&](Value v, const Type& type, const std::function<Value(Value)>& make) {
    const bool is_weight = group.is_weight(v);
    out.steps.push_back(group.packing_step(v, make, out.temporaries.size(), is_weight));
    out.temporaries.push_back({type, is_weight});
  };
  packed(p.k, packed_keys(p, t.columns), [&](Value k) { return pack_keys(k, p, t.columns); });
  if (pack) packed(p.v, packed_values(p), [&](Value v) { return pack_values(v, p); });
  a.packed_keys = group.set_temporary(0, packed_keys(p, t.columns));
  Kernel kernel = group.kernel();
  AttentionWriter(kernel, group.lowering(), a, t).write();
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

}  // namespace

std::optional<Candidate> attention_candidate(const GroupSpec& spec, const TargetInfo& target,
                                             const Tuning& tuning) {
  const std::optional<FoundAttention> found = find_attention(spec);
  if (!found) return std::nullopt;
  for (bool pack : {false, true}) {
    AnchoredGroup group = found->group;
    const std::optional<Attention> a = spliced_into(group, found->problem, pack);
    if (a) return candidate_of(group, *a, tuned(found->problem, target, tuning), pack);
  }
  return std::nullopt;
}

std::vector<Tuning> attention_space(const GroupSpec& spec, const TargetInfo& target) {
  const std::optional<FoundAttention> found = find_attention(spec);
  if (!found) return {};
  const AttentionProblem& p = found->problem;
  std::vector<Tuning> out;
  auto add = [&](const Tuning& given) {
    Tuning t = tuned(p, target, given).named();
    if (std::ranges::find(out, t) == out.end()) out.push_back(std::move(t));
  };
  add({});
  for (std::int64_t queries : {48, 96, 192})
    for (std::int64_t keys : {64, 128, 256})
      if (bytes_in_use(p, queries, keys) <= target.l2_bytes)
        add({{"queries", std::min(queries, tiling_size(p.queries))}, {"keys", keys}});
  const std::int64_t queries = value_or(out[0], "queries", 1);
  for (std::int64_t vectors : {1, 2, 4})
    if (const std::int64_t most = TileShape::most_rows(vectors, target); most > 0)
      add({{"rows", even_part(queries, most)}, {"columns", vectors * target.lanes(4)}});
  return out;
}

}  // namespace hone
