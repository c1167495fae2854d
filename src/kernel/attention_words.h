// What writers of attention for groups of threads say alike: the grid of blocks of queries, which
// keys a group meets, statements in short form. Computes nothing.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <numbers>
#include <span>

#include "kernel/attention_problem.h"
#include "kernel/block_writer.h"
#include "kernel/loops.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

class AttentionWords {
 protected:
  using Kind = Stmt::Kind;
  using Body = std::function<void(const Dim&)>;
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  // A group takes so many queries, and meets so many keys at once.
  AttentionWords(Kernel& kernel, Lowering& lowering, const AttentionProblem& p,
                 const KeyRange& range, std::int64_t queries, std::int64_t keys)
      : kernel_(kernel),
        lowering_(lowering),
        positions_(lowering.positions()),
        out_(lowering),
        p_(p),
        range_(range),
        queries_(queries),
        keys_(keys) {}

  // ---- the grid

  void write_grid(std::int64_t threads, const std::function<void()>& thread) {
    const Dim matrices = product(p_.leading), blocks = ceil_div(p_.queries, queries_);
    write_groups({matrices, blocks}, threads, [&](const Dims& at) {
      batch_ = at[0];
      place_group(at[1], blocks);
      thread();
    });
  }
  // A group for each position of these sizes.
  void write_groups(const Dims& sizes, std::int64_t threads,
                    const std::function<void(const Dims& at)>& thread) {
    kernel_.chunks = product(sizes);
    out_.loop(LoopKind::grid, kernel_.chunks, [&](const Dim& chunk) {
      const Dims at = positions_.split(chunk, sizes);
      out_.loop(LoopKind::group, threads, [&](const Dim& own) {
        thread_ = own;
        thread(at);
      });
    });
    kernel_.body = out_.take();
    kernel_.graph = lowering_.shared_graph();
    find_sizes(kernel_, kernel_.body);
  }

  bool hides_keys() const { return range_.first || range_.last; }
  // The first key behind those that a query may see.
  Dim visible_to(const Dim& query) const {
    return range_.last ? min(p_.keys, query + *range_.last + Dim(1)) : p_.keys;
  }
  // Some of the keys from first_key_ on are not there, or some query of the group may not see them.
  // Nothing where that is never so.
  Value hides_some() const {
    Value any;
    if (!divides(keys_, p_.keys) || range_.last)
      any = lowering_.below(visible_to(first_query_), first_key_ + Dim(keys_));
    if (!range_.first) return any;
    const Value before =
        lowering_.below(first_key_, first_query_ + Dim(queries_ - 1) + *range_.first);
    return any ? apply(ops::bit_or, any, before) : before;
  }
  // Of blocks of keys that the group meets.
  Dim count_of_blocks() {
    const Dim count = ceil_div(visible_, keys_);
    return range_.first ? out_.keep(max(Dim(0), count - first_block_)) : count;
  }

  // ---- memory

  int add_memory(DType t, std::int64_t elements, MemoryScope scope) {
    kernel_.memory.push_back({t, elements, 0, scope});
    return static_cast<int>(kernel_.params.size() + kernel_.memory.size()) - 1;
  }
  Value in(int memory, const Dim& at) const { return lowering_.load(memory, DType::f32, at); }
  void put(int memory, const Dim& at, Value v) {
    out_.add({.kind = Kind::store, .param = memory, .offset = at, .value = v});
  }

  // ---- values

  Value number(double x) const { return lowering_.number(x, DType::f32); }
  Value apply(const Op& op, Value a, Value b) const { return lowering_.apply(op, {a, b}); }
  Value either(Value condition, Value a, Value b) const {
    return lowering_.apply(ops::select, {condition, a, b});
  }
  // As an intrinsic takes it.
  Value power_of_two(Value x) const {
    return lowering_.apply(ops::exp, {apply(ops::mul, x, number(std::numbers::ln2))});
  }
  Value all(const Values& conditions) const {
    Value out;
    for (Value c : conditions) out = out ? lowering_.apply(ops::bit_and, {out, c}) : c;
    return out;
  }
  Value tile_element(std::int64_t tile, const Dim& row, const Dim& column) const {
    const Type type(DType::f32, Shape());
    return lowering_.graph().intern_typed(
        ops::tile_element, {},
        {{"index", tile}, {"dtype", DType::f32}, {"offset", Dims{row, column}}},
        std::span(&type, 1));
  }
  static bool divides(std::int64_t part, const Dim& whole) { return mod(whole, part) == Dim(0); }

  // ---- statements

  RegId declare(Value v) {
    const RegId r = positions_.new_register();
    out_.add({.kind = Kind::declare, .reg = r, .value = v});
    return r;
  }
  void assign(RegId r, Value v) { out_.add({.kind = Kind::assign, .reg = r, .value = v}); }
  Value reg(RegId r) const { return lowering_.reg(r, DType::f32); }
  Value keep(Value v) { return reg(declare(v)); }
  void accumulate(RegId r, const Op& combine, Value v) {
    out_.add({.kind = Kind::accumulate, .reg = r, .combine = &combine, .value = v});
  }
  // Each so many neighbouring threads get what theirs join to.
  void join(RegId r, const Op& combine, std::int64_t neighbours) {
    if (neighbours == 1) return;
    out_.add({.kind = Kind::reduce_group,
              .extent = neighbours,
              .reg = r,
              .combine = &combine,
              .value = reg(r)});
  }
  void unrolled(std::int64_t count, const Body& body) {
    out_.loop(LoopKind::unrolled, count, body);
  }
  void lanes(std::int64_t count, const Body& body) { out_.loop(LoopKind::lanes, count, body); }
  void serial(const Dim& count, const Body& body) { out_.loop(LoopKind::serial, count, body); }
  void barrier() { out_.add({.kind = Kind::barrier}); }
  void branch_unless_known(const Values& conditions, const BlockWriter::Body& body,
                           const BlockWriter::Body& otherwise = {}) {
    if (conditions.empty()) return body();
    out_.branch(all(conditions), body, otherwise);
  }
  // What the body writes becomes that of an intrinsic.
  void intrinsic(std::string_view name, const BlockWriter::Body& body) {
    Block before = out_.take();
    body();
    Stmt s{.kind = Kind::intrinsic};
    s.body = out_.take();
    s.name = name;
    for (Stmt& earlier : before) out_.add(std::move(earlier));
    out_.add(std::move(s));
  }

  Kernel& kernel_;
  Lowering& lowering_;
  Positions& positions_;
  BlockWriter out_;
  const AttentionProblem& p_;
  const KeyRange& range_;
  // Of the group: its thread and matrix, its first query, the first block of keys that it meets,
  // and the first key behind those that it may see.
  Dim thread_ = 0, batch_ = 0, first_query_ = 0, first_block_ = 0, visible_ = 0;
  Dim first_key_ = 0;  // of the block that it meets

 private:
  void place_group(const Dim& block, const Dim& blocks) {
    // Those of causal attention that have most to do begin first.
    first_query_ = out_.keep((range_.last ? blocks - Dim(1) - block : block) * Dim(queries_));
    first_block_ = 0, visible_ = p_.keys;
    const Dim end = min(first_query_ + Dim(queries_), p_.queries);
    if (range_.last) visible_ = out_.keep(min(p_.keys, max(Dim(0), end + *range_.last)));
    if (range_.first)
      first_block_ =
          out_.keep(floor_div(min(p_.keys, max(Dim(0), first_query_ + *range_.first)), keys_));
  }

  std::int64_t queries_, keys_;
};

}  // namespace hone
