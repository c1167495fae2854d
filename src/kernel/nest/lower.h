// Lowering: from the values of a group to statements of a kernel. Works on demand: computing an
// element of a value requests elements of its operands. Reductions become loops, placed in the
// outermost loop that fixes their position. Does not choose loop orders, vectors or chunks
// (arrange.h does).
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/positions.h"

namespace hone {

// The same function in core operations, composites that renderers have as functions, and `kept`.
Function expand_for_kernels(const Function&, const Op* kept = nullptr);

// Memory that holds a value: kernel parameter `param`, strides in elements.
struct Memory {
  int param = 0;
  Dims strides;
};

class Lowering {
 public:
  explicit Lowering(std::shared_ptr<Graph> graph) : graph_(std::move(graph)), scopes_(1) {}

  Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& shared_graph() const { return graph_; }
  Positions& positions() { return positions_; }

  // Elements of `v` are loaded from `w`.
  void set_memory(Value v, Memory w) { memory_[v] = std::move(w); }
  // The element of `v` at `position` is `scalar`; other positions are refused (see
  // refused_position).
  void bind(Value v, Dims position, Value scalar);
  bool refused_position() const { return refused_position_; }

  // Opens a loop whose body receives statements until it is closed. Returns its variable.
  Dim open_loop(const Dim& extent);
  // The same for a loop whose iterations write to disjoint places although offsets do not show it.
  // Must be outermost; becomes the chunks of the kernel.
  Dim open_independent_loop(const Dim& extent);
  void close_loop();
  // The same for statements that run only if the condition holds.
  void open_branch(Value condition);
  void close_branch();
  void add(Stmt);

  // The scalar expression of one element; may add statements.
  Value element(Value, const Dims& position);
  // A register that keeps a scalar: what is stored later does not change it.
  Value declare(Value scalar);
  void store(Value, const Dims& position, const Memory&);
  void store(Value scalar, const Dims& position, const Memory&, Value condition);
  // Stores the element at `position` of the part that a dynamic_update writes.
  void store_part(Value update, Dims position, const Memory&);

  // Takes what was added so far at the outermost level. All loops must be closed.
  Block take();

  // A reduction or contraction that was computed: for how many elements (counting recomputation),
  // and the loop variables its position depends on.
  struct Computed {
    Value value;
    double elements = 0;
    Dims variables;
  };
  const std::vector<Computed>& computed() const { return computed_; }

  // Scalars of the kernel's graph.
  Value size(const Dim&) const;       // i64[]
  Value number(double, DType) const;  // of any dtype
  Value integer(std::int64_t, DType) const;
  Value apply(const Op&, std::vector<Value>, Attrs attrs = {}) const;
  Value convert(Value, DType) const;
  // Comparisons of positions; never folded into sizes.
  Value below(const Dim& a, const Dim& b) const;  // a < b
  Value same(const Dim& a, const Dim& b) const;
  Value reg(RegId, DType) const;
  Value load(int param, DType, const Dim& offset, Value condition = {}) const;

 private:
  struct Scope {
    Stmt loop;
    Dim variable = 0;
    Block body;
  };
  // Requires 0 <= value < size where an element is read.
  struct Bound {
    Dim value, size;
    bool operator==(const Bound&) const = default;
  };
  using Guard = std::vector<Bound>;
  // Where an element is requested: a position under a guard, given by index.
  struct Place {
    Dims position;
    std::uint32_t guard = 0;
    bool operator==(const Place&) const = default;
  };
  using PlaceId = std::uint32_t;
  struct PlaceHash {
    std::size_t operator()(const Place&) const;
  };

  PlaceId place(Dims position, std::uint32_t guard);
  std::uint32_t with_bounds(std::uint32_t guard, const Guard& more);
  std::uint32_t guard_id(Guard);
  Value condition(const Guard&) const;
  Value condition(std::uint32_t guard) const { return condition(guards_[guard]); }
  Guard unproved(Guard) const;

  Value element_at(Value root, PlaceId);
  Value* known(Value, PlaceId);
  Value compute(Value, PlaceId);
  Value mapped(Value, PlaceId);
  Value moved(Value, PlaceId, Dims position);
  Value from_memory(const Memory&, Value, PlaceId);
  Value of_constant(Value, PlaceId);
  Value of_list(std::size_t count, const Dim& at, const std::function<Value(std::size_t)>&) const;

  Value pad(Value, PlaceId);
  Value concat(Value, PlaceId);
  Value gather(Value, PlaceId);
  Value dynamic_slice(Value, PlaceId);
  Value dynamic_update(Value, PlaceId);
  Dims dynamic_starts(Value starts, const Shape& whole, const Dims& sizes, std::uint32_t guard);
  Value random_bits(Value, PlaceId);
  Value reduce(Value, PlaceId);
  Value arg_reduce(Value, PlaceId);
  Value reduce_window(Value, PlaceId);
  Value dot(Value, PlaceId);
  Value conv(Value, PlaceId);

  // A position read from data, in [0, size), kept in a register.
  Value index_number(Value);
  Dim data_position(Value number, const Dim& size, const Place&);

  // Adds the reduction of `make` with `join` over loops of the given extents, in the scope that
  // fixes `where`.
  Value accumulate(Value of, PlaceId where, const Op& join, Value start, const Dims& extents,
                   const std::function<Value(const Dims&)>& make);
  std::size_t depth_of(const Place&) const;
  void at_depth(std::size_t depth, const std::function<void()>&);
  void note_computed(Value, const Place&, std::size_t depth);

  std::shared_ptr<Graph> graph_;
  Positions positions_;
  std::vector<Scope> scopes_;
  std::unordered_map<Dim, std::size_t, DimHash> depths_;  // of variables and position registers
  std::unordered_map<Value, Memory, ValueHash> memory_;
  std::unordered_map<Value, std::pair<Dims, Value>, ValueHash> bound_;
  bool refused_position_ = false;
  std::vector<Place> places_;
  std::unordered_map<Place, PlaceId, PlaceHash> place_ids_;
  std::vector<Guard> guards_ = {{}};
  std::unordered_map<std::uint64_t, Value> done_;  // by node, result and place
  std::vector<Computed> computed_;
};

// The position in operand 0 of a value's element, for the operations that only move elements by
// position: reshape, transpose, broadcast, slice, reverse.
std::optional<Dims> source_position(Value, const Dims& at, const Positions&);

// How a reduction joins two elements.
const Op* joiner_of(const Op& reduction);    // null if it is not one
const Op* joiner_of(std::string_view kind);  // "sum", "max", ...
Array start_of(const Op& joiner, DType);     // rank 0: the neutral element

// A plausible size: numbers as they are, symbols at a moderate value within their bounds.
double typical(const Dim&);

}  // namespace hone
