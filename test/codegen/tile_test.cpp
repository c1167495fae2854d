// Register tiles: kernels written as statements by hand, rendered by LLVM and as C.
#include <gtest/gtest.h>

#include <random>

#include "c_library.h"
#include "codegen/c/module.h"
#include "codegen/llvm/nest.h"
#include "group_runner.h"
#include "kernel/nest/block_writer.h"
#include "kernel/problem/anchored.h"
#include "ops/ops.h"

namespace hone::test {

namespace {

using Kind = Stmt::Kind;
constexpr std::int64_t width = 32;

// y = 2 * (start + a x b), of which only `columns` columns exist. Parameters: a [k, rows] (or [k,
// rows, width]: side by side), b [k, width], start and y [rows, columns].
struct Case {
  std::int64_t rows = 3, columns = 21, k = 5;
  DType b = DType::f32;
  bool side_by_side = false, is_symbolic = false;
};

class Hand {
 public:
  explicit Hand(const Case& c) : c_(c), lowering_(std::make_shared<Graph>()), out_(lowering_) {
    kernel_.name = "by_hand";
    kernel_.tiles = {{DType::f32, static_cast<int>(c.rows), width}};
    kernel_.memory = {{DType::f32, c.rows * width, 0}};
    kernel_.scratch_bytes = c.rows * width * 4;
    param(DType::f32, {c.k, c.rows * a_step()});
    param(c.b, {c.k, width});
    param(DType::f32, {c.rows, c.columns});
    param(DType::f32, {c.rows, c.columns});
    kernel_.params.back().written = true;
    if (c.is_symbolic) kernel_.sizes = {columns_ = Dim::symbol("n", 0, width)};
    out_.loop(LoopKind::grid, 1, [&](const Dim&) {
      // The second part continues with the sums that the first one stored in memory.
      out_.loop(LoopKind::serial, 2, [&](const Dim& part) {
        out_.branch(
            lowering_.same(part, 0),
            [&] { out_.add(with(Kind::tile_load, window(2, c.columns), columns_)); },
            [&] { out_.add(with(Kind::tile_load, window(4, width), width)); });
        multiply(part);
        out_.add(with(Kind::tile_store, window(4, width), width));
        out_.branch(lowering_.same(part, 1), [&] { results(); });
      });
    });
    kernel_.graph = lowering_.shared_graph();
    kernel_.body = out_.take();
  }

  const Kernel& kernel() const { return kernel_; }

 private:
  std::int64_t a_step() const { return c_.side_by_side ? width : 1; }

  void param(DType t, const Dims& dims) {
    kernel_.params.push_back({t, dims, dense_strides(Shape(dims)), false});
  }

  TileWindow window(int param, std::int64_t row_stride) const {
    TileWindow w{param, 0, {}, 1};
    for (std::int64_t i = 0; i < c_.rows; ++i) w.rows.push_back(i * row_stride);
    return w;
  }

  Stmt with(Kind kind, TileWindow w, const Dim& columns) const {
    Stmt s{.kind = kind, .tile = 0, .columns = columns};
    s.a = std::move(w);
    return s;
  }

  void multiply(const Dim& part) {
    const std::int64_t half = (c_.k + 1) / 2;
    Stmt s = with(Kind::tile_multiply, window(0, a_step()), columns_);
    s.extent = out_.keep(min(Dim(half), Dim(c_.k) - part * Dim(half)));
    s.a.offset = part * Dim(half * c_.rows * a_step());
    s.a.stride = c_.rows * a_step();
    s.b = {1, part * Dim(half * width), {}, width};
    s.a_has_columns = c_.side_by_side;
    out_.add(std::move(s));
  }

  // The first row from registers, the others from memory.
  void results() {
    auto put = [&](const Dim& row, const Dim& column, Value x) {
      Stmt s{.kind = Kind::store, .param = 3, .value = lowering_.apply(ops::add, {x, x})};
      s.offset = row * Dim(c_.columns) + column;
      out_.add(std::move(s));
    };
    out_.loop(LoopKind::lanes, columns_, [&](const Dim& column) {
      put(0, column, element_of_tile(lowering_, 0, DType::f32, 0, column));
    });
    out_.loop(LoopKind::serial, c_.rows - 1, [&](const Dim& row) {
      out_.loop(LoopKind::lanes, columns_, [&](const Dim& column) {
        put(row + 1, column, lowering_.load(4, DType::f32, (row + 1) * Dim(width) + column));
      });
    });
  }

  Case c_;
  Lowering lowering_;
  BlockWriter out_;
  Kernel kernel_;
  Dim columns_ = c_.columns;
};

std::vector<float> run(const Case& c, KernelFunction kernel) {
  const std::int64_t step = c.side_by_side ? width : 1;
  auto memory = [](std::int64_t count, DType t) {
    return GuardedBuffer(static_cast<std::size_t>(count * byte_size(t)), Guard::behind);
  };
  GuardedBuffer a = memory(c.k * c.rows * step, DType::f32), b = memory(c.k * width, c.b),
                start = memory(c.rows * c.columns, DType::f32),
                y = memory(c.rows * c.columns, DType::f32),
                scratch = memory(c.rows * width, DType::f32);
  std::mt19937 random(7);
  auto small = [&] { return static_cast<float>(random() % 17) - 8; };
  for (float& x : a.as<float>()) x = small();
  for (float& x : start.as<float>()) x = small();
  Array values = Array::zeros(c.b, {c.k, width});
  for (std::int64_t i = 0; i < values.count(); ++i)
    is_float(c.b) ? values.set_real(i, small()) : values.set_integer(i, static_cast<int>(small()));
  std::copy_n(values.bytes().data(), values.bytes().size(), b.as<std::byte>().data());
  std::fill(scratch.as<float>().begin(), scratch.as<float>().end(), NAN);
  void* buffers[] = {a.data(), b.data(), start.data(), y.data()};
  kernel(buffers, &c.columns, 0, 1, scratch.data());
  std::vector<float> got(y.as<float>().begin(), y.as<float>().end());
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t n = 0; n < c.columns; ++n) {
      const auto at = static_cast<std::size_t>(r * c.columns + n);
      double sum = start.as<float>()[at];
      for (std::int64_t k = 0; k < c.k; ++k)
        sum += a.as<float>()[static_cast<std::size_t>((k * c.rows + r) * step +
                                                      (c.side_by_side ? n : 0))] *
               (is_float(c.b) ? values.real(k * width + n)
                              : static_cast<double>(values.integer(k * width + n)));
      EXPECT_EQ(got[at], 2 * sum) << r << ", " << n;
    }
  return got;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (std::int64_t columns : {1, 8, 16, 21, 32})
    for (bool is_symbolic : {false, true})
      for (bool side_by_side : {false, true})
        out.push_back(
            {.columns = columns, .side_by_side = side_by_side, .is_symbolic = is_symbolic});
  for (DType t : {DType::f16, DType::bf16, DType::i8}) out.push_back({.b = t});
  out.push_back({.k = 1});
  return out;
}

TEST(Tile, LlvmAgreesWithSums) {
  for (const std::string& target : llvm::targets())
    for (const Case& c : cases()) {
      const Hand hand(c);
      SCOPED_TRACE(target + "\n" + print(hand.kernel()));
      llvm::Module m("k", cpu::target_spec(target));
      llvm::emit_kernel(m, hand.kernel(), "k");
      llvm::Object object = emitter_for(target).compile(m);
      const LoadedBinary code =
          load(llvm::link_objects(std::span(&object, 1), cpu::target_spec(target).name));
      run(c, code.entry("k"));
    }
}

TEST(Tile, CAgreesWithSums) {
  c::Module module(256);
  const std::vector<Case> all = cases();
  for (std::size_t i = 0; i < all.size(); ++i) module.add_entry(Hand(all[i]).kernel(), cat("k", i));
  for (const char* cc : {"gcc", "clang-19"}) {
    const CLibrary library({module.text()}, {"-std=c11", "-O2", "-march=native"}, cc);
    for (std::size_t i = 0; i < all.size(); ++i) run(all[i], library.kernel(cat("k", i)));
  }
}

// ---- rules of kernels

Kernel valid() { return Hand(Case{}).kernel(); }

TEST(Kernels, RulesAreChecked) {
  EXPECT_NO_THROW(check(valid()));
  Kernel k = valid();
  k.body.push_back(k.body[0]);
  EXPECT_NO_THROW(check(k));  // one after the other
  k.chunks = 2;
  EXPECT_THROW(check(k), InternalError);
  k = valid();
  k.chunks = 2;
  EXPECT_THROW(check(k), InternalError);
  k = valid();
  k.tiles[0].rows = 4;
  EXPECT_THROW(check(k), InternalError);
  k = valid();
  k.tiles.clear();
  EXPECT_THROW(check(k), InternalError);
  k = valid();
  k.body[0].body.push_back(k.body[0]);
  EXPECT_THROW(check(k), InternalError);
}

// Consecutive bodies form one kernel: the second reads what the first wrote.
TEST(Kernels, SeveralBodiesInSequence) {
  Lowering lowering(std::make_shared<Graph>());
  BlockWriter out(lowering);
  Kernel k;
  k.params = {{DType::f32, {5}, {1}, false}, {DType::f32, {5}, {1}, true}};
  for (int from : {0, 1})
    out.loop(LoopKind::grid, 5, [&](const Dim& i) {
      Value x = lowering.load(from, DType::f32, from == 0 ? i : Dim(4) - i);
      out.add({.kind = Kind::store,
               .param = 1,
               .offset = i,
               .value = lowering.apply(ops::add, {x, x})});
    });
  k.graph = lowering.shared_graph();
  k.body = out.take();
  auto expect = [](KernelFunction run) {
    std::vector<float> x = {1, 2, 3, 4, 5}, y(5);
    void* buffers[] = {x.data(), y.data()};
    run(buffers, nullptr, 0, 1, nullptr);
    EXPECT_EQ(y, (std::vector<float>{20, 16, 12, 32, 40}));
  };
  llvm::Module m("k", cpu::target_spec("x86-64-v3"));
  llvm::emit_kernel(m, k, "k");
  llvm::Object object = emitter_for("x86-64-v3").compile(m);
  const LoadedBinary code = load(llvm::link_objects(std::span(&object, 1), "x86-64-v3"));
  expect(code.entry("k"));
  c::Module module(256);
  module.add_entry(k, "k");
  expect(CLibrary({module.text()}).kernel("k"));
}

}  // namespace

}  // namespace hone::test
