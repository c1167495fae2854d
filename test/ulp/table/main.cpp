// Writes docs/ulp.md: `ulp_table > docs/ulp.md`; the rows of some operations: `ulp_table NAME...`.
#include <algorithm>
#include <cstdio>

#include "test/ulp/ulp.h"

namespace hone::ulp {
namespace {

constexpr std::uint64_t step = 1021;  // of f32: 4.2 million inputs

constexpr const char* head = R"(# Errors of functions of one number

The largest error of each compiled operation in units in the last place of the result's dtype, compared
with the C library in double. All 65,536 inputs of f16 and bf16 are tried, and 4.2 million of f32 (every
1021st bit pattern); the last column is the f32 input with the largest error. Each figure is the larger
of two targets, x86-64-v3 and the processor that made this table. An exact result that is rounded once
has an error of 0.5. `ulp_table`, a program of the tests, writes this page; `test_ulp` holds the limits.

| operation | limit | f16 | bf16 | f32 | at |
|---|---|---|---|---|---|
)";

Error worst_of(const Unary& u, DType t) {
  const Error a = measure(u, t, step, "x86-64-v3"), b = measure(u, t, step, "native");
  return a.worst > b.worst ? a : b;
}

}  // namespace
}  // namespace hone::ulp

int main(int argc, char** argv) {
  using namespace hone;
  using namespace hone::ulp;
  std::fputs(head, stdout);
  for (const Unary& u : unaries()) {
    if (argc > 1 && std::find(argv + 1, argv + argc, u.op->name) == argv + argc) continue;
    const Error f32 = worst_of(u, DType::f32);
    std::printf("| %s | %g | %.3f | %.3f | %.3f | %.9g |\n", std::string(u.op->name).c_str(),
                u.limit, worst_of(u, DType::f16).worst, worst_of(u, DType::bf16).worst, f32.worst,
                f32.at);
    std::fflush(stdout);
  }
}
