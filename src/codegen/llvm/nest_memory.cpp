// The part of Renderer that knows of caches: large results are written past them, rows of the next
// turn are fetched into them.
#include <algorithm>

#include "codegen/llvm/expression.h"
#include "kernel/positions.h"
#include "kernel/walk.h"

namespace hone::llvm {

// Bytes that the address of one store to the param is a multiple of when it passes the caches.
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
    // What replaces an operand is in the caches by then.
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

// Whether a store of the loop writes in order what may pass the caches, at a position that is known
// before the loop.
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

// Where rows do not all start on a line: how many turns it takes to the next one, at most `lanes`;
// 0 when nothing passes the caches.
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

// Stores of the loop that may pass the caches, and whether they do so from its turn `from` on.
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

// One request for each line.
void Renderer::fetch(const Stmt& s) {
  constexpr int line_bytes = 64;
  const DType dtype = buffer_dtype(s.param);
  Pointer p = offset(buffer(s.param), dtype, position(s.offset));
  for (int i = 0; i < lanes_.count; i += line_bytes / byte_size(dtype))
    prefetch(offset(p, dtype, i), false, s.cache == 1 ? 3 : 2);
}

}  // namespace hone::llvm
