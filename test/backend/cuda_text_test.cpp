// Runs CUDA source of the backend on the CPU and compares with the reference: g++ compiles the
// kernels, and the threads of a block are fibers. Only a GPU shows what a GPU does with the same
// text.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "backend/backend.h"
#include "kernel/forms/forms.h"
#include "ops/common.h"
#include "test/backend/cuda_shim.h"
#include "test/codegen/c_library.h"
#include "test/codegen/cases.h"
#include "test/kernel/run.h"

#if __has_include(<nvrtc.h>)
#include "backend/cuda/target/source.h"

namespace hone::test {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Replaces inline assembly, which no header can emulate.
std::string without_instructions(std::string text) {
  text =
      replaced(text, R"(asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));)", "x = shim_of_half(h);");
  text = replaced(text, R"(asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));)",
                  "h = shim_half_of(x);");
  for (const bool is_max : {true, false})
    text = replaced(text,
                    cat("asm(\"", is_max ? "max" : "min",
                        R"(.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));)"),
                    cat("m = a != a || b != b ? NAN : a ", is_max ? ">" : "<", " b ? a : b;"));
  text = replaced(text, R"(asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(r));)",
                  "y = (float)__builtin_exp2((double)r);");
  text = replaced(text, R"(asm("mov.b32 %0, {%1, %2};" : "=f"(x) : "h"((uint16_t)0), "h"(h));)",
                  "x = shim_bits<float>((uint32_t)h << 16);");
  text = replaced(text, R"(asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));)",
                  "y = (float)__builtin_exp2((double)x);");
  text =
      replaced(text, R"(asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));)",
               "both = shim_half_of(low) | (uint32_t)shim_half_of(high) << 16;");
  text =
      replaced(text, R"(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));)",
               "both = shim_bf16_of(low) | (uint32_t)shim_bf16_of(high) << 16;");
  text = replaced(text, R"(asm volatile("prefetch.global.L2 [%0];" :: "l"(at));)", "");
  text = replaced(text, "extern __shared__ __align__(16) unsigned char shared[];",
                  "static __align__(16) unsigned char shim_shared[4][1 << 18];\n"
                  "#define shared shim_shared[shim_block]");
  // Every fiber of a cluster has arrived at a barrier before one of them goes on.
  text = replaced(text, "asm volatile(\"barrier.cluster.arrive.release.aligned;\" ::: \"memory\");",
                  "");
  text = replaced(text, "asm volatile(\"barrier.cluster.wait.acquire.aligned;\" ::: \"memory\");",
                  "__syncthreads();");
  text = replaced(text, "__shared__ T parts[HONE_BLOCKS * warps];",
                  "static T all_parts[HONE_BLOCKS][HONE_BLOCKS * warps];\n"
                  "  T *const parts = all_parts[shim_block];");
  text = replaced(text,
                  R"(asm("mapa.u64 %0, %1, %2;" : "=l"(to) : "l"(&parts[blockIdx.x % HONE_BLOCKS )"
                  R"(* warps + warp]), "r"(lane));)",
                  "to = &all_parts[lane][shim_block * warps + warp];");
  // Copies complete as late as a machine allows: when they are waited for.
  for (const std::string_view through : {"ca", "cg"})
    text = replaced(text,
                    cat("asm volatile(\"cp.async.", through,
                        ".shared.global [%0], [%1], 16, %2;\" :: \"r\"(at), \"l\"(from), "
                        "\"r\"(bytes) : \"memory\");"),
                    "shim_copy(to, from, reads);");
  text = replaced(text, "asm volatile(\"cp.async.commit_group;\" ::: \"memory\");",
                  "shim_end_batch();");
  text = replaced(text, "asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(n) : \"memory\");",
                  "shim_wait(n);");
  for (const bool across : {false, true})
    text = replaced(
        text,
        cat(R"(asm volatile("ldmatrix.sync.aligned.m8n8.x4)", across ? ".trans" : "",
            R"(.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), )",
            R"("=r"(to[3]) : "r"(at) : "memory");)"),
        across ? "shim_load_pieces(to, from, true);" : "shim_load_pieces(to, from, false);");
  for (const std::string_view t : {"f16", "bf16"})
    text = replaced(
        text,
        cat("asm(\"mma.sync.aligned.m16n8k16.row.col.f32.", t, ".", t,
            R"(.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : )",
            R"("+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), )",
            R"("r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));)"),
        t == "f16" ? "shim_multiply(c, a, b0, b1, true);" : "shim_multiply(c, a, b0, b1, false);");
  return text;
}

class CudaText {
 public:
  explicit CudaText(const Kernel& kernel)
      : source_(cuda::source_of(kernel)), directory_("hone_cuda_text") {
    std::string call = "if (shim_kernel == 0) shim_spread(hone_kernel, shim_arguments);";
    if (source_.header.has_unaligned)
      call += " else shim_spread(hone_kernel_unaligned, shim_arguments);";
    const std::string file = (directory_.path() / "kernel.cpp").string(),
                      library = (directory_.path() / "kernel.so").string();
    write_atomic(file, cat(cuda_shim_head, without_instructions(source_.text),
                           replaced(cuda_shim_tail, "SHIM_CALL", call)));
    compile_c({compiler("g++"), "-std=c++17", "-nostdinc++", "-O1", "-w", "-ffp-contract=off",
               "-mfma", "-shared", "-fPIC", file, "-o", library});
    handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw UserError(::dlerror());
  }
  ~CudaText() {
    if (handle_) ::dlclose(handle_);
  }
  CudaText(const CudaText&) = delete;
  CudaText& operator=(const CudaText&) = delete;

  bool has_vectors() const { return source_.header.alignment > 1; }

  void run(std::span<const std::span<std::byte>> memory, const std::vector<std::int64_t>& sizes,
           std::int64_t chunks, std::int64_t scratch_bytes) const {
    if (chunks == 0) return;
    const cuda::CodeHeader& h = source_.header;
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(chunks, 5));
    std::vector<unsigned long long> arguments;
    unsigned long long addresses = 0;
    for (const std::span<std::byte>& m : memory) {
      arguments.push_back(reinterpret_cast<std::uintptr_t>(m.data()));
      addresses |= arguments.back();
    }
    std::vector<std::byte> scratch;
    if (h.has_scratch) {
      scratch.resize(static_cast<std::size_t>(scratch_bytes) * blocks * h.threads + 64);
      arguments.push_back((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
      arguments.push_back(static_cast<unsigned long long>(scratch_bytes));
    }
    for (std::int64_t n : sizes) arguments.push_back(static_cast<unsigned long long>(n));
    const auto function =
        reinterpret_cast<void (*)(unsigned, unsigned, unsigned, int, const unsigned long long*)>(
            ::dlsym(handle_, "shim_run"));
    function(blocks * h.blocks, h.blocks, h.threads, addresses % h.alignment == 0 ? 0 : 1,
             arguments.data());
  }

 private:
  cuda::Source source_;
  TemporaryDirectory directory_;
  void* handle_ = nullptr;
};

int expect_text_agrees(const Function& f, const std::vector<Array>& inputs, const GroupSpec&);

// Returns the number of its kernels that read and write vectors.
int expect_text_agrees(const Function& f, const std::vector<Array>& inputs) {
  return expect_text_agrees(f, inputs, spec_of(f));
}

int expect_text_agrees(const Function&, const std::vector<Array>&, const GroupSpec&,
                       const Candidate&);

// Uses the first candidate of that spec.
int expect_text_agrees(const Function& f, const std::vector<Array>& inputs, const GroupSpec& spec) {
  const auto target = backend("cuda").target("sm_90");
  return expect_text_agrees(f, inputs, spec, generated_candidates(spec, target->info()).front());
}

int expect_text_agrees(const Function& f, const std::vector<Array>& inputs, const GroupSpec& spec,
                       const Candidate& candidate) {
  SCOPED_TRACE(print(f));
  int vectors = 0;
  const std::vector<Array> got = run_steps(
      candidate, spec, inputs, Guard::behind,
      [&](std::size_t step, std::span<const std::span<std::byte>> memory, const Sizes& sizes) {
        const Kernel& k = std::get<Kernel>(candidate.steps[step].what);
        const CudaText text(k);
        vectors += text.has_vectors();
        text.run(memory, sizes(k.sizes), sizes(k.chunks), (sizes(k.scratch_bytes) + 63) / 64 * 64);
      });
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison r = accept(got[i], strict[i], wide[i]);
    EXPECT_TRUE(r.ok) << r;
  }
  return vectors;
}

int expect_text_agrees(const Type& t, const std::function<Value(Value)>& of) {
  Function f;
  f.add_result(of(f.add_param(t, "x")), "y");
  return expect_text_agrees(f, {random_array(t, 7)});
}

TEST(CudaText, KindsOfOperationsAgree) {
  for (const Op* op : kinds) {
    const std::vector<harness::Case> cases = as_codes(harness::cases_of(*op));
    if (!cases.empty()) expect_text_agrees(cases[0].function, cases[0].inputs);
  }
}

TEST(CudaText, VectorsOfEveryWidthAgree) {
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i64, DType::u8})
    EXPECT_EQ(expect_text_agrees(Type(t, {33, 2048}), [](Value x) { return x + x; }), 1) << t;
  // Columns that are not a multiple of any vector.
  EXPECT_EQ(expect_text_agrees(f32({67, 1001}), [](Value x) { return x + x; }), 0);
  // One row broadcast to all rows, in another dtype.
  Function f;
  const Value x = f.add_param(Type(DType::bf16, {40, 2048}), "x"),
              w = f.add_param(f32({2048}), "w");
  f.add_result(ops::cast(x, {{"dtype", DType::f32}}) * broadcast_to(w, x.shape()), "y");
  EXPECT_EQ(expect_text_agrees(f, {random_array(x.type(), 1), random_array(w.type(), 2)}), 1);
}

TEST(CudaText, RowsThatAreKeptAgree) {
  const auto softmax = [](Value x) { return ops::softmax(x, {{"axis", 1}}); };
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t row : {256, 1000, 4096}) expect_text_agrees(Type(t, {3, row}), softmax);
  // Many rows of narrow elements are read and written as vectors.
  EXPECT_EQ(expect_text_agrees(Type(DType::bf16, {1024, 1024}), softmax), 1);
  EXPECT_EQ(expect_text_agrees(f32({1024, 1024}), softmax), 0);
  Function f;
  const Value x = f.add_param(Type(DType::bf16, {5, 2048}), "x"),
              w = f.add_param(Type(DType::bf16, {2048}), "w");
  f.add_result(ops::rms_norm(std::vector<Value>{x, w}, {{"axis", 1}, {"epsilon", 1e-5}}), "y");
  expect_text_agrees(f, {random_array(x.type(), 1), random_array(w.type(), 2)});
  expect_text_agrees(i32({4, 300}), [](Value x) { return reduce_axes(ops::reduce_max, x, {1}); });
}

// The part of a row that does not fit in registers is kept in shared memory.
TEST(CudaText, RowsThatAreSpreadAgree) {
  const auto target = backend("cuda").target("sm_90");
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t threads : {64, 128}) {
      Function f;
      const Value x = f.add_param(Type(t, {3, 4096}), "x");
      f.add_result(ops::softmax(x, {{"axis", 1}}), "y");
      const GroupSpec spec = spec_of(f);
      const auto c = target->tuned(spec, "nest", {{"spread", 1}, {"threads", threads}});
      ASSERT_TRUE(c);
      const Kernel& k = std::get<Kernel>(c->steps.at(0).what);
      EXPECT_NE(print(k).find("spread"), std::string::npos);
      // Kept halves are copied unchanged, not converted to f32 and back.
      EXPECT_EQ(cuda::source_of(k).text.find(cat("hone_f32_of_", t, "(hone_", t, "_of_f32(")),
                std::string::npos);
      expect_text_agrees(f, {random_array(x.type(), 1)}, spec, *c);
    }
}

// Longer rows are shared by a cluster of blocks, each with its part.
TEST(CudaText, RowsOfClustersAgree) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [t, row] : {std::pair{DType::f32, 65536}, {DType::bf16, 131072}}) {
    Function softmax, norm;
    const Value x = softmax.add_param(Type(t, {4, row}), "x");
    softmax.add_result(ops::softmax(x, {{"axis", 1}}), "y");
    const GroupSpec spec = spec_of(softmax);
    const Candidate c = generated_candidates(spec, backend("cuda").target("sm_90")->info()).front();
    const cuda::Source source = cuda::source_of(std::get<Kernel>(c.steps.at(0).what));
    EXPECT_EQ(source.header.blocks, 4u);
    EXPECT_NE(source.text.find("hone_join_exponentials<1024>(r"), std::string::npos);
    Array in = random_array(x.type(), 3);
    for (std::int64_t i = 0; i < row; ++i) {
      if (i % 4096 != 100) in.set_real(row + i, -infinity);
      in.set_real(2 * row + i, -infinity);
    }
    in.set_real(3 * row + 5000, std::numeric_limits<double>::quiet_NaN());
    expect_text_agrees(softmax, {in}, spec, c);
    const Value z = norm.add_param(Type(t, {2, row}), "x");
    norm.add_result(ops::rms_norm(Values{z, norm.add_param(Type(t, {row}), "w")},
                                  {{"axis", 1}, {"epsilon", 1e-5}}),
                    "y");
    expect_text_agrees(norm, {random_array(z.type(), 1), random_array(Type(t, {row}), 2)});
  }
}

// A partition of a shared device may not support clusters.
TEST(CudaText, RowsOfClustersHaveACandidateOfOneBlock) {
  for (const auto& [t, row, count] :
       {std::tuple{"sm_90", 65536, 2u}, {"sm_90", 4096, 1u}, {"sm_86", 65536, 1u}}) {
    const auto target = backend("cuda").target(t);
    Function f;
    f.add_result(ops::softmax(f.add_param(f32({8, row}), "x"), {{"axis", 1}}), "y");
    const std::vector<Candidate> all = generated_candidates(spec_of(f), target->info());
    ASSERT_EQ(all.size(), count) << t << " " << row;
    EXPECT_EQ(all.back().name, count == 2 ? "nest-one-block" : "nest");
    EXPECT_LE(group_threads(std::get<Kernel>(all.back().steps.at(0).what)), 1024);
  }
}

// For each operand: the depth or the other axis is contiguous, in vectors or not; sizes that are
// multiples of tiles, and others.
TEST(CudaText, TilesOfHalvesAgree) {
  for (DType t : {DType::f16, DType::bf16})
    for (const auto& [m, n, k] :
         {std::array<std::int64_t, 3>{64, 64, 64}, {16, 48, 200}, {33, 19, 21}})
      for (const bool a_is_turned : {false, true})
        for (const bool b_is_turned : {false, true}) {
          Function f;
          const auto side = [&](std::int64_t rows, std::int64_t columns, bool is_turned) {
            const Value v =
                f.add_param(Type(t, is_turned ? Shape{columns, rows} : Shape{rows, columns}), "x");
            return is_turned ? ops::transpose(v, {{"perm", Dims{1, 0}}}) : v;
          };
          const Value a = side(m, k, a_is_turned), b = side(k, n, b_is_turned),
                      bias = f.add_param(Type(t, {n}), "bias");
          f.add_result(ops::relu(ops::matmul(a, b) + broadcast_to(bias, Shape{m, n})), "y");
          std::vector<Array> inputs;
          for (std::size_t i = 0; i < 3; ++i) inputs.push_back(random_array(f.param(i).type(), i));
          const auto target = backend("cuda").target("sm_90");
          EXPECT_EQ(generated_candidates(spec_of(f), target->info()).front().name, "tensor");
          expect_text_agrees(f, inputs);
        }
}

// Tiles that are copied while others are multiplied, a depth whose parts a second kernel sums, and
// steps split within the group: sizes that are multiples of these parts, and others; with an
// epilogue.
TEST(CudaText, StagesAndPartsOfTheDepthAgree) {
  const auto target = backend("cuda").target("sm_90");
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{64, 64, 256}, {40, 72, 200}, {1, 24, 136}})
    for (const std::int64_t stages : {1, 3, 4})
      for (const auto& [parts, depths] :
           {std::array<std::int64_t, 2>{1, 1}, {2, 1}, {3, 1}, {1, 2}}) {
        Function f;
        const Value a = f.add_param(Type(DType::f16, {m, k}), "a"),
                    b = f.add_param(Type(DType::f16, {k, n}), "b"),
                    bias = f.add_param(Type(DType::f16, {n}), "bias"),
                    more = f.add_param(Type(DType::f16, {m, n}), "more");
        f.add_result(ops::relu(ops::matmul(a, b) + broadcast_to(bias, Shape{m, n}) + more), "y");
        const Tuning tuning = {{"tile_m", 32},   {"tile_n", 32},    {"tile_k", 32 * depths},
                               {"rows", 16},     {"columns", 16},   {"stages", stages},
                               {"parts", parts}, {"depths", depths}};
        const GroupSpec spec = spec_of(f);
        const std::optional<Candidate> c = target->tuned(spec, "tensor", tuning);
        ASSERT_TRUE(c);
        EXPECT_EQ(c->steps.size(), parts > 1 ? 2u : 1u);
        EXPECT_EQ(c->temporaries.size(), parts > 1 ? 1u : 0u);
        EXPECT_EQ(group_threads(std::get<Kernel>(c->steps[0].what)), 128 * depths);
        std::vector<Array> inputs;
        for (std::size_t i = 0; i < 4; ++i) inputs.push_back(random_array(f.param(i).type(), i));
        expect_text_agrees(f, inputs, spec, *c);
      }
}

// The epilogue's operands are loaded for several vectors before the first one is stored.
TEST(CudaText, TilesLoadBeforeTheyStore) {
  const auto target = backend("cuda").target("sm_90");
  for (const std::int64_t tile : {64, 128}) {  // 4 vectors per thread, and 16
    Function f;
    const Value a = f.add_param(Type(DType::f16, {256, 64}), "a"),
                b = f.add_param(Type(DType::f16, {64, 128}), "b"),
                more = f.add_param(Type(DType::f16, {256, 128}), "more");
    f.add_result(ops::relu(ops::matmul(a, b) + more), "y");
    const GroupSpec spec = spec_of(f);
    const Tuning tuning = {{"tile_m", tile},   {"tile_n", tile},      {"tile_k", 32},
                           {"rows", tile / 2}, {"columns", tile / 2}, {"stages", 3},
                           {"parts", 1},       {"depths", 1}};
    const std::optional<Candidate> c = target->tuned(spec, "tensor", tuning);
    ASSERT_TRUE(c);
    const StoringLoops loops = storing_loops(std::get<Kernel>(c->steps.at(0).what));
    EXPECT_EQ(loops.all, 1);
    EXPECT_EQ(loops.load_as_well, 0);
    std::vector<Array> inputs;
    for (std::size_t i = 0; i < 3; ++i) inputs.push_back(random_array(f.param(i).type(), i));
    expect_text_agrees(f, inputs, spec, *c);
  }
}

// A tile of 16 x 32 has 64 vectors of 8 results, but each of 256 threads stores 2 of them, and
// loads its part of the bias before the product.
TEST(CudaText, AllThreadsStoreASmallTile) {
  const auto target = backend("cuda").target("sm_90");
  Function f;
  const Value a = f.add_param(Type(DType::f16, {16, 512}), "a"),
              b = f.add_param(Type(DType::f16, {512, 64}), "b"),
              bias = f.add_param(Type(DType::f16, {64}), "bias");
  f.add_result(ops::relu(ops::matmul(a, b) + broadcast_to(bias, Shape{16, 64})), "y");
  const GroupSpec spec = spec_of(f);
  const std::optional<Candidate> c = target->tuned(spec, "tensor",
                                                   {{"tile_m", 16},
                                                    {"tile_n", 32},
                                                    {"tile_k", 256},
                                                    {"rows", 16},
                                                    {"columns", 32},
                                                    {"stages", 3},
                                                    {"parts", 1},
                                                    {"depths", 8}});
  ASSERT_TRUE(c);
  const std::string text = print(std::get<Kernel>(c->steps.at(0).what));
  EXPECT_LT(text.find("load f16 p2"), text.find("async")) << text;
  const std::string last_lanes = text.substr(text.rfind("lanes loop:"));
  EXPECT_EQ(last_lanes.substr(last_lanes.find(" < "), 4), " < 2") << text;
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < 3; ++i) inputs.push_back(random_array(f.param(i).type(), i));
  expect_text_agrees(f, inputs, spec, *c);
}

// Few rows and a deep sum: the choice of the cost model, and transposed results, which are not
// assembled into rows.
TEST(CudaText, FewRowsDivideTheDepthOfAStep) {
  const auto target = backend("cuda").target("sm_90");
  for (const bool is_turned : {false, true}) {
    Function f;
    const Value a = f.add_param(Type(DType::bf16, {16, 1024}), "a"),
                b = f.add_param(Type(DType::bf16, {1024, 96}), "b"), y = ops::matmul(a, b);
    f.add_result(is_turned ? transpose_matrix(y) : y, "y");
    const GroupSpec spec = spec_of(f);
    const std::optional<Candidate> c = target->tuned(spec, "tensor", {});
    ASSERT_TRUE(c);
    EXPECT_EQ(c->steps.size(), is_turned ? c->steps.size() : 1u);
    expect_text_agrees(f, {random_array(a.type(), 1), random_array(b.type(), 2)}, spec, *c);
  }
}

TEST(CudaText, ConvolutionsOfHalvesAgree) {
  for (const std::int64_t channels_last : {0, 1})
    for (const std::int64_t side : {8, 9})
      for (const std::int64_t window : {1, 3}) {
        Function f;
        const Type x(DType::f16,
                     channels_last ? Shape{2, side, side, 16} : Shape{2, 16, side, side});
        const Dims pads = {window / 2, window / 2}, ones = {1, 1}, steps = {window, window};
        const Value image = f.add_param(x, "x"),
                    w = f.add_param(Type(DType::f16, channels_last ? Shape{window, window, 16, 24}
                                                                   : Shape{24, 16, window, window}),
                                    "w");
        f.add_result(ops::conv(Values{image, w}, {{"strides", steps},
                                                  {"dilations", ones},
                                                  {"pads_low", pads},
                                                  {"pads_high", pads},
                                                  {"groups", std::int64_t{1}},
                                                  {"channels_last", channels_last}}),
                     "y");
        expect_text_agrees(f, {random_array(x, 2), random_array(w.type(), 1)});
        // The copies fill the padding with zeros.
        const Candidate c =
            generated_candidates(spec_of(f), backend("cuda").target("sm_90")->info()).front();
        if (channels_last) {
          EXPECT_NE(print(std::get<Kernel>(c.steps.at(0).what)).find("wait copies"),
                    std::string::npos);
        }
      }
}

// Attention over two heads that share keys, with the given candidate.
void expect_attention(const Type& row, const Attrs& attrs, std::string_view name,
                      const Tuning& tuning, std::int64_t queries = 75) {
  const Dim width = row.shape[0];
  Function f;
  const Value q = f.add_param(Type(row.dtype, {2, queries, width}), "q"),
              k = f.add_param(Type(row.dtype, {1, 130, width}), "k"),
              v = f.add_param(Type(row.dtype, {1, 130, width}), "v");
  f.add_result(ops::attention(Values{q, k, v}, attrs), "y");
  const GroupSpec spec = spec_of(f);
  const std::optional<Candidate> c = backend("cuda").target("sm_90")->tuned(spec, name, tuning);
  ASSERT_TRUE(c);
  expect_text_agrees(
      f, {random_array(q.type(), 1), random_array(k.type(), 2), random_array(v.type(), 3)}, spec,
      *c);
}

// Products of few rows with a matrix whose rows or columns are multiples of a vector, or are not.
TEST(CudaText, ProductsOfFewRowsAgree) {
  for (const bool is_transposed : {false, true})
    for (const std::int64_t columns : {40, 45}) {
      Function f;
      const Value x = f.add_param(Type(DType::bf16, {2, 136}), "x"),
                  w = f.add_param(is_transposed ? Type(DType::bf16, {columns, 136})
                                                : Type(DType::bf16, {136, columns}),
                                  "w");
      f.add_result(is_transposed ? dot_general(x, w, {}, {{1, 1}}) : ops::matmul(x, w), "y");
      const GroupSpec spec = spec_of(f);
      const std::optional<Candidate> c = backend("cuda").target("sm_90")->tuned(
          spec, "rows", {{"threads", 64}, {"vectors", 2}, {"unroll", 4}});
      ASSERT_TRUE(c);
      expect_text_agrees(f, {random_array(x.type(), 1), random_array(w.type(), 2)}, spec, *c);
    }
}

// Each group normalizes the row before it multiplies.
TEST(CudaText, ProductsOfAMadeRowAgree) {
  for (const DType t : {DType::f32, DType::bf16}) {
    Function f;
    const Value x = f.add_param(Type(t, {1, 200}), "x"), s = f.add_param(Type(t, {200}), "s"),
                w = f.add_param(Type(t, {200, 72}), "w");
    const Value row = ops::rms_norm(Values{x, s}, {{"axis", 1}, {"epsilon", 1e-5}});
    f.add_result(ops::matmul(row, w), "y");
    const GroupSpec spec = spec_of(f);
    const Candidate c = generated_candidates(spec, backend("cuda").target("sm_90")->info()).front();
    EXPECT_EQ(c.name, "rows-made");
    expect_text_agrees(
        f, {random_array(x.type(), 1), random_array(s.type(), 2), random_array(w.type(), 3)}, spec,
        c);
  }
}

// A kernel of few groups reads weights while the previous kernel still runs.
TEST(CudaText, FewGroupsReadWeightsBeforeTheyWait) {
  Function f;
  const Value x = f.add_param(Type(DType::bf16, {1, 256}), "x"),
              s = f.add_param(Type(DType::bf16, {256}), "s"),
              w = f.add_param(Type(DType::bf16, {256, 72}), "w"),
              b = f.add_param(Type(DType::bf16, {72}), "b");
  const Value row = ops::rms_norm(Values{x, s}, {{"axis", 1}, {"epsilon", 1e-5}});
  const Value y = ops::matmul(row, w);
  f.add_result(y + broadcast_to(b, y.shape()), "y");
  GroupSpec spec = spec_of(f);
  spec.param_is_weight = {false, true, true, true};
  const Candidate c = generated_candidates(spec, backend("cuda").target("sm_90")->info()).front();
  const Candidate::Step& step = c.steps.at(0);
  const std::string text = cuda::source_of(std::get<Kernel>(step.what)).text;
  const std::size_t body = text.find("void hone_body"), entry = text.find("extern \"C\""),
                    wait = text.find("hone_wait_for_previous();", body);
  ASSERT_LT(wait, entry);
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const std::string at = cat("p", i, "["), vector = cat(", p", i, " + (");
    const std::size_t begin = text.find("{", body);
    const std::size_t first = std::min(text.find(at, begin), text.find(vector, begin));
    ASSERT_LT(first, entry) << i;
    const bool is_param = step.operands[i].kind == Candidate::Operand::Kind::param;
    EXPECT_EQ(first < wait, is_param && step.operands[i].index > 0) << i << "\n" << text;
  }
  expect_text_agrees(f,
                     {random_array(x.type(), 1), random_array(s.type(), 2),
                      random_array(w.type(), 3), random_array(b.type(), 4)},
                     spec, c);
}

// The first tiles of weights are copied before the kernel waits, those of other operands after it.
TEST(CudaText, TensorProductsCopyWeightsBeforeTheyWait) {
  Function f;
  const Value a = f.add_param(Type(DType::bf16, {16, 1024}), "a"),
              b = f.add_param(Type(DType::bf16, {1024, 96}), "b");
  f.add_result(ops::matmul(a, b), "y");
  GroupSpec spec = spec_of(f);
  spec.param_is_weight = {false, true};
  const auto c = backend("cuda").target("sm_90")->tuned(spec, "tensor", {});
  ASSERT_TRUE(c);
  const auto& step = c->steps.back();
  const std::string text = cuda::source_of(std::get<Kernel>(step.what)).text;
  const std::size_t body = text.find("void hone_body"),
                    wait = text.find("hone_wait_for_previous();", body);
  ASSERT_NE(wait, std::string::npos);
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const std::size_t copy = text.find(cat(", p", i, " + ("), text.find("hone_copy_async", body));
    if (step.operands[i].kind == Candidate::Operand::Kind::result) continue;
    ASSERT_NE(copy, std::string::npos) << i;
    EXPECT_EQ(copy < wait, step.operands[i].index == 1) << i << text;
  }
  expect_text_agrees(f, {random_array(a.type(), 1), random_array(b.type(), 2)}, spec, *c);
}

// A kernel of few groups prefetches its operands while the previous kernel still runs.
TEST(CudaText, FewGroupsFetchBeforeTheyWait) {
  for (const std::int64_t columns : {512, 1 << 20}) {
    Function f;
    const Value x = f.add_param(Type(DType::bf16, {1, 256}), "x"),
                w = f.add_param(Type(DType::bf16, {256, columns}), "w");
    f.add_result(ops::matmul(x, w), "y");
    const auto c = backend("cuda").target("sm_90")->tuned(spec_of(f), "rows", {});
    ASSERT_TRUE(c);
    const std::string text = cuda::source_of(std::get<Kernel>(c->steps.at(0).what)).text;
    const std::size_t body = text.find("void hone_body"), entry = text.find("extern \"C\""),
                      fetch = text.find("hone_fetch(", body), read = text.find("hone_load<", body),
                      wait = text.find("hone_wait_for_previous();", body);
    ASSERT_NE(wait, std::string::npos);
    EXPECT_EQ(fetch < wait, columns == 512);
    EXPECT_EQ(wait < entry, columns == 512);
    EXPECT_LT(body, read);
    EXPECT_TRUE(columns > 512 || wait < read) << "reads what another kernel may be writing";
  }
}

// Queries, keys and values with and without vectors, with and without masks.
TEST(CudaText, AttentionAgrees) {
  const Attrs all = {{"scale", 0.2}}, causal = {{"scale", 0.2}, {"causal", Dims{20}}};
  const Tuning wide = {{"rows", 32}, {"subgroups", 2}, {"keys", 64}};
  expect_attention(Type(DType::f16, {64}), all, "attention", {});
  expect_attention(Type(DType::f16, {20}), causal, "attention", {});
  expect_attention(Type(DType::bf16, {64}), causal, "attention", wide);
  expect_attention(Type(DType::bf16, {80}), all, "attention", wide);
  for (const std::int64_t width : {20, 64})
    expect_attention(f32({width}), width == 20 ? causal : all, "attention-f32", {});
  for (const std::int64_t parts : {1, 2}) {
    const Tuning few = {{"threads", 64}, {"unroll", 2}, {"parts", parts}};
    expect_attention(Type(DType::bf16, {64}), all, "attention-few", few, 1);
    expect_attention(Type(DType::f16, {20}), causal, "attention-few", few, 5);
  }
}

// Image and weights are padded to whole vectors of channels, the weights once.
TEST(CudaText, ConvolutionsOfFewChannelsAgree) {
  for (const std::int64_t channels : {1, 3, 12}) {
    Function f;
    const Type x(DType::f16, {2, 9, 9, channels}), w(DType::f16, {3, 3, channels, 16});
    const Dims ones = {1, 1}, steps = {2, 2};
    const Value image = f.add_param(x, "x"), weights = f.add_param(w, "w");
    f.add_result(ops::relu(ops::conv(Values{image, weights}, {{"strides", steps},
                                                              {"dilations", ones},
                                                              {"pads_low", ones},
                                                              {"pads_high", ones},
                                                              {"groups", std::int64_t{1}},
                                                              {"channels_last", std::int64_t{1}}})),
                 "y");
    GroupSpec spec = spec_of(f);
    spec.param_is_weight[1] = true;
    const Candidate c = generated_candidates(spec, backend("cuda").target("sm_90")->info()).front();
    ASSERT_EQ(c.name, "tensor");
    ASSERT_EQ(c.steps.size(), 3u);
    EXPECT_TRUE(c.steps[0].prepare);
    EXPECT_FALSE(c.steps[1].prepare);
    expect_text_agrees(f, {random_array(x, 1), random_array(w, 2)}, spec);
  }
}

// Neither axis of the weight matrix is contiguous in memory: it is packed once.
TEST(CudaText, WeightsOfAnotherOrderArePacked) {
  Function f;
  const Type x(DType::f16, {1, 10, 10, 16}), w(DType::f16, {3, 3, 16, 24});
  const Dims ones = {1, 1};
  const Value image = f.add_param(x, "x"), weights = f.add_param(w, "w");
  f.add_result(ops::conv(Values{image, weights}, {{"strides", ones},
                                                  {"dilations", ones},
                                                  {"pads_low", ones},
                                                  {"pads_high", ones},
                                                  {"groups", std::int64_t{1}},
                                                  {"channels_last", std::int64_t{1}}}),
               "y");
  GroupSpec spec = spec_of(f);
  spec.param_strides[1] = {3, 1, 9, 144};
  spec.param_is_weight[1] = true;
  const auto target = backend("cuda").target("sm_90");
  const Candidate c = std::move(generated_candidates(spec, target->info()).front());
  ASSERT_EQ(c.name, "tensor");
  ASSERT_EQ(c.steps.size(), 2u);
  EXPECT_TRUE(c.steps[0].prepare);
  EXPECT_TRUE(c.temporaries.at(0).prepared);
  expect_text_agrees(f, {random_array(x, 1), random_array(w, 2)}, spec);
}

// Rows of weights that are not whole vectors are padded once.
TEST(CudaText, WeightsOfOddRowsArePacked) {
  Function f;
  const Type x(DType::f16, {24, 40}), w(DType::f16, {40, 77});
  const Value a = f.add_param(x, "x"), b = f.add_param(w, "w");
  f.add_result(ops::matmul(a, b), "y");
  GroupSpec spec = spec_of(f);
  spec.param_is_weight[1] = true;
  const Candidate c = generated_candidates(spec, backend("cuda").target("sm_90")->info()).front();
  ASSERT_EQ(c.name, "tensor");
  EXPECT_TRUE(c.steps.at(0).prepare);
  EXPECT_EQ(c.temporaries.at(0).type.shape, (Shape{40, 80}));
  expect_text_agrees(f, {random_array(x, 1), random_array(w, 2)}, spec);
}

// Also the bits of NaNs, which the machine's conversions change.
TEST(CudaText, BitsOfHalvesStayAsTheyAre) {
  for (DType t : {DType::f16, DType::bf16})
    for (const std::int64_t count : {5, 1 << 17}) {
      Array x = Array::zeros(t, {count});
      const std::uint16_t bits = t == DType::f16 ? 0x7e00 : 0x7fc0;
      std::memcpy(x.writable_bytes().data(), &bits, sizeof bits);
      Function f;
      f.add_result(ops::bitcast(f.add_param(x.type(), "x"), {{"dtype", DType::u16}}), "y");
      expect_text_agrees(f, {x});
    }
}

TEST(CudaText, CubesOfHalvesAreProducts) {
  const Type t(DType::f16, {3, 500});
  expect_text_agrees(t, [](Value x) {
    return ops::pow(x, broadcast_to(scalar(x.graph(), 3, x.dtype()), x.shape()));
  });
}

// The settings of the library's first proposal, and whether a kernel follows its call.
std::string proposed(DType t, const std::function<Value(Value product, Value bias)>& of) {
  Function f;
  const Value a = f.add_param(Type(t, {32, 64}), "a"), b = f.add_param(Type(t, {64, 48}), "b"),
              bias = f.add_param(Type(t, {48}), "bias");
  const Value product = ops::matmul(a, b);
  f.add_result(of(product, broadcast_to(bias, product.shape())), "y");
  GroupSpec spec = spec_of(f);
  spec.is_aligned = true;
  for (const Proposal& p : backend("cuda").target("sm_90")->candidates(spec)) {
    if (p.library != "cublaslt") continue;
    std::string out = std::get<std::string>(p.candidate.steps[0].what);
    for (const auto& [name, value] : p.candidate.steps[0].settings)
      if (value != 0) out += cat(" ", name);
    return cat(out, p.candidate.steps.size() > 1 ? ", kernel" : "");
  }
  return "nothing";
}

TEST(CudaLibrary, TakesABiasAndAnActivationThatItComputesWell) {
  const auto gelu = [](Value x, Value bias) { return ops::gelu_tanh(x + bias); };
  EXPECT_EQ(proposed(DType::bf16, gelu), "cublaslt.matmul bias gelu");
  EXPECT_EQ(proposed(DType::f32, gelu), "cublaslt.matmul bias, kernel");
  EXPECT_EQ(proposed(DType::f16, [](Value x, Value) { return ops::relu(x); }),
            "cublaslt.matmul relu");
  EXPECT_EQ(proposed(DType::f16, [](Value x, Value) { return ops::tanh(x) + x; }),
            "cublaslt.matmul, kernel");
  EXPECT_EQ(proposed(DType::i32, [](Value x, Value bias) { return x + bias; }), "nothing");
}

}  // namespace
}  // namespace hone::test
#endif
