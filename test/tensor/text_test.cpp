// Programs as text: test/tensor/cases/NAME.txt is what Program::text() gives for the program of
// that name here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "tensor/control.h"
#include "tensor/functions.h"
#include "tensor/grad.h"
#include "tensor/network.h"
#include "tensor/program.h"

namespace hone::test {
namespace {

struct NamedProgram {
  const char* name;
  std::function<void(Program&)> build;
};

const NamedProgram programs_as_text[] = {
    {"counter",
     [](Program& p) {
       const Variable n = p.variable("n", i64({}));
       p.entry("count", {}, [&] {
         n.set(n + 1);
         return Results{{"before", n}};
       });
       p.entry("read", {}, [&] { return Results{{"n", n}}; });
     }},
    {"learning_step",
     [](Program& p) {
       const Variable w = p.variable("w", f32({2, 3}), 0.5);
       p.entry("train", {{"x", f32({dim("n", 1, 8), 3})}, {"y", f32({dim("n", 1, 8), 2})}},
               [&](const Tensor& x, const Tensor& y) {
                 const Tensor loss = mse_loss(linear(x, w), y);
                 w.set(w - 0.1 * grad(loss, Variables{w})[0]);
                 return Results{{"loss", loss}};
               });
     }},
    {"classified",
     [](Program& p) {
       p.entry("f", {{"x", f32({4, 3})}, {"label", i64({4})}},
               [](const Tensor& x, const Tensor& label) {
                 const Tensor loss = cross_entropy(x, label);
                 return Results{{"loss", loss}, {"dx", grad(loss, Tensors{x})[0]}};
               });
     }},
    {"checkpointed",
     [](Program& p) {
       p.entry("f", {{"x", f32({3})}}, [](const Tensor& x) {
         const Tensor y =
             checkpoint([](const Tensors& in) { return Tensors{exp(sin(in[0]))}; }, {x})[0];
         return Results{{"dx", grad(sum(y), Tensors{x})[0]}};
       });
     }},
    {"stopped",
     [](Program& p) {
       p.entry("f", {{"x", f32({3})}}, [](const Tensor& x) {
         return Results{{"dx", grad(sum(x * stop_gradient(exp(x))), Tensors{x})[0]}};
       });
     }},
    {"branched",
     [](Program& p) {
       p.entry("f", {{"x", f32({3})}}, [](const Tensor& x) {
         return Results{{"y", if_else(
                                  sum(x) > 0.0, [&] { return Tensors{x * 2.0}; },
                                  [&] { return Tensors{-x}; })[0]}};
       });
     }},
};

TEST(Text, ProgramsAreTheTextTheyShould) {
  const std::filesystem::path folder = HONE_SOURCE_DIR "/test/tensor/cases";
  std::set<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator(folder)) files.insert(f.path().stem());
  for (const NamedProgram& n : programs_as_text) {
    Program p(n.name);
    n.build(p);
    std::stringstream expected;
    expected << std::ifstream(folder / cat(n.name, ".txt")).rdbuf();
    const std::filesystem::path got =
        std::filesystem::path(testing::TempDir()) / cat(n.name, ".txt");
    if (p.text() != expected.str()) std::ofstream(got) << p.text();
    EXPECT_EQ(p.text(), expected.str()) << "what the program gives now is in " << got;
    files.erase(n.name);
  }
  EXPECT_TRUE(files.empty()) << *files.begin() << ".txt is of no program";
}

}  // namespace
}  // namespace hone::test
