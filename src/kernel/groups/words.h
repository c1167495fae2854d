// Helpers for writers of kernels for groups of threads: short forms of statements on f32 numbers.
// Computes nothing.
#pragma once

#include <functional>
#include <limits>
#include <numbers>

#include "kernel/nest/block_writer.h"
#include "kernel/nest/loops.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

class GroupWords {
 protected:
  using Kind = Stmt::Kind;
  using Body = std::function<void(const Dim&)>;
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  GroupWords(Kernel& kernel, Lowering& lowering)
      : kernel_(kernel), lowering_(lowering), positions_(lowering.positions()), out_(lowering) {}

  // One group for each position within these sizes.
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
  // In the form that the intrinsic expects.
  Value power_of_two(Value x) const {
    return lowering_.apply(ops::exp, {apply(ops::mul, x, number(std::numbers::ln2))});
  }
  Value all(const Values& conditions) const {
    Value out;
    for (Value c : conditions) out = out ? lowering_.apply(ops::bit_and, {out, c}) : c;
    return out;
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
  // Combines r over each `neighbours` neighbouring threads; all of them get the result.
  void join(RegId r, const Op& combine, std::int64_t neighbours, DType t = DType::f32) {
    if (neighbours == 1) return;
    out_.add({.kind = Kind::reduce_group,
              .extent = neighbours,
              .reg = r,
              .combine = &combine,
              .value = lowering_.reg(r, t)});
  }
  // The same over all threads of the group.
  void join_group(RegId r, const Op& combine) {
    out_.add({.kind = Kind::reduce_group, .reg = r, .combine = &combine, .value = reg(r)});
  }
  void unrolled(std::int64_t count, const Body& body) {
    out_.loop(LoopKind::unrolled, count, body);
  }
  void lanes(std::int64_t count, const Body& body) { out_.loop(LoopKind::lanes, count, body); }
  void serial(const Dim& count, const Body& body) { out_.loop(LoopKind::serial, count, body); }
  void barrier() { out_.add({.kind = Kind::barrier}); }
  void barrier_of(std::int64_t neighbours) {
    out_.add({.kind = Kind::barrier, .extent = neighbours});
  }
  void branch_unless_known(const Values& conditions, const BlockWriter::Body& body,
                           const BlockWriter::Body& otherwise = {}) {
    if (conditions.empty()) return body();
    out_.branch(all(conditions), body, otherwise);
  }
  // The statements that `body` writes become the body of an intrinsic.
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
  Dim thread_ = 0;  // of the group
};

}  // namespace hone
