// Kernels as text: printed text parses to the same kernel, and errors in malformed text name the
// line.
#include <gtest/gtest.h>

#include "../codegen/cases.h"
#include "kernel/nest/nest_candidate.h"
#include "machines.h"
#include "run.h"

namespace hone::test {

namespace {

void expect_round_trip(const Kernel& k) {
  const std::string text = print(k);
  SCOPED_TRACE(text);
  Kernel parsed;
  ASSERT_NO_THROW(parsed = parse_kernel(text));
  ASSERT_EQ(print(parsed), text);
  ASSERT_EQ(hash(parsed), hash(k));
}

constexpr std::string_view every_statement = R"(kernel every_statement
size m 1..512
size n 0..100000
symbol rows 1..8
p0: f32[m,n,rows] strides [n,1,(7+3*n)]
p1: f16[floor_div(m,2),n] strides [-1,n] written streams from 8388608
p2: i64[] strides []
p3: group f32 x 1024 at 0
p4: group f32 x 64 at 4096
p5: scratch f32 x 3+n at 64*n
t0: tile f32 4x16
t1: tile bf16 2x2
aligned
chunks ceil
)";

TEST(KernelText, EveryStatement) {
  std::string text(every_statement);
  text.replace(text.find("chunks ceil"), 11, "chunks m*floor_div((15+n),16)\nscratch_bytes 64*n");
  text += R"(%0 = load i64 p2[0]
var r0: i64 in 0..511 = %0
grid loop:0 < m
  group loop:1 < 64
    %1 = lt i64(loop:0+4*loop:1) i64(n)
    %2 = load f32 p0[loop:1+n*reg:0] if %1
    var r1: f32 = %2
    for loop:2 < min(16,n) in 0..99
      %3 = load f32 p0[loop:2]
      %4 = mul r1 %3
      %5 = select %1 %4 f32(inf)
      r1 add= %5
      r1 = %5
    if %1
      p3[loop:1] = %2
    else
      p3[loop:1] = f32(nan)
    barrier
    barrier of 8
    r1 = group maximum %2
    p4[loop:1] = async p0[loop:1; 0; 1] x 1
    end batch
    wait copies 0
    t0 = f32(0) columns 16
    t0 = p3[loop:1; 0,16,32,48; 1] columns 12
    t0 += p3[0; 0,16,32,48; 1] * p3[loop:1; 64] k < 16 columns 16
    t0 += p3[0; 0,16,32,48; 1] by column * p3[loop:1; 64] in groups of 2 k < n columns 16
    p3[0; 0,16,32,48; 1] = t0 columns 16
    intrinsic matrix_multiply
      t1 = bf16(1.5) columns 2
grid loop:3 < floor_div(n,2)
  across loop:4 < 8
    lanes loop:5 < 16
      fetch p0[16*loop:4+loop:5] into cache 2
      %6 = element f32 t0[3; loop:5]
      %7 = cast f16 %6
      %8 = lt %6 f32(bits:ffc00001)
      p1[loop:5] = %7 if %8
  unrolled loop:6 < 4
    p5[loop:6] = r1
)";
  Kernel k;
  ASSERT_NO_THROW(k = parse_kernel(text));
  EXPECT_EQ(print(k), text);
  expect_round_trip(k);
}

TEST(KernelText, EveryNestOfTheSamples) {
  const TargetInfo target = with_vectors_of_256_bits();
  int kernels = 0;
  auto check = [&](const Function& f) {
    for (const Candidate::Step& step : nest_candidate(spec_of(f), target).steps) {
      const Kernel* k = std::get_if<Kernel>(&step.what);
      if (!k) continue;
      expect_round_trip(*k);
      ++kernels;
    }
  };
  for (const harness::Case& c : as_codes(harness::all_cases()))
    if (!holds_control(c.function)) check(c.function);
  for (const Large& l : large_functions()) check(l.function);
  EXPECT_GT(kernels, 400);
}

TEST(KernelText, HashKnowsStructureAndNotNames) {
  auto of = [](std::string_view name, std::string_view statement, int high = 9) {
    return hash(parse_kernel(cat("kernel ", name, "\nsize n 1..", high,
                                 "\np0: f32[n] strides [1] written\nchunks 1\n", statement)));
  };
  const Hash128 one = of("a", "p0[0] = f32(1)\n");
  EXPECT_EQ(one, of("b", "p0[0] = f32(1)\n"));
  EXPECT_NE(one, of("a", "p0[0] = f32(2)\n"));
  EXPECT_NE(one, of("a", "p0[1] = f32(1)\n"));
  EXPECT_NE(one, of("a", "p0[0] = f32(1)\n", 10));
  EXPECT_NE(one, of("a", "p0[0] = f32(1)\np0[0] = f32(1)\n"));
  EXPECT_NE(of("a", "for loop:0 < n\n  p0[loop:0] = f32(1)\n"),
            of("a", "lanes loop:0 < n\n  p0[loop:0] = f32(1)\n"));
  EXPECT_NE(of("a", "for loop:0 < n\n  p0[loop:0] = f32(1)\n"),
            of("a", "for loop:0 < n\n  p0[0] = f32(1)\n"));
  // Nodes that no statement uses are ignored.
  EXPECT_EQ(one, of("a", "%0 = load f32 p0[0]\np0[0] = f32(1)\n"));
}

TEST(KernelText, RefusesByLineAndSaysWhatIsExpected) {
  struct Bad {
    std::string_view text, message;
  };
  const Bad list[] = {
      {"", "line 1: expected 'kernel ', found the end of the line"},
      {"kernel k\nsize n 5..1\n", "line 2: an upper bound must be from 5 to"},
      {"kernel k\nsize n 0..9\nsize n 0..9\n", "line 3: size n is given twice"},
      {"kernel k\np1: f32[2] strides [1]\n", "line 2: 'p1' out of order: the next number is 0"},
      {"kernel k\np0: f32[2] strides [1,2]\n", "line 2: 1 sizes, but 2 strides"},
      {"kernel k\np0: f32[-2] strides [1]\n", "line 2: a size must not be negative, got -2"},
      {"kernel k\np0: f31[2] strides [1]\n", "line 2: unknown dtype 'f31'"},
      {"kernel k\np0: f32[m] strides [1]\n", "line 2: in 'm': 'm' is not known here"},
      {"kernel k\np0: group f32 x 8 at 4\n", "memory starts at a multiple of 64 bytes, got 4"},
      {"kernel k\nt0: tile f32 0x4\n", "line 2: the rows of a tile must be from 1"},
      {"kernel k\nt0: tile f32 60000x60000\n", "the columns of a tile must be from 1 to 1"},
      {"kernel k\np0[0] = f32(1)\n", "line 2: unknown parameter p0; there is none"},
      {"kernel k\np0: f32[2] strides [1]\np1[0] = f32(1)\n",
       "line 3: unknown parameter p1; there is p0 alone"},
      {"kernel k\nt0: tile f32 1x1\nt1: tile f32 1x1\nt5 = f32(1) columns 1\n",
       "unknown tile t5; there are t0 to t1"},
      {"kernel k\nr0 = f32(1)\n", "line 2: register r0 is not declared above"},
      {"kernel k\nvar r0: f32 = f64(1)\n", "line 2: r0 is f32, its value is f64"},
      {"kernel k\nvar r0: f32 = f32(1x)\n", "line 2: '1x' is not a number"},
      {"kernel k\nvar r0: f32 = %0\n", "line 2: %0 is not defined"},
      {"kernel k\n%1 = add f32(1) f32(2)\n", "values are numbered in order: the next one is %0"},
      {"kernel k\n%0 = add f32(1)\n", "line 2: add"},
      {"kernel k\n%0 = add f32(1) f64(2)\n", "line 2: add"},
      {"kernel k\n%0 = frobnicate f32(1)\n", "line 2: unknown operation 'frobnicate'"},
      {"kernel k\nfor loop:0 < 4\n  for loop:0 < 4\n", "line 3: loop:0 is open already"},
      {"kernel k\ngroup loop:0 < 4*loop:1\n", "'loop:1' is not known here"},
      {"kernel k\nsize n 0..9\ngroup loop:0 < n\n", "the extent of this loop must be a number"},
      {"kernel k\nfor loop:0 < (\n", "line 2: in '('"},
      {"kernel k\nfor loop:0 < floor_div(4,0)\n", "line 2: in 'floor_div(4,0)'"},
      {"kernel k\nfor loop:0 < 99999999999999999999\n", "line 2: in '99999999999999999999'"},
      {"kernel k\nbarrier\n  barrier\n", "only loops, 'if' and 'intrinsic' have a body"},
      {"kernel k\nbarrier\nelse\n", "line 3: 'else' without 'if'"},
      {"kernel k\nfor loop:0 < 4\n      barrier\n", "line 3: indented deeper"},
      {"kernel k\nbarrier now\n", "line 2: expected the end of the line, found ' now'"},
      {"kernel k\n   barrier\n", "line 2: indented by 3 spaces"},
      {"kernel k\nif f32(1)\n", "line 2: a condition is bool, not f32"},
      {"kernel k\nt0: tile f32 2x2\nt0 = f32(0) columns 3\n", "t0 has 2 columns, not 3"},
      {"kernel k\np0: f32[9] strides [1]\nt0: tile f32 2x2\nt0 = p0[0; 0; 1] columns 2\n",
       "t0 has 2 rows, the window has 1"},
      {"kernel k\np0: f16[9] strides [1]\n%0 = load f32 p0[0]\n", "p0 holds f16, not f32"},
      {"kernel k\nwhatever\n", "line 2: expected a statement, found 'whatever'"},
  };
  for (const Bad& bad : list) {
    try {
      parse_kernel(bad.text);
      ADD_FAILURE() << "accepted: " << bad.text;
    } catch (const UserError& e) {
      EXPECT_NE(std::string_view(e.what()).find(bad.message), std::string_view::npos)
          << bad.text << e.what();
    }
  }
}

// Sizes that are large enough to show it are not run, so bounds must prove it.
TEST(KernelText, APositionMustFitItsRegister) {
  const auto kernel = [](std::int64_t rows, std::string_view dtype) {
    const std::int64_t elements = rows * 70'000;
    return parse_kernel(cat("kernel k\np0: f32[", elements, "] strides [1]\np1: f32[", rows,
                            "] strides [1] written\nchunks ", rows, "\ngrid loop:0 < ", rows,
                            "\n  %0 = cast ", dtype, " i64(loop:0)\n  %1 = mul %0 ", dtype,
                            "(70000)\n  %2 = cast i64 %1\n  var r0: i64 in 0..", elements,
                            " = %2\n  %3 = load f32 p0[reg:0]\n  p1[loop:0] = %3\n"));
  };
  EXPECT_NO_THROW(check(kernel(30'000, "i32")));
  EXPECT_NO_THROW(check(kernel(31'000, "i64")));
  try {
    check(kernel(31'000, "i32"));
    FAIL() << "positions up to 2'169'930'000 are computed in 32 bits";
  } catch (const UserError& e) {
    EXPECT_NE(std::string_view(e.what()).find("is computed in i32"), std::string_view::npos)
        << e.what();
  }
}

// Text with a part removed is refused or is another kernel: no other exception is thrown.
TEST(KernelText, AnyPartMayBeMissing) {
  std::string text(every_statement.substr(0, every_statement.find("chunks")));
  text +=
      "chunks 4\ngrid loop:0 < m\n  %0 = load f32 p0[loop:0+2*n]\n  p1[loop:0] = f16(1)\n"
      "  t0 += p3[0; 0,1,2,3; 1] * p3[0; 64] in groups of 2 k < n columns 16\n";
  for (std::size_t i = 0; i < text.size(); ++i)
    for (std::size_t length : {1, 7}) {
      std::string cut = text;
      cut.erase(i, length);
      try {
        expect_round_trip(parse_kernel(cut));
      } catch (const UserError&) {
      }
    }
}

}  // namespace

}  // namespace hone::test
