// Strings through compiled plans, also from a file: bytes go in, string numbers come out.
#include "type/text.h"

#include "ops/common.h"
#include "ops/host.h"
#include "plan/plan_file.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;
using Texts = std::vector<std::string_view>;

Value literal(Function& f, const Texts& texts) {
  std::string bytes;
  std::vector<std::int64_t> ends;
  for (std::string_view t : texts) {
    bytes += t;
    ends.push_back(std::ssize(bytes));
  }
  Value all = constant(f.graph(), Array::of<char>(DType::u8, {std::ssize(bytes)}, bytes));
  return ops::text_literal(all, constant(f.graph(), Array::from_ints(ends)));
}

Value first(Value texts) { return take_axis(texts, 0, 0); }

Texts texts_of(const Array& a) {
  Texts out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(text_at(a, i));
  return out;
}

// "a" becomes "A!", others "(OTHERS)!"; then rows and columns are swapped and padded.
Function function_of(const Dim& n) {
  Function f;
  Value x = f.add_param(Type(DType::text, {n, 2}), "x");
  const Shape shape = x.shape();
  Value a = broadcast_to(first(literal(f, {"a"})), shape);
  Value other = broadcast_to(first(literal(f, {"(\xc3\xa9)"})), shape);
  Value y = ops::select(Values{ops::eq(x, a), x, other});
  y = ops::text_concat(ops::text_case(y, {{"kind", std::string("upper")}}),
                       broadcast_to(first(literal(f, {"!"})), shape));
  f.add_result(ops::text_match(y, first(literal(f, {".!"}))), "short");
  Value padding = constant(f.graph(), Array::zeros(DType::text, {}));
  f.add_result(pad_with(transpose_matrix(y), padding, {0, 1}, {0, 0}), "y");
  f.add_result(ops::text_pieces(Values{x, first(literal(f, {","}))}, {{"count", std::int64_t{-1}}}),
               "pieces");
  f.add_result(ops::text_split(Values{x, first(literal(f, {","}))},
                               {{"dims", Dims{2}}, {"count", std::int64_t{1}}}),
               "split");
  return f;
}

void expect_answers(const std::vector<Array>& got) {
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(texts_of(got[1]), (Texts{"", "A!", "(\xc3\x89)!", "", "(\xc3\x89)!", "A!"}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got[0].integer(i), i == 0 || i == 3);
  const std::vector<std::int64_t> counts = {1, 3, 1, 1};
  EXPECT_EQ(got[2], Array::of<std::int64_t>(DType::i64, {2, 2}, counts));
  EXPECT_EQ(texts_of(got[3]), (Texts{"a", "", "b", "c,d", "", "", "a", ""}));
}

TEST(CompiledText, RunsFromMemoryAndFromAFile) {
  EmptyCache cache;
  const fs::path file = cache.directory() / "text.hone";
  for (const Dim& n : {Dim(2), Dim::symbol("n", 1, 100)})
    for (const char* strategy : {"cpu", "auto"}) {
      const Function f = function_of(n);
      const Plan compiled = compile({"text", {{{}, f}}, {}}, {.strategy = strategy});
      write_plan(file, compiled);
      for (bool from_file : {false, true}) {
        forget_texts();  // earlier string numbers mean nothing to a plan
        const Array x = text_array({2, 2}, Texts{"a", "b,c,d", "", "a"});
        expect_answers(evaluate(f, {{x}}));
        auto plan = std::make_shared<const Plan>(from_file ? read_plan(file) : compiled);
        std::unique_ptr<Session> session = session_of(plan);
        for (int run = 0; run < 2; ++run) expect_answers(session->run({{x}}));
      }
    }
}

TEST(CompiledText, UnknownNumbersAndTooManyPiecesAreRefused) {
  const Plan plan = compile({"text", {{{}, function_of(2)}}, {}}, {.strategy = "cpu"});
  std::unique_ptr<Session> session = session_of(std::make_shared<const Plan>(plan));
  Array unknown = Array::zeros(DType::text, {2, 2});
  unknown.set_integer(1, std::int64_t{1} << 60);
  try {
    session->run({{unknown}});
    FAIL() << "ran";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("is not a string of this process"), std::string::npos)
        << e.what();
  }
  const Array x = text_array({2, 2}, Texts{"a", "b,c,d", "", "a"});
  expect_answers(session->run({{x}}));
}

// A host function cannot write a column of a larger result.
TEST(CompiledText, LiteralsBesideOthersInRows) {
  EmptyCache cache;
  Function f;
  const Value x = f.add_param(Type(DType::text, {8, 2}), "x");
  const Value parts[] = {x,
                         reshape_to(literal(f, {"a", "b", "c", "d", "e", "f", "g", "h"}), {8, 1})};
  f.add_result(concat_values(parts, 1), "y");
  const Plan plan =
      compile({"columns", {{{}, f}}, {}}, {.strategy = "cpu", .verification = Verification::model});
  const Array given = text_array({8, 2}, Texts(16, "x"));
  EXPECT_EQ(session_of(std::make_shared<const Plan>(plan))->run({{given}}), evaluate(f, {{given}}));
}

TEST(CompiledText, TextFormHoldsBytes) {
  const Function f = function_of(2);
  std::vector<Array> arrays;
  const std::string text = print(f, &arrays);
  EXPECT_NE(text.find("text_literal"), std::string::npos);
  EXPECT_EQ(print(parse(text, find_op, arrays)), print(f));
}

}  // namespace
}  // namespace hone
