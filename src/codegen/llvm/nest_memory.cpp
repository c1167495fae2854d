// The part of Renderer for caches: large results bypass them; rows of the next iteration are
// prefetched.
#include <algorithm>

#include "codegen/llvm/expression.h"
#include "kernel/positions.h"
#include "kernel/walk.h"

namespace hone::llvm {

// The alignment in bytes of one cache-bypassing store to the param.
int Renderer::streamed_bytes(int param, int lanes) const {
  const int bytes = byte_size(buffer_dtype(param));
  const int one_register =
      m_.target().vector_bits / 8 * bytes / byte_size(register_dtype(buffer_dtype(param)));
  return std::min(one_register, lanes * bytes);
}

void Renderer::begin_streams() {
  for (std::size_t i = 0; i < kernel_.params.size(); ++i) {
    const KernelParam& p = kernel_.params[i];
    if (p.streams_from == 0) continue;
    Dim bytes = byte_size(p.dtype);
    for (const Dim& d : p.dims) bytes = bytes * d;
    Value streams = bytes.is_number() ? m_.boolean(bytes.number() >= p.streams_from)
                                      : greater_equal(position(bytes), m_.index(p.streams_from));
    // A result that overwrites an operand is already in the caches.
    for (std::size_t k = 0; k < kernel_.params.size(); ++k)
      if (const KernelParam& other = kernel_.params[k]; !other.written && other.dims == p.dims)
        streams = streams & not_equal(address_of(in_.buffers[i]), address_of(in_.buffers[k]));
    streamed_.emplace(static_cast<int>(i), streams);
  }
}

void Renderer::end_streams() {
  std::optional<Value> any;
  for (const auto& [param, streams] : streamed_) any = any ? *any | streams : streams;
  if (any) m_.if_(*any, [&] { fence_stores(m_); });
}

// Whether a store of the loop writes consecutive elements that may bypass the caches, at a position
// known before the loop.
bool Renderer::may_stream(const Stmt& s, const Stmt& loop) const {
  if (s.kind != Stmt::Kind::store || s.condition || !streamed_.contains(s.param)) return false;
  if (stride_of(s.offset, loop_symbol(loop.var, loop.extent)) != Dim(1)) return false;
  bool is_known = true;
  const Dims symbols = s.offset.symbols();
  for_each_statement(loop.body, [&](const Stmt& inner) {
    if (inner.kind != Stmt::Kind::declare) return;
    for (const Dim& d : symbols) is_known &= register_of(d) != inner.reg;
  });
  return is_known;
}

// If rows do not all start on a cache line: the number of iterations to the next line, at most
// `lanes`; 0 if no store bypasses the caches.
std::optional<Value> Renderer::turns_before_line(const Stmt& loop, int lanes, Value extent) {
  for (const Stmt& s : loop.body) {
    if (!may_stream(s, loop)) continue;
    const DType dtype = buffer_dtype(s.param);
    const int bytes = byte_size(dtype), line = streamed_bytes(s.param, lanes);
    const Replacement start[] = {{loop_symbol(loop.var, loop.extent), 0}};
    if (known_divisor(replace(s.offset, start)) * bytes % line == 0 || line / bytes > lanes)
      return std::nullopt;
    set_variable(loop.var, m_.index(0));
    Value at = address_of(offset(buffer(s.param), dtype, position(s.offset)));
    Value turns = divide_index(-at & (line - 1), m_.index(bytes));
    return select(streamed_.at(s.param), minimum(turns, extent), m_.index(0));
  }
  return std::nullopt;
}

// Stores of the loop that may bypass the caches, and whether they do so from iteration `from` on.
std::optional<Value> Renderer::find_streaming(const Stmt& loop, Value from, int lanes,
                                              std::unordered_set<const Stmt*>& stores) {
  std::optional<Value> all;
  for (const Stmt& s : loop.body) {
    if (!may_stream(s, loop)) continue;
    set_variable(loop.var, from);
    Value at = address_of(offset(buffer(s.param), buffer_dtype(s.param), position(s.offset)));
    Value holds = equal(at & (streamed_bytes(s.param, lanes) - 1), 0) & streamed_.at(s.param);
    all = all ? *all & holds : holds;
    stores.insert(&s);
  }
  return all;
}

Values Renderer::past_caches_or_not(const Stmt& loop, Value from, int lanes,
                                    const std::function<Values()>& run) {
  std::unordered_set<const Stmt*> stores;
  std::optional<Value> streams = find_streaming(loop, from, lanes, stores);
  if (!streams) return run();
  auto run_past = [&] {
    streaming_ = std::move(stores);
    Values out = run();
    streaming_.clear();
    return out;
  };
  return m_.if_values(*streams, run_past, run);
}

// One prefetch per cache line.
void Renderer::fetch(const Stmt& s) {
  constexpr int line_bytes = 64;
  const DType dtype = buffer_dtype(s.param);
  Pointer p = offset(buffer(s.param), dtype, position(s.offset));
  for (int i = 0; i < lanes_.count; i += line_bytes / byte_size(dtype))
    prefetch(offset(p, dtype, i), false, s.cache == 1 ? 3 : 2);
}

}  // namespace hone::llvm
