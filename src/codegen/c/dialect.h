// The differences between C-like languages. Kernels are written as C text with C's names for types,
// conversions and functions; a dialect says what replaces them.
#pragma once

#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "type/dtype.h"

namespace hone {
struct Op;
}  // namespace hone

namespace hone::c {

// A function that kernels call; the prefix hone_ is omitted in `name` and present in `text`.
struct Helper {
  std::string_view name;
  std::string_view needs;  // other names, separated by spaces
  std::string_view text;
};

// A function of one integer dtype: $T is the type, $U the type that wraps, $V the unsigned type of
// the same size, $B its number of bits, $F the function's name.
struct IntegerHelper {
  std::string_view name, with_sign, without_sign;  // empty without_sign: same as with_sign
};

// Words of 16 bytes, and 16 x 16 matrices that a subgroup of 32 threads loads from them: f16
// operands and f32 sums.
struct MatrixWords {
  std::string_view first_thread;      // of the subgroup
  std::string_view barrier;           // a statement; orders group memory only
  std::string_view subgroup_barrier;  // the same for a subgroup
  std::string_view word, zero;        // the type, and a zero of it
  std::string_view element;           // f32 element $I of the words $A
  // unpack: vector $V of $N elements of $T from words $W; pack: word $W from $V; read: the elements
  // of $P from index $I on as a word.
  std::string_view unpack, pack, read;
  std::string_view left, right, sums;  // matrix types
  std::string_view fill;               // a statement: sets all of $V to $X
  // Statements that load $V from the words $A starting at $I, or store it there; rows ($C true:
  // columns) are $P words apart.
  std::string_view load, store;
  std::string_view multiply;  // a statement: $S = $S + $L $R
};

struct Dialect {
  std::string_view language;  // for messages
  std::string_view preamble;  // first in a file; the helpers depend on it

  // Helpers that replace C's of the same names, and additional ones. A real function without a
  // helper NAME_DTYPE uses <math.h>, if has_math.
  std::span<const Helper> helpers = {};
  std::span<const IntegerHelper> integer_helpers = {};
  bool has_math = true;
  // The function that reinterprets one type as another of the same size; null: memcpy.
  std::string (*bitcast)(DType from, DType to) = nullptr;

  // As in C: integers narrower than int are computed in int and stored without a conversion, and
  // bool is one of them.
  bool promotes_integers = true;
  // An f32 zero whose value compilers cannot see, for products: some fold 0 * x to 0 for every x.
  // Empty: not needed.
  std::string_view zero = {};
  // c ? p[i] : 0 does not read memory when c is false.
  bool choice_skips_loads = true;

  // $P[$I] in memory of type $T, $B bytes per element; `far_element` if $I has 64 bits.
  std::string_view element = "$P[$I]", far_element = "$P[$I]";
  std::string_view size = "sizes[$I]";  // the kernel's sizes, int64_t

  // For machines whose threads run in groups (write_for_groups); else a kernel is a function of
  // chunks.
  bool has_groups = false;
  std::string_view group, groups, thread;  // group index, group count, thread in group
  std::string_view barrier;                // a statement; also orders memory
  std::string_view unroll;                 // before a loop to unroll
  std::string_view keep_loop;              // before a loop not to unroll
  // The same for products of tiles; with unaligned memory, which is rare, they stay loops.
  std::string_view unroll_products = unroll;
  // The loop over the steps of a product of tiles is not unrolled if a step has more
  // multiplications than this.
  std::int64_t most_products_to_unroll = std::numeric_limits<std::int64_t>::max();
  // Neighbouring elements in one access: the type of $N elements of $T, which has an array `of`,
  // and statements that read $V from element $I of $P and write it there. Empty, or for vectors
  // smaller than `least_vector_bytes`: one by one.
  std::string_view vector_type, vector_load, vector_store;
  int least_vector_bytes = 0;
  // $R = reduction of all threads' $X: $E combines a and b, of type $T; $N threads, a power of two.
  // $A is a group array with one element per thread, $S the result of join_subgroup, and $0 the
  // neutral element. Empty: by halves, in group memory.
  std::string_view reduce_group;
  // Whether a reduction begins only after all threads have read the previous reduction's result.
  bool reductions_meet = false;
  // The expression that reduces `own` over the threads of a subgroup; empty if there is none: then
  // all threads are reduced by halves. Null: reduce_group does not need it.
  std::string (*join_subgroup)(const Op& combine, DType) = nullptr;
  // Joins $M, each thread's f32 maximum, and $S, its sum of exponentials, as the intrinsic
  // join_exponentials does; $N threads. $E is the maximum of a and b, $X the exponential of a.
  // Empty: its body is rendered.
  std::string_view join_exponentials = {};
  // Like reduce_group for each $N neighbouring threads of a subgroup. Empty: by halves.
  std::string_view reduce_neighbours = {};
  // The size of subgroups, if `thread` orders threads by subgroup; 0: unknown. If it is known,
  // join_subgroup also reduces that many neighbours.
  int subgroup = 0;
  // Helpers load_pieces, load_pieces_across, pack_DTYPE and multiply_DTYPE implement the intrinsics
  // multiply_halves and multiply_held_halves for subgroups of 32 threads.
  bool multiplies_halves = false;
  // Implements multiply_matrices, store_matrices, load_matrices and hold_matrices, with a subgroup
  // of 32; null: their bodies are rendered.
  const MatrixWords* matrices = nullptr;
  // Asynchronous copies of 16 bytes: from address $F to $T, $N elements, or zeros unless $C; $G:
  // whether the whole group reads them, not only this thread. end_batch ends a batch of them;
  // wait_copies waits until at most $N batches are unfinished. Empty: copies are synchronous.
  std::string_view copy_async, end_batch, wait_copies;
  // Prefetches address $A into the second-level cache. Empty: not supported.
  std::string_view fetch = {};
  // A statement after the prefetches and reads of weights at the start of a group.
  std::string_view behind_weights = {};
  // Group memory at byte offset $O of `shared`: declares $P, of type $T. Empty: separate arrays.
  std::string_view shared;
  // If each of the `blocks` blocks of a group has its own `shared`: the index of a thread in its
  // block. Spread memory then lies in `shared`, else in thread memory.
  std::string_view block_thread = {};
  int blocks = 1;
  // Thread memory at byte offset $O of `scratch`: declares $P.
  std::string_view scratch;

  // Final step: translates the C text to this language; null: it is C already.
  std::string (*respell)(std::string_view) = nullptr;
};

extern const Dialect c11;

// Replaces each $X in the pattern by its word.
std::string filled(std::string_view pattern,
                   std::initializer_list<std::pair<std::string_view, std::string>> words);

}  // namespace hone::c
