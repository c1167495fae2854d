#include "kernel/nest/group_nest.h"

#include <algorithm>
#include <bit>

#include "kernel/nest/keep_values.h"
#include "kernel/nest/loops.h"
#include "kernel/nest/own_maximum.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

Dims extents_of(const std::vector<Stmt>& loops) {
  Dims out;
  for (const Stmt& s : loops) out.push_back(s.extent);
  return out;
}

std::int64_t floor_power(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

std::int64_t threads_for(const Dim& work, std::int64_t most) {
  if (!work.is_number()) return most;
  const auto n = static_cast<std::uint64_t>(std::max<std::int64_t>(work.number(), 1));
  return std::min(most, static_cast<std::int64_t>(std::bit_ceil(n)));
}

class Groups {
 public:
  Groups(Kernel& kernel, Lowering& lowering, const TargetInfo& target, const Tuning& tuning)
      : kernel_(kernel),
        lowering_(lowering),
        positions_(lowering.positions()),
        most_threads_(std::clamp<std::int64_t>(
            value_or(tuning, "threads", std::min(target.group_threads, 256)), 1,
            target.group_threads)),
        rows_(value_or(tuning, "rows", -1)),
        vectors_(value_or(tuning, "vectors", -1)),
        may_have_threads_(target.group_threads),
        may_share_row_(std::max(target.row_threads, target.group_threads)),
        spread_(value_or(tuning, "spread", -1)),
        row_blocks_(target.row_blocks),
        row_thread_bytes_(target.row_thread_bytes),
        block_bytes_(target.group_bytes),
        are_threads_given_(value_or(tuning, "threads", 0) > 0),
        has_vectors_(target.vector_bits >= 128) {}

  Block arrange(Peeled p) {
    if (wants_rows(p)) {
      rows_count_ = product(extents_of(p.outer));
      threads_ = row_threads();
      thread_ = positions_.add_loop(threads_);
      is_spread_ = spreads();
      if (is_spread_) {
        threads_ = spreading_threads();
        thread_ = positions_.add_loop(threads_);
      }
      if (std::optional<Block> shared = share(p.inner)) {
        if (is_spread_ && blocks_of_spread(threads_) > 1) subtract_own_maximum(*shared, lowering_);
        is_spread_ ? spread(*shared) : keep_values(*shared, kernel_, lowering_);
        store_last(*shared, kernel_, lowering_);
        return rows(std::move(p), std::move(*shared));
      }
    }
    return elements(std::move(p));
  }

 private:
  // ---- one thread per iteration of the outer loops

  Block elements(Peeled p) {
    const Dims extents = extents_of(p.outer);
    const std::int64_t width = vector_width(p.inner, p.outer);
    const Dim total = floor_div(product(extents), width);
    threads_ = threads_for(total, most_threads_);
    thread_ = positions_.add_loop(threads_);
    kernel_.chunks = ceil_div(total, threads_);
    const Dim chunk = positions_.add_loop(kernel_.chunks);
    const Dim at = chunk * Dim(threads_) + thread_;
    Block body = place(std::move(p.inner), p.outer, at, width);
    if (!is_multiple(total)) body = when(lowering_.below(at, total), std::move(body));
    return grid(chunk, std::move(p.prefix), std::move(body));
  }

  bool is_multiple(const Dim& total) const { return mod(total, threads_) == Dim(0); }

  // How many iterations of the last loop one thread takes, as lanes: as many elements of the widest
  // parameter as fit in 16 bytes. What a thread writes must be contiguous. What it reads must be
  // too, or else neighbouring threads must read neighbouring elements.
  std::int64_t vector_width(const Block& body, const std::vector<Stmt>& loops) const {
    constexpr double worth_it = 1 << 16;
    if (vectors_ < 0 && typical(product(extents_of(loops))) < worth_it) return 1;
    return possible_width(body, loops);
  }

  // For a row that threads share. Neighbouring threads hold neighbouring elements, so single
  // elements of 4 bytes also use full cache lines; but spread memory is accessed in vectors of 16
  // bytes.
  std::int64_t row_vector_width(const Block& body, const std::vector<Stmt>& loops) const {
    constexpr double worth_it = 1 << 20;
    constexpr std::int64_t wide_element = 4;
    const auto is_narrow = [](const KernelParam& p) { return byte_size(p.dtype) < wide_element; };
    const Dim length = product(extents_of(loops));
    if (vectors_ < 0 && !is_spread_ &&
        (!std::ranges::any_of(kernel_.params, is_narrow) ||
         typical(length * rows_count_) < worth_it))
      return 1;
    std::int64_t width = possible_width(body, loops);
    while (width > 1 && !is_multiple(floor_div(length, width))) width /= 2;
    return width;
  }

  std::int64_t possible_width(const Block& body, const std::vector<Stmt>& loops) const {
    constexpr std::int64_t vector_bytes = 16, most = 8;
    if (!has_vectors_ || loops.empty() || !kernel_.memory.empty()) return 1;
    const Dim along = symbol_of(loops.back());
    std::int64_t width = vectors_ < 0 ? most : std::clamp<std::int64_t>(vectors_, 1, most);
    for (const KernelParam& p : kernel_.params)
      width = std::min<std::int64_t>(width, vector_bytes / byte_size(p.dtype));
    while (width > 1 && !(mod(loops.back().extent, width) == Dim(0))) width /= 2;
    bool moves = false;
    const auto lies_well = [&](const Dim& offset) {
      const std::optional<Dim> stride = stride_of(offset, along);
      moves = moves || stride == Dim(1);
      return stride == Dim(0) || stride == Dim(1);
    };
    // If the lanes are the whole loop, the next thread has the next iteration of the outer loop.
    const bool are_whole = loops.size() > 1 && loops.back().extent == Dim(width);
    const auto lies_across = [&](const Dim& offset) {
      return are_whole && stride_of(offset, symbol_of(loops[loops.size() - 2])) == Dim(1);
    };
    for (const Stmt& s : body) {
      const bool is_plain = s.kind == Kind::declare || s.kind == Kind::accumulate ||
                            (s.kind == Kind::store && !s.condition && lies_well(s.offset));
      if (!is_plain) return 1;
    }
    const std::vector<Value> values = values_of(body);
    for (NodeId n : nodes_below(values)) {
      const Value v(&values[0].graph(), n);
      if (!v.is(ops::load)) continue;
      const Dim& offset = v.attrs().dims("offset").at(0);
      const bool is_conditional = v.operand_count() > 0;
      if ((is_conditional || !lies_well(offset)) && !lies_across(offset)) return 1;
    }
    return moves ? width : 1;
  }

  // The body at iteration `at` of the flattened loops; with a width, at `width` iterations of the
  // last.
  Block place(Block body, const std::vector<Stmt>& loops, const Dim& at, std::int64_t width = 1) {
    Dims extents = extents_of(loops);
    if (width > 1) extents.back() = floor_div(extents.back(), width);
    Dims where = positions_.split(at, extents);
    const Dim lane = width > 1 ? positions_.add_loop(width) : Dim(0);
    if (width > 1) where.back() = where.back() * Dim(width) + lane;
    std::vector<Replacement> places;
    for (std::size_t i = 0; i < loops.size(); ++i)
      places.push_back({symbol_of(loops[i]), where[i]});
    Rewriter(lowering_.graph(), places)(body);
    if (width == 1) return body;
    Stmt lanes{.kind = Kind::loop, .loop = LoopKind::lanes, .var = *loop_of(lane)};
    lanes.extent = width;
    lanes.body = std::move(body);
    Block out;
    out.push_back(std::move(lanes));
    return out;
  }

  static Block when(Value condition, Block body) {
    Stmt s{.kind = Kind::branch, .condition = condition};
    s.body = std::move(body);
    Block out;
    out.push_back(std::move(s));
    return out;
  }

  Block grid(const Dim& chunk, Block prefix, Block body) {
    Stmt group{.kind = Kind::loop, .loop = LoopKind::group, .var = *loop_of(thread_)};
    group.extent = threads_;
    group.body = std::move(prefix);
    for (Stmt& s : body) group.body.push_back(std::move(s));
    Stmt chunks{.kind = Kind::loop, .loop = LoopKind::grid, .var = *loop_of(chunk)};
    chunks.extent = kernel_.chunks;
    chunks.body.push_back(std::move(group));
    Block out;
    out.push_back(std::move(chunks));
    return out;
  }

  // ---- one group per iteration of the outer loops, its loops shared by the threads

  // Pays if a row is long and read in order, or if there are few rows.
  bool wants_rows(const Peeled& p) {
    if (rows_ == 0 || !kernel_.memory.empty()) return false;
    row_length_ = 0;
    bool in_order = false;
    for (const Stmt& s : p.inner) {
      if (s.kind != Kind::loop) continue;
      Dim length = 1;
      const Stmt* last = &s;
      for (const Stmt* at = &s;; at = &at->body[0]) {
        length = length * at->extent;
        last = at;
        if (at->body.size() != 1 || at->body[0].kind != Kind::loop) break;
      }
      row_length_ = typical(length) > typical(row_length_) ? length : row_length_;
      in_order = in_order || reads_in_order(*last);
    }
    if (row_length_ == Dim(0)) return false;
    constexpr double long_row = 32, few_rows = 256;
    const bool pays = typical(row_length_) > long_row &&
                      (in_order || typical(product(extents_of(p.outer))) < few_rows);
    return rows_ == 1 || pays;
  }

  static bool reads_in_order(const Stmt& loop) {
    const std::vector<Value> values = values_of(loop.body);
    for (NodeId n : nodes_below(values)) {
      const Value v(&values[0].graph(), n);
      if (v.is(ops::load) && stride_of(v.attrs().dims("offset").at(0), symbol_of(loop)) == Dim(1))
        return true;
    }
    return false;
  }

  // Each thread takes about 32 elements of a long row, or 16 of a short one or of one with many
  // operands; fewer if there are too few rows to keep the machine busy. What the threads together
  // cannot keep of a row they read again.
  std::int64_t row_threads() const {
    if (are_threads_given_ || !has_vectors_ || !row_length_.is_number())
      return threads_for(row_length_, most_threads_);
    constexpr std::int64_t least = 32, few_rows = 128, of_few = 4;
    const std::int64_t most_of_few = std::min<std::int64_t>(may_have_threads_, 512);
    const std::int64_t length = row_length_.number();
    const std::int64_t by_few =
        typical(rows_count_) < few_rows ? std::min(length / of_few, most_of_few) : 0;
    const std::int64_t wanted =
        floor_power(std::max({length / row_elements_of_thread(), by_few, least}));
    return wanted <= may_share_row_ ? wanted : may_have_threads_;
  }
  std::int64_t row_elements_of_thread() const {
    constexpr std::int64_t long_row = 4096, many = 32, few = 16;
    std::int64_t bytes = 0;  // of one element and its operands
    for (const KernelParam& p : kernel_.params)
      if (!p.written && typical(product(p.dims)) >= typical(row_length_))
        bytes += byte_size(p.dtype);
    return row_length_.number() >= long_row && many * bytes <= row_thread_bytes_ ? many : few;
  }

  // ---- rows that do not fit in registers: kept in the memory of blocks

  // The smallest element size among the parameters, at most 4 bytes.
  std::int64_t element_bytes() const {
    std::int64_t out = 4;
    for (const KernelParam& p : kernel_.params)
      out = std::min<std::int64_t>(out, byte_size(p.dtype));
    return out;
  }

  std::int64_t row_bytes() const { return row_length_.number() * element_bytes(); }

  // With 256 bytes of the row per thread, and 256 threads per block, three blocks fit on a
  // processor: one computes while others read or write. A row of few threads is one block, whose
  // threads synchronize faster than those of a cluster.
  std::int64_t spreading_threads() const {
    constexpr std::int64_t bytes_each = 256;
    return are_threads_given_ ? threads_
                              : floor_power(std::clamp<std::int64_t>(row_bytes() / bytes_each, 1,
                                                                     most_spreading_threads()));
  }
  std::int64_t most_spreading_threads() const {
    return std::max(threads_of_one_block, row_blocks_ * spread_block_threads);
  }
  bool spreads() const {
    if (spread_ == 0 || row_length_ == Dim(0) || !row_length_.is_number() || !has_vectors_)
      return false;
    constexpr std::int64_t least_bytes = 128 << 10;
    const std::int64_t length = row_length_.number(), threads = spreading_threads();
    // Elements are kept in whole vectors.
    return row_blocks_ > 0 && threads <= most_spreading_threads() && length % (threads * 8) == 0 &&
           row_bytes() / blocks_of_spread(threads) <= block_bytes_ &&
           (spread_ == 1 || row_bytes() >= least_bytes);
  }

  // Keeps as many of the loads as fit in the block.
  void spread(Block& shared) {
    std::int64_t left = block_bytes_ * blocks_of_spread(threads_) / threads_;
    for (const std::int64_t turns : turns_)
      left -= keep_loads(shared, kernel_, lowering_, turns, left);
  }

  Block rows(Peeled p, Block shared) {
    kernel_.chunks = product(extents_of(p.outer));
    const Dim chunk = positions_.add_loop(kernel_.chunks);
    return grid(chunk, std::move(p.prefix), place(std::move(shared), p.outer, chunk));
  }

  // Statements that all threads run alike are unchanged; loops are shared and stores are done by
  // one thread. Nullopt if a later statement needs what another thread stored.
  std::optional<Block> share(const Block& block) {
    if (reads_what_it_writes(block)) return std::nullopt;
    Block out;
    // Written since the last barrier: by one thread, by all.
    std::unordered_set<std::int64_t> by_one, by_all;
    for (const Stmt& s : block) {
      const std::unordered_set<std::int64_t> writes = params_written({s});
      const bool is_loop = s.kind == Kind::loop;
      if (std::ranges::any_of(writes, [&](std::int64_t p) {
            return by_all.contains(p) || (is_loop && by_one.contains(p));
          })) {
        // Another thread's earlier store must not overwrite what a thread stores here.
        out.push_back({.kind = Kind::barrier});
        by_one.clear();
        by_all.clear();
      }
      (is_loop ? by_all : by_one).insert(writes.begin(), writes.end());
      switch (s.kind) {
        case Kind::declare:
        case Kind::assign:
        case Kind::accumulate:
          out.push_back(s);
          break;
        case Kind::store: {
          Block one = when(lowering_.same(thread_, 0), {s});
          out.push_back(std::move(one[0]));
          break;
        }
        case Kind::loop:
          if (!share_loop(s, out)) return std::nullopt;
          break;
        default:
          return std::nullopt;
      }
    }
    return out;
  }

  static std::unordered_set<std::int64_t> params_written(const Block& block) {
    std::unordered_set<std::int64_t> out;
    for_each_statement(block, [&](const Stmt& s) {
      if (s.kind == Kind::store) out.insert(s.param);
    });
    return out;
  }

  bool reads_what_it_writes(const Block& block) const {
    const std::unordered_set<std::int64_t> written = params_written(block);
    const std::vector<Value> values = values_of(block);
    for (NodeId n : nodes_below(values)) {
      const Value v(&values[0].graph(), n);
      if (v.is(ops::load) && written.contains(v.attrs().integer("param"))) return true;
    }
    return false;
  }

  // Iterations are distributed over the threads; their sums are joined after the loop.
  bool share_loop(const Stmt& s, Block& out) {
    if (is_ordered(s, kernel_)) return false;
    std::vector<Stmt> loops;
    Block inner = {s};
    while (inner.size() == 1 && inner[0].kind == Kind::loop && !is_ordered(inner[0], kernel_) &&
           !mentions_any(inner[0].extent, loops)) {
      Stmt loop = std::move(inner[0]);
      inner = std::exchange(loop.body, {});
      loops.push_back(std::move(loop));
    }
    const std::vector<Sum> sums = sums_of(inner);
    for (const Sum& sum : sums)
      out.push_back({.kind = Kind::declare, .reg = sum.own, .value = sum.start});
    rename(inner, sums);
    const std::int64_t width = row_vector_width(inner, loops);
    const Dim total = floor_div(product(extents_of(loops)), width);
    const Dim turns = floor_div(total - thread_ + Dim(threads_ - 1), threads_);
    const Dim turn = positions_.add_loop(is_multiple(total) ? floor_div(total, threads_) : turns);
    Stmt shared{.kind = Kind::loop, .var = *loop_of(turn)};
    shared.extent = positions_.extent(turn);
    shared.body = place(std::move(inner), loops, turn * Dim(threads_) + thread_, width);
    if (is_spread_ && shared.extent.is_number() &&
        std::ranges::find(turns_, shared.extent.number()) == turns_.end())
      turns_.push_back(shared.extent.number());
    out.push_back(std::move(shared));
    for (const Sum& sum : sums) {
      const Value own = lowering_.reg(sum.own, sum.start.dtype());
      out.push_back(
          {.kind = Kind::reduce_group, .reg = sum.own, .combine = sum.combine, .value = own});
      out.push_back(
          {.kind = Kind::accumulate, .reg = sum.outside, .combine = sum.combine, .value = own});
    }
    return true;
  }

  static bool mentions_any(const Dim& d, const std::vector<Stmt>& loops) {
    return !d.is_number() &&
           std::ranges::any_of(loops, [&](const Stmt& s) { return mentions(d, symbol_of(s)); });
  }

  struct Sum {
    RegId outside, own;
    const Op* combine;
    Value start;
  };

  // Outer registers that the statements join into.
  std::vector<Sum> sums_of(const Block& block) {
    std::unordered_set<RegId> declared;
    for_each_statement(block, [&](const Stmt& s) {
      if (s.kind == Kind::declare) declared.insert(s.reg);
    });
    std::vector<Sum> out;
    for_each_statement(block, [&](const Stmt& s) {
      if (s.kind != Kind::accumulate || declared.contains(s.reg)) return;
      if (std::ranges::any_of(out, [&](const Sum& x) { return x.outside == s.reg; })) return;
      const Value start = constant(lowering_.graph(), start_of(*s.combine, s.value.dtype()));
      out.push_back({s.reg, positions_.new_register(), s.combine, start});
    });
    return out;
  }

  static void rename(Block& block, const std::vector<Sum>& sums) {
    for (Stmt& s : block) {
      for (const Sum& sum : sums)
        if (s.kind == Kind::accumulate && s.reg == sum.outside) s.reg = sum.own;
      rename(s.body, sums);
      rename(s.otherwise, sums);
    }
  }

  Kernel& kernel_;
  Lowering& lowering_;
  Positions& positions_;
  std::int64_t most_threads_, rows_, vectors_, threads_ = 1;
  std::int64_t may_have_threads_, may_share_row_;
  std::int64_t spread_, row_blocks_, row_thread_bytes_, block_bytes_;
  std::vector<std::int64_t> turns_;  // of the shared loops
  bool are_threads_given_, has_vectors_, is_spread_ = false;
  Dim row_length_ = 0, rows_count_ = 1, thread_ = 0;
};

}  // namespace

void arrange_groups(Kernel& kernel, Lowering& lowering, Block lowered, const TargetInfo& target,
                    const Tuning& tuning) {
  merge_loops(lowered, lowering);
  place_memory(kernel);
  Block body = Groups(kernel, lowering, target, tuning).arrange(peel(std::move(lowered), kernel));
  place_memory(kernel);
  find_sizes(kernel, body);
  kernel.graph = lowering.shared_graph();
  kernel.body = std::move(body);
}

std::vector<Tuning> group_nest_space(const TargetInfo& target) {
  std::vector<Tuning> out = {{}};
  for (std::int64_t threads : {64, 128, 256, 512, 1024})
    for (std::int64_t rows : {0, 1})
      if (threads <= target.group_threads) out.push_back({{"threads", threads}, {"rows", rows}});
  return out;
}

}  // namespace hone
