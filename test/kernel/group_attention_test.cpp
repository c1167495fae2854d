// Attention for machines whose threads run in groups, in the interpreter, against the reference:
// checks races, unwritten memory and barriers.
#include <gtest/gtest.h>

#include "../codegen/cases.h"
#include "kernel/groups/attention.h"
#include "kernel/groups/few_query_attention.h"
#include "kernel/groups/tensor_attention.h"
#include "kernel/nest/nest_candidate.h"
#include "machines.h"
#include "run.h"

namespace hone::test {

namespace {

TargetInfo tensor_target() {
  TargetInfo t;
  t.name = "groups";
  t.group_threads = 1024, t.group_bytes = 200 << 10;
  t.multiplies_halves = true;
  return t;
}

TargetInfo opaque_target() {
  TargetInfo t = tensor_target();
  t.has_opaque_tiles = true, t.group_bytes = 40 << 10;
  return t;
}

std::optional<Candidate> built(const Function& f, const Tuning& tuning,
                               const TargetInfo& target = tensor_target()) {
  return tensor_attention_candidate(spec_of(f), target, tuning, [&](const GroupSpec& step) {
    return nest_candidate(step, target);
  });
}

Function attention_of(const std::vector<Type>& operands, Attrs attrs, double scale = 0.3) {
  Function f;
  Values values;
  for (const Type& t : operands) values.push_back(f.add_param(t, cat("x", values.size())));
  attrs.set("scale", scale);
  f.add_result(ops::attention(values, std::move(attrs)), "y");
  return f;
}

void expect_agrees(const Function& f, const std::optional<Candidate>& candidate, std::int64_t n,
                   std::int64_t m) {
  ASSERT_TRUE(candidate) << print(f);
  std::string printed;
  for (const Candidate::Step& s : candidate->steps) {
    const Kernel& k = std::get<Kernel>(s.what);
    printed = print(k);
    ASSERT_EQ(print(parse_kernel(printed)), printed);
    ASSERT_EQ(hash(parse_kernel(printed)), hash(k));
  }
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < f.params().size(); ++i) {
    Type t = f.param(i).type();
    for (Dim& d : t.shape.dims)
      d = d.substitute([&](const Dim& s) { return std::optional<Dim>(s.name() == "n" ? n : m); });
    inputs.push_back(random_array(t, i + 1));
  }
  SCOPED_TRACE(cat(print(f), " n=", n, " m=", m));
  std::vector<Array> got;
  ASSERT_NO_THROW(got = interpret_candidate(*candidate, f, inputs, all_checks)) << printed;
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison r = accept(got[i], strict[i], wide[i]);
    EXPECT_TRUE(r.ok) << r;
  }
}

const Dim n = Dim::symbol("n", 0, 4096), m = Dim::symbol("m", 0, 4096);

Type half(Dims dims, DType t = DType::f16) { return Type(t, Shape(std::move(dims))); }

// With tensor tiles, opaque ones, and tiles of f32.
std::vector<Candidate> all_of(const Function& f) {
  std::vector<Candidate> out = {
      built(f, {{"rows", 16}, {"subgroups", 1}, {"keys", 32}}).value(),
      group_attention_candidate(spec_of(f), tensor_target(), {{"threads", 32}, {"keys", 16}})
          .value()};
  for (const std::int64_t keys : {16, 32})
    if (f.param(0).type().dtype == DType::f16)
      out.push_back(
          built(f, {{"rows", 32}, {"subgroups", 1}, {"keys", keys}}, opaque_target()).value());
  return out;
}

TEST(GroupAttention, TakesEveryForm) {
  struct Form {
    std::vector<Type> operands;
    Attrs attrs;
  };
  const Form forms[] = {
      {{half({2, n, 16}), half({2, m, 16}), half({2, m, 32})}, {}},
      {{half({n, 24}), half({m, 24}), half({m, 40})}, {}},
      {{half({n, 13}), half({m, 13}), half({m, 9})}, {}},
      {{half({2, n, 16}), half({2, m, 16}), half({2, m, 16})}, {{"causal", Dims{0}}}},
      {{half({2, n, 16}), half({2, m, 16}), half({2, m, 16})}, {{"causal", Dims{m - n}}}},
      {{half({2, 4, n, 16}), half({2, 2, m, 16}), half({2, 2, m, 16})}, {{"softcap", 1.5}}},
      {{half({2, n, 16}), half({2, m, 16}), half({2, m, 16}), half({2, n, m})}, {}},
      {{half({2, n, 16}), half({2, m, 16}), half({2, m, 16}), half({2, 1, m})}, {}},
      {{half({2, n, 16}), half({2, m, 16}), half({2, m, 16}), Type(DType::b1, {n, m})},
       {{"masked", -20.0}}},
      {{half({n, 16}, DType::bf16), half({m, 16}, DType::bf16), half({m, 16}, DType::bf16)}, {}},
  };
  for (const Form& form : forms) {
    const Function f = attention_of(form.operands, form.attrs);
    for (const Candidate& c : all_of(f))
      for (const std::array<std::int64_t, 2> size : {std::array<std::int64_t, 2>{0, 3},
                                                     {3, 0},
                                                     {1, 1},
                                                     {16, 32},
                                                     {17, 33},
                                                     {33, 70},
                                                     {40, 31}})
        expect_agrees(f, c, size[0], size[1]);
  }
}

TEST(GroupAttention, TakesEveryTuning) {
  const Function f = attention_of({half({1, 150, 32}), half({1, 140, 32}), half({1, 140, 32})},
                                  {{"causal", Dims{0}}});
  const std::vector<Tuning> space = tensor_attention_space(spec_of(f), tensor_target());
  EXPECT_GT(space.size(), 10u);
  for (const Tuning& t : space) expect_agrees(f, built(f, t), 0, 0);
  const std::vector<Tuning> opaque = tensor_attention_space(spec_of(f), opaque_target());
  EXPECT_GT(opaque.size(), 3u);
  for (const Tuning& t : opaque) expect_agrees(f, built(f, t, opaque_target()), 0, 0);
  const Type x = f32({1, 150, 33});
  const Function wide = attention_of({x, x, x}, {{"causal", Dims{0}}});
  const std::vector<Tuning> more = group_attention_space(spec_of(wide), tensor_target());
  EXPECT_GT(more.size(), 10u);
  for (const Tuning& t : more)
    expect_agrees(wide, group_attention_candidate(spec_of(wide), tensor_target(), t), 0, 0);
}

std::optional<Candidate> of_few(const Function& f, const Tuning& tuning) {
  return few_query_attention_candidate(
      spec_of(f), tensor_target(), tuning,
      [](const GroupSpec& step) { return nest_candidate(step, tensor_target()); });
}

TEST(FewQueryAttention, TakesEveryForm) {
  struct Form {
    std::vector<Type> operands;
    Attrs attrs;
  };
  const Dim least = Dim::symbol("m", 1, 4096);
  const Form forms[] = {
      {{half({2, 1, 16}), half({2, m, 16}), half({2, m, 32})}, {}},
      {{half({2, 1, 16}), half({2, least, 16}), half({2, least, 16})}, {}},
      {{half({3, 40}), half({m, 40}), half({m, 24})}, {}},
      {{half({1, 13}), half({least, 13}), half({least, 9})}, {}},
      {{half({2, 3, 16}), half({2, m, 16}), half({2, m, 16})}, {{"causal", Dims{m - 3}}}},
      {{half({2, 2, 16}), half({2, 50, 16}), half({2, 50, 16})}, {{"causal", Dims{47}}}},
      {{half({2, 4, 1, 16}), half({2, 2, m, 16}), half({2, 2, m, 16})}, {{"softcap", 1.5}}},
      {{half({2, 10, 1, 16}), half({2, 1, m, 16}), half({2, 1, m, 16}), half({1, m})}, {}},
      {{half({6, 3, 16}), half({2, m, 16}), half({2, m, 16}), half({6, 3, m})}, {}},
      {{half({2, 7, 16}), half({2, least, 16}), half({2, least, 16}), Type(DType::b1, {1, least})},
       {{"masked", -20.0}}},
      {{half({1, 16}, DType::bf16), half({m, 16}, DType::bf16), half({m, 16}, DType::bf16)}, {}},
      {{f32({2, 1, 32}), f32({2, least, 32}), f32({2, least, 32})}, {}},
  };
  for (const Form& form : forms) {
    const Function f = attention_of(form.operands, form.attrs);
    const bool has_parts = f.param(1).type().shape[-2].low() >= 1;
    for (const std::int64_t parts : {1, 3}) {
      const auto c = of_few(f, {{"threads", 32}, {"unroll", 2}, {"parts", parts}});
      ASSERT_TRUE(c) << print(f);
      EXPECT_EQ(c->steps.size(), parts > 1 && has_parts ? 2u : 1u);
      for (const std::int64_t size : {0, 1, 2, 31, 32, 33, 70})
        if (size > 0 || !has_parts) expect_agrees(f, c, 0, size);
    }
  }
}

TEST(FewQueryAttention, TakesEveryTuning) {
  const Type q = half({3, 1, 64}), k = half({3, 1024, 64});
  const Function f = attention_of({q, k, k, half({1, 1024})}, {});
  const std::vector<Tuning> space = few_query_attention_space(spec_of(f), tensor_target());
  EXPECT_GT(space.size(), 5u);
  for (const Tuning& t : space) expect_agrees(f, of_few(f, t), 0, 0);
}

// Fully masked rows are NaN, and infinite values count even if their weight is 0.
TEST(FewQueryAttention, KeepsWhatIsNoNumber) {
  const Type q = half({2, 1, 16}), k = half({2, 40, 16});
  const Function f = attention_of({q, k, k, Type(DType::b1, {2, 1, 40})}, {});
  for (const std::int64_t parts : {1, 2}) {
    const auto c = of_few(f, {{"threads", 32}, {"unroll", 1}, {"parts", parts}});
    ASSERT_TRUE(c);
    EXPECT_EQ(c->steps.size(), static_cast<std::size_t>(parts));
    std::vector<Array> inputs = {random_array(q, 1), random_array(k, 2), random_array(k, 3),
                                 Array::zeros(DType::b1, {2, 1, 40})};
    for (std::int64_t i = 40; i < 60; ++i) inputs[3].set_real(i, 1);
    inputs[2].set_real(40 * 16 + 30 * 16 + 5, INFINITY);
    const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                            wide = evaluate_wide(f, inputs, Mode::wide);
    const std::vector<Array> got = interpret_candidate(*c, f, inputs, all_checks);
    const Comparison r = accept(got[0], strict[0], wide[0]);
    EXPECT_TRUE(r.ok) << r;
    EXPECT_TRUE(std::isnan(got[0].real(3)));
    EXPECT_TRUE(std::isnan(got[0].real(16 + 5)));
    EXPECT_FALSE(std::isnan(got[0].real(16 + 6)));
  }
}

// Must not divide by zero.
TEST(FewQueryAttention, OfNoHeadsIsNothing) {
  for (const Dims& lead : {Dims{0}, Dims{0, 0}, Dims{2, 0}}) {
    const auto rows = [&](std::int64_t count) {
      Dims dims = lead;
      dims.push_back(count), dims.push_back(16);
      return Type(DType::f16, Shape(dims));
    };
    const Function f = attention_of({rows(3), rows(40), rows(40)}, {});
    if (const auto c = of_few(f, {})) expect_agrees(f, c, 0, 0);
  }
}

// If the queries fill a block, tiles are faster.
TEST(FewQueryAttention, LeavesManyQueriesToTiles) {
  const Type q = half({2, 8, 16}), k = half({2, 40, 16});
  EXPECT_FALSE(of_few(attention_of({q, k, k}, {}), {}));
  EXPECT_FALSE(of_few(attention_of({half({2, n, 16}), k, k}, {}), {}));
}

// Rows of usual length must also fit in small group memories.
TEST(GroupAttention, FitsSmallMemories) {
  TargetInfo small = tensor_target();
  small.group_bytes = 32 << 10, small.group_threads = 128;
  for (const std::int64_t row : {16, 64, 128}) {
    const Type x = f32({70, row});
    const Function f = attention_of({x, x, x}, {});
    const auto c = group_attention_candidate(spec_of(f), small);
    expect_agrees(f, c, 0, 0);
    std::int64_t bytes = 0;
    for (const KernelMemory& m : std::get<Kernel>(c->steps[0].what).memory)
      if (m.scope == MemoryScope::group) bytes = (m.offset + m.elements * Dim(4)).number();
    EXPECT_LE(bytes, small.group_bytes);
  }
}

// Without any one of its barriers, or with one among neighbours in place of one of the whole group,
// the interpreter finds a race or memory that was not written.
TEST(GroupAttention, NeedsItsBarriers) {
  const Type x = half({80, 64});
  const Function f = attention_of({x, x, x}, {});
  const Candidate c = built(f, {{"subgroups", 2}, {"keys", 16}}, opaque_target()).value();
  const std::vector<Array> inputs = {random_array(x, 1), random_array(x, 2), random_array(x, 3)};
  const std::string text = print(std::get<Kernel>(c.steps.at(0).what)), word = "barrier",
                    near = " of 32";
  const auto is_found = [&](const std::string& changed) {
    Candidate broken = c;
    broken.steps[0].what = parse_kernel(changed);
    try {
      interpret_candidate(broken, f, inputs, all_checks);
      return false;
    } catch (const UserError& e) {
      const std::string_view why = e.what();
      return why.find("a race") != why.npos || why.find("never written") != why.npos;
    }
  };
  EXPECT_FALSE(is_found(text));
  // By the meaning of load_matrices and store_matrices, a thread stores the elements that it has
  // loaded, so the barrier between the two seems unnecessary. Hardware may distribute the elements
  // in another way.
  int of_group = 0, of_neighbours = 0, unseen = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
    const std::size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
    const bool is_near = text.substr(at + word.size(), near.size()) == near;
    const std::string around = text.substr(begin, 400);
    if (!is_found(std::string(text).erase(begin, end + 1 - begin))) {
      const std::string next = text.substr(end + 1, text.find('\n', end + 1) - end - 1);
      EXPECT_TRUE(next.ends_with(" intrinsic store_matrices")) << around;
      ++unseen;
    }
    if (!is_near) {
      EXPECT_TRUE(is_found(std::string(text).insert(end, near))) << around;
    }
    ++(is_near ? of_neighbours : of_group);
  }
  EXPECT_EQ(of_group, 5);
  EXPECT_EQ(of_neighbours, 23);
  EXPECT_EQ(unseen, 3);
}

// A mask computed from positions alone is not loaded; it determines which blocks of keys are
// skipped.
Function windowed(const Dim& queries, const Dim& keys, std::int64_t window, bool is_added) {
  Function f;
  const Type q = half({2, queries, 16}), k = half({2, keys, 16});
  Values in = {f.add_param(q, "q"), f.add_param(k, "k"), f.add_param(k, "v")};
  const Shape scores{queries, keys};
  const Value query = iota_value(f.graph(), DType::i64, scores, 0),
              key = iota_value(f.graph(), DType::i64, scores, 1);
  Value mask = ops::bit_and(ops::le(key, query), ops::lt(query - double(window), key));
  if (is_added) {
    const Value zero = broadcast_to(scalar(f.graph(), 0, DType::f16), scores),
                none = broadcast_to(scalar(f.graph(), -INFINITY, DType::f16), scores);
    mask = ops::select(mask, zero, none);
  }
  in.push_back(mask);
  f.add_result(ops::attention(in, {{"scale", 0.4}}), "y");
  return f;
}

TEST(GroupAttention, SkipsKeysOutsideOfAWindow) {
  const Function f = windowed(n, m, 20, false);
  const auto c = built(f, {{"rows", 16}, {"subgroups", 1}, {"keys", 32}});
  ASSERT_TRUE(c);
  // Lengths up to 4096 are many keys: a first step inspects their values.
  ASSERT_EQ(c->steps.size(), 2u);
  EXPECT_EQ(c->temporaries.at(0).type.dtype, DType::f32);
  const Function known = windowed(90, 90, 20, false);
  const auto small = built(known, {{"rows", 16}, {"subgroups", 1}, {"keys", 16}});
  ASSERT_TRUE(small);
  EXPECT_EQ(small->steps.size(), 1u);
  for (const std::array<std::int64_t, 2> size :
       {std::array<std::int64_t, 2>{1, 1}, {100, 100}, {130, 70}, {70, 130}})
    expect_agrees(f, c, size[0], size[1]);
  expect_agrees(known, small, 0, 0);
  expect_agrees(known, built(known, {{"keys", 16}}, opaque_target()), 0, 0);
  expect_agrees(
      known, group_attention_candidate(spec_of(known), tensor_target(), {{"threads", 32}}), 0, 0);
}

// An added mask may meet an infinite score, so nothing is skipped.
TEST(GroupAttention, AddsMasksOfNumbersEverywhere) {
  const Function f = windowed(n, m, 20, true);
  const auto c = built(f, {{"rows", 16}, {"subgroups", 1}, {"keys", 32}});
  ASSERT_TRUE(c);
  EXPECT_EQ(c->steps.size(), 1u);
  expect_agrees(f, c, 70, 80);
}

// If the number of threads is not a multiple of the vectors of a row, some threads have no vector.
TEST(GroupAttention, RowsOfAnyWidthMayBeHidden) {
  for (const std::int64_t width : {48, 80, 112}) {
    const Function f =
        attention_of({half({97, 40}), half({83, 40}), half({83, width})}, {{"causal", Dims{0}}});
    for (const Candidate& c : all_of(f)) expect_agrees(f, c, 0, 0);
  }
}

// Infinite values that are masked for all queries of a group still give NaN, as 0 * inf does.
TEST(GroupAttention, HiddenValuesThatAreInfiniteCount) {
  for (const Dim& length : {Dim(96), Dim::symbol("n", 1, 4096)})
    for (const std::int64_t place : {2, 50, 95}) {
      const Type t = half({length, 16});
      const Function f = attention_of({t, t, t}, {{"causal", Dims{0}}});
      const auto c = built(f, {{"rows", 16}, {"subgroups", 1}, {"keys", 16}});
      ASSERT_TRUE(c);
      EXPECT_EQ(c->steps.size(), length.is_number() ? 1u : 2u);
      std::vector<Array> inputs;
      for (std::uint64_t i = 0; i < 3; ++i) inputs.push_back(random_array(half({96, 16}), i));
      inputs[2].set_real(place * 16 + 5, INFINITY);
      const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                              wide = evaluate_wide(f, inputs, Mode::wide);
      for (const Candidate& each :
           {*c, built(f, {{"subgroups", 1}}, opaque_target()).value(),
            *group_attention_candidate(spec_of(f), tensor_target(), {{"threads", 32}})}) {
        const std::vector<Array> got = interpret_candidate(each, f, inputs, all_checks);
        const Comparison r = accept(got[0], strict[0], wide[0]);
        EXPECT_TRUE(r.ok) << r;
      }
    }
}

}  // namespace

}  // namespace hone::test
