// What languages that look like C differ in. Kernels are written as C text with C's names for
// types, conversions and functions; a dialect says what stands in their place.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "type/dtype.h"

namespace hone {
struct Op;
}  // namespace hone

namespace hone::c {

// A function that kernels call, without the prefix hone_ in `name` and with it in `text`.
struct Helper {
  std::string_view name;
  std::string_view needs;  // other names, separated by spaces
  std::string_view text;
};

// A function of one integer dtype: $T the type, $U the type that wraps, $V the unsigned type of the
// same size, $B its bits, $F the function's name.
struct IntegerHelper {
  std::string_view name, with_sign, without_sign;  // an empty without_sign: the other one
};

// Words of 16 bytes, and matrices of 16 x 16 elements that a subgroup of 32 threads makes of them:
// of f16, and of f32 for sums.
struct MatrixWords {
  std::string_view thread, first_thread;  // numbers in order of subgroups: own, of the subgroup
  std::string_view barrier;               // a statement; for memory of the group alone
  std::string_view word, zero;            // the type, and such a value
  std::string_view element;               // the f32 number $I of the words $A
  // The vector $V of $N elements of $T from the words $W, the word $W from it; the elements from
  // number $I of $P on as a word.
  std::string_view unpack, pack, read;
  std::string_view left, right, sums;  // types of matrices
  std::string_view fill;               // a statement: all of $V is $X
  // Statements between $V and the words $A from number $I on, where a row begins $P words behind
  // the one before it, with $C being true a column.
  std::string_view load, store;
  std::string_view multiply;  // a statement: $S is $S + $L $R
};

struct Dialect {
  std::string_view language;  // in messages
  std::string_view preamble;  // before everything else in a file: what the helpers stand on

  // Helpers in place of those of C of the same names, and further ones. A function of real numbers
  // that has no helper NAME_DTYPE is the function of <math.h>, where has_math.
  std::span<const Helper> helpers = {};
  std::span<const IntegerHelper> integer_helpers = {};
  bool has_math = true;
  // The function that reads bits of one type as another of the same size; null: by memcpy.
  std::string (*bitcast)(DType from, DType to) = nullptr;

  // As in C: integers narrower than int are computed in int and stored without a conversion, and
  // bool is one of them.
  bool promotes_integers = true;
  // A 0 of f32 whose value compilers do not see, for products, where some take 0 x for 0 whatever x
  // is. Empty: they do not.
  std::string_view zero = {};
  // c ? p[i] : 0 reads nothing when c is false.
  bool choice_skips_loads = true;

  // $P[$I] in memory whose type is $T, of $B bytes an element; `far_element` where $I has 64 bits.
  std::string_view element = "$P[$I]", far_element = "$P[$I]";
  std::string_view size = "sizes[$I]";  // the kernel's, int64_t

  // Machines whose threads run in groups (write_for_groups); else a kernel is a function of
  // chunks.
  bool has_groups = false;
  std::string_view group, groups, thread;  // numbers of this group, of all, of this thread in it
  std::string_view barrier;                // a statement; also for memory
  std::string_view unroll;                 // before a loop that is to be written out
  std::string_view keep_loop;              // before a loop that must not be
  // The same for products of tiles: where memory is not aligned, which is rare, they stay loops.
  std::string_view unroll_products = unroll;
  // Neighbouring elements in one access: the type of $N elements of $T, which has an array `of`,
  // and statements that read $V from element $I of $P and write it there. Empty: one by one.
  // Vectors of less than `least_vector_bytes` are read and written one by one, too.
  std::string_view vector_type, vector_load, vector_store;
  int least_vector_bytes = 0;
  // $R = $X of all threads joined: $E joins a and b, of type $T; where the threads are $N, a power
  // of two. $A is an array of the group for them all, $S what join_subgroup gives, and $0 what
  // leaves every value as it is. Empty: by halves, in memory of the group.
  std::string_view reduce_group;
  // Whether a reduction begins only after all threads have read what the one before it left.
  bool reductions_meet = false;
  // The text that joins `own` of those threads that run in step; empty where there is none, then
  // all are joined by halves. Null: reduce_group does without.
  std::string (*join_subgroup)(const Op& combine, DType) = nullptr;
  // The same of each $N neighbouring threads of a subgroup. Empty: by halves.
  std::string_view reduce_neighbours = {};
  // Helpers load_pieces, load_pieces_across, pack_DTYPE and multiply_DTYPE do what the intrinsics
  // multiply_halves and multiply_held_halves mean, for subgroups of 32 threads.
  bool multiplies_halves = false;
  // What multiply_matrices and store_matrices are; null: what their bodies say.
  const MatrixWords* matrices = nullptr;
  // Copies of 16 bytes that go on beside a thread's work: from address $F to $T, $N elements, or
  // zeros unless $C; $G: true where the group reads them, not this thread alone. And waiting until
  // at most $N of them are left. Empty: copies end at once.
  std::string_view copy_async, wait_copies;
  // Asks for what lies at address $A, in the second cache. Empty: there is no word for it.
  std::string_view fetch = {};
  // A statement behind the fetches that a group begins with.
  std::string_view behind_fetches = {};
  // Memory of a group, at $O bytes behind `shared`: declares $P, of type $T. Empty: an array each.
  std::string_view shared;
  // Where `shared` is there for each block of a group, so many: the number of a thread in its
  // block. What is spread lies in it then, else in memory of the thread.
  std::string_view block_thread = {};
  int blocks = 1;
  // Memory of one thread, at $O bytes behind `scratch`: declares $P.
  std::string_view scratch;

  // Turns C text into this language at last; null: it is C already.
  std::string (*respell)(std::string_view) = nullptr;
};

extern const Dialect c11;

// Words that stand in a text as $X.
std::string filled(std::string_view pattern,
                   std::initializer_list<std::pair<std::string_view, std::string>> words);

}  // namespace hone::c
