// What the C of contraction and convolution shares: the register tile and the places where a
// group's expressions go. The order of everything is that of
// codegen/llvm/{contraction,convolution}.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codegen/c/expression.h"
#include "codegen/c/helpers.h"
#include "codegen/c/text.h"
#include "kernel/kernel.h"

namespace hone::c {

// A number of rows times some vectors of columns, each sum in a variable of its own, so that it is
// in a register.
class Tile {
 public:
  Tile(Text&, Helpers&, DType, int rows, int vectors, int lanes);

  int rows() const { return rows_; }
  int vectors() const { return vectors_; }
  int lanes() const { return lanes_; }
  int block() const { return vectors_ * lanes_; }
  DType dtype() const { return dtype_; }

  void declare() const;  // the sums, without a value
  void zero() const;
  void load(const std::string& from) const;  // [row][column]
  void store(const std::string& to) const;

  // sums[r][v] += a[k step + offsets[r]] * b(k)[v] for k < count. `row_of_b` is a pointer, given
  // the name of k; it may write what it needs before. Where `columns` is not empty, so many exist
  // in each row, and the others are zero.
  struct Product {
    std::string a, count;
    std::vector<std::int64_t> offsets;
    std::int64_t step = 1;
    std::function<std::string(const std::string& k)> row_of_b;
    std::string columns;
  };
  void multiply_add(const Product&) const;
  // sums[r][v] += x[offsets[r]] * w, elements side by side.
  void multiply_add_side_by_side(const std::string& x, const std::string& w,
                                 std::span<const std::int64_t> offsets) const;

 private:
  std::string sum(int row, int vector) const { return cat("s", row, "_", vector); }
  void declare_vectors(std::string_view prefix, int rows) const;

  Text& out_;
  std::string type_, macro_;
  DType dtype_;
  int rows_, vectors_, lanes_;
};

// What a skeleton is written with.
struct Site {
  Text& out;
  Helpers& helpers;
  Renderer& renderer;
  const Kernel& kernel;
  int vector_bytes;
};

// to[j] = element of a load hole, for j < count along its variable `along`; `vars` are values of
// its variables, that of `along` the first one's.
void write_elements(const Site&, const Hole&, std::span<const std::string> vars, std::size_t along,
                    const std::string& count, DType, const std::string& to);
// Runs the epilogue for sums[j], j < count along its last variable.
void write_results(const Site&, const Hole&, std::span<const std::string> vars,
                   const std::string& count, const std::string& sums);

// The body of a kernel.
void write_contraction(const Site&, const Contraction&);
void write_convolution(const Site&, const Convolution&);

}  // namespace hone::c
