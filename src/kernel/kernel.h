// Kernels: the loop nest or skeleton that computes one step of a group, as data that any backend
// renders. Scalar expressions are rank-0 values of the graph IR, so they share its ops, rules and
// printer; statements are a small tree. Not text and not machine code.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "ir/function.h"
#include "type/type.h"

namespace hone {

// A buffer argument: an n-dimensional strided window. Strides in elements.
struct KernelParam {
  DType dtype = DType::f32;
  Dims dims;
  Dims strides;
  bool written = false;
  // A result that is written once, in order, and passes the caches from so many bytes on; 0: never.
  std::int64_t streams_from = 0;
};

using VarId = std::int32_t;
using RegId = std::int32_t;

// Positions, offsets and extents inside a kernel are Dims, so that equal ones compare equal and
// what is affine in a variable can be read off. Beside the kernel's sizes they hold these symbols.
Dim loop_symbol(VarId, const Dim& extent);                        // a variable of a loop
Dim register_symbol(RegId, std::int64_t low, std::int64_t high);  // an i64 register
std::optional<VarId> loop_of(const Dim& symbol);
std::optional<RegId> register_of(const Dim& symbol);

// A buffer in the scratch memory of a thread.
struct KernelScratch {
  DType dtype = DType::f32;
  Dim elements = 0;
  Dim offset = 0;  // bytes, a multiple of 64
};

// Leaves of scalar expressions, beside ops::constant and ops::dims (both rank 0; a dims may hold
// the symbols above).
namespace ops {
extern const Op load;  // attrs: param, dtype, offset (one Dim: elements). Operand, optional: bool[]
                       // condition (false: 0 is the value and memory is not touched)
extern const Op reg;   // attrs: index, dtype. The current value of a register
}  // namespace ops

enum class LoopKind : std::uint8_t {
  chunks,  // outermost, divided between threads; at most one, the kernel's `chunks`
  serial,
  lanes,   // iterations are independent or only feed accumulations; rendered as vectors. Loops
           // inside are serial, and their extents do not depend on the lane
  across,  // around a lanes loop alone: what lies in order along this loop is read in order, a
           // square at a time, and turned in registers
};

struct Stmt;
using Block = std::vector<Stmt>;

struct Stmt {
  enum class Kind : std::uint8_t {
    loop,        // var from 0 to extent
    declare,     // reg = value (a mutable scalar register; a vector one inside a lanes loop)
    assign,      // reg = value
    accumulate,  // reg = combine(reg, value); combine is add, mul, maximum, minimum, and, or
    store,       // params[param][offset] = value, when condition (if any) holds
    branch,      // if (condition) body
    fetch,       // a hint: params[param][offset], which may lie past its end, is read soon
  };
  Kind kind;
  LoopKind loop = LoopKind::serial;
  VarId var = -1;
  Dim extent = 1;
  RegId reg = -1;
  const Op* combine = nullptr;
  int param = -1;
  Dim offset = 0;  // elements
  Value value;
  Value condition;  // bool[]
  int cache = 1;    // that a fetch is for: the first or the second
  Block body;
};

// A plain loop nest.
struct Nest {
  std::shared_ptr<Graph> graph;  // owns the scalar expressions
  Block body;
};

// A hole of a skeleton: scalar expressions over given loop variables.
// For a load hole: one value, the operand element at (vars). For the epilogue: reg 0 is the
// accumulated element; `stores` writes the group's results. It runs once for each element, so a
// result may lie where a parameter lies that is read at the same place.
struct Hole {
  std::vector<VarId> vars;
  Value value;   // load holes
  Block stores;  // epilogue
};

// C[b, m, n] = sum_k A[b, m, k] * B[b, k, n], accumulated in f32 (f64 for f64, i32/i64 for ints).
// vars of a: (b, m, k); of b: (b, k, n); of epilogue: (b, m, n). Every element is one chain of
// multiply-adds in the order of k, whatever the blocking.
struct Contraction {
  std::shared_ptr<Graph> graph;
  Dim batch = 1, m = 1, n = 1, k = 1;
  DType accumulate = DType::f32;
  Hole a, b, epilogue;
  // B is already packed as [b, ceil(n/block), k, block] (zero-padded, of dtype `accumulate`) in
  // param `packed_b`; then hole b is unused. packed_batch: it has the axis b. -1: not packed.
  int packed_b = -1;
  bool packed_batch = false;
  // The register tile is rows x block elements, block a multiple of the vector length. A chunk is
  // chunk_rows x chunk_columns, multiples of the tile; k is cut in parts of k_block.
  int rows = 1, block = 16;
  std::int64_t chunk_rows = 1, chunk_columns = 16, k_block = 1;
  // How the tile reads A: from a copy in scratch made with lanes along k or along m, or in place.
  enum class ReadA : std::uint8_t { copy_along_k, copy_along_m, in_place };
  ReadA read_a = ReadA::copy_along_k;
  // In place: hole a is a load of dtype `accumulate`, and its offset moves by these elements.
  std::int64_t a_row_stride = 0, a_k_stride = 0;
};

// Channels-last convolution: y[image, o..., c] = sum x[image, o*stride + t*dilation - pad, i] *
// w[t..., i, c]. Up to three spatial axes, outermost first. Weights are packed (zero-padded, of
// dtype `accumulate`) in param `packed_weights`, as [group, ceil(c/block), t..., i, block], or,
// when each channel is a group of its own (is_depthwise), as [ceil(c/block), t..., block].
// vars of input and of epilogue: (image, spatial..., channel).
struct Convolution {
  std::shared_ptr<Graph> graph;
  Dim images = 1;
  Dims in_size, out_size;  // spatial
  std::vector<std::int64_t> window, strides, dilations;
  Dims pads_low;
  std::int64_t groups = 1, in_channels = 1, out_channels = 1;  // per whole tensor
  DType accumulate = DType::f32;
  Hole input, epilogue;
  int packed_weights = -1;
  // Hole input is a load, and channels follow each other, pixel after pixel along the last axis.
  bool input_is_dense = false;
  // Tiles inside of the image read the input where it lies, with these strides (elements) of the
  // spatial axes; others copy their window. Empty: a chunk copies all that it reads.
  std::vector<std::int64_t> in_place_strides;
  // The register tile is a box of output pixels x block output channels, block a multiple of the
  // vector length. A chunk is a box of output pixels, of multiples of the tile, x some panels of
  // `block` channels. One entry of tile and chunk for each spatial axis.
  int block = 16;
  std::vector<std::int64_t> tile, chunk;
  std::int64_t chunk_panels = 1;

  bool is_depthwise() const { return groups == in_channels && groups == out_channels; }
};

struct Kernel {
  std::string name;  // readable, e.g. "add_relu"; the hash tells kernels apart
  std::vector<KernelParam> params;
  Dims sizes;  // symbols handed over at run time, in the order of the sizes argument
  Dim chunks = 1;
  Dim scratch_bytes = 0;  // per thread
  // Nests keep rows in it: loads and stores name them by params.size() + i.
  std::vector<KernelScratch> scratch;
  std::variant<Nest, Contraction, Convolution> body;
};

// Text of params and statements, for explain, dumps and hashing.
std::string print(const Kernel&);
// Of everything that code generation reads.
Hash128 hash(const Kernel&);

// A group: a Function whose parameters and results have given layouts (strides in elements).
struct GroupSpec {
  Function function;
  std::vector<Dims> param_strides, result_strides;
  std::vector<bool> param_is_weight;  // known before the run: may be packed by prepare
};

// One way to compute a whole group: steps over the group's parameters, results and temporaries.
struct Candidate {
  struct Operand {
    enum class Kind : std::uint8_t { param, result, temporary };
    Kind kind = Kind::param;
    int index = 0;
  };
  struct Step {
    std::variant<Kernel, std::string> what;  // a kernel, or a library call by name
    std::vector<Operand> operands;           // in the kernel's parameter order
    std::vector<std::pair<std::string, std::int64_t>> settings;  // library
    bool prepare = false;  // depends on weights alone: runs once
  };
  struct Temporary {
    Type type;
    bool prepared = false;  // written by a prepare step, kept in the plan
  };
  std::string name;  // "generated", "onednn", ...
  std::vector<Step> steps;
  std::vector<Temporary> temporaries;
};

}  // namespace hone
