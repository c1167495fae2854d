// In-place updates of parts of a value: bytes moved, values that must not be overwritten, and state
// that loops carry.
#include "schedule/updates.h"

#include "simulate.h"

namespace hone {
namespace {

constexpr std::int64_t rows = 512, width = 128;  // 256 KiB
const Type whole = f32({rows, width}), part = f32({1, width});
constexpr std::int64_t part_bytes = width * 4, whole_bytes = rows * part_bytes;

// Only the part and the two starts are read and written.
constexpr std::int64_t most_for_one = 2 * part_bytes + 64;

Value zeros(Graph& graph, std::int64_t n) {
  return broadcast_to(constant(graph, Array::scalar_int(0, DType::i64)), {n});
}
Value starts(Value row) {
  return concat_values(Values{reshape_to(row, {1}), zeros(row.graph(), 1)}, 0);
}
Value put(Value into, Value what, Value row) {
  return ops::dynamic_update(Values{into, what, starts(row)});
}

struct Cache {
  Function f;
  Value cache = f.add_param(whole, "cache", true), next = f.add_param(part, "next"),
        row = f.add_param(i64({}), "row");
};

TEST(Updates, ADonatedCacheMovesOnlyWhatChanges) {
  Cache c;
  c.f.add_result(put(c.cache, c.next, c.row), "cache");
  Simulated s = simulate(c.f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(s.copies, 0);
  EXPECT_LE(s.bytes, most_for_one);
}

// Caches of keys and values: one kernel changes both.
TEST(Updates, IndependentUpdatesAreOneGroup) {
  Cache c;
  const Value other = c.f.add_param(whole, "other", true);
  c.f.add_result(put(c.cache, c.next, c.row), "cache");
  c.f.add_result(put(other, c.next * 2.0, c.row), "other");
  const Simulated s = simulate(c.f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(s.schedule.groups.size(), 1u);
  EXPECT_EQ(s.copies, 0);
  EXPECT_LE(s.bytes, 2 * most_for_one);
}

// One update depends on the other; the old value is read, so that update waits for its reader; or
// the parts differ.
TEST(Updates, OthersStayApart) {
  for (const int kind : {0, 1, 2}) {
    SCOPED_TRACE(kind);
    Cache c;
    const Value other = c.f.add_param(whole, "other", true);
    const Value first = put(c.cache, c.next, c.row);
    Value what = c.next * 2.0;
    if (kind == 0) what = reshape_to(ops::reduce_sum(first, {{"axes", Dims{0}}}), part.shape.dims);
    if (kind == 2) what = c.f.add_param(f32({2, width}), "two");
    c.f.add_result(first, "cache");
    c.f.add_result(put(other, what, c.row), "other");
    if (kind == 1) c.f.add_result(first + other, "sum");
    const Simulated s = simulate(c.f);
    EXPECT_EQ(s.plan.main().result_alias[0], 0);
    EXPECT_EQ(s.plan.main().result_alias[1], 3);
    EXPECT_GE(s.schedule.groups.size(), 2u);
    EXPECT_EQ(s.copies, 0);
  }
}

TEST(Updates, ACacheThatIsKeptIsCopied) {
  Function f;
  Value cache = f.add_param(whole, "cache"), next = f.add_param(part, "next"),
        row = f.add_param(i64({}), "row");
  f.add_result(put(cache, next, row), "cache");
  EXPECT_GE(simulate(f).bytes, whole_bytes);
}

TEST(Updates, ChainsOfUpdatesShareOneBuffer) {
  Cache c;
  Value once = put(c.cache, c.next, c.row);
  Value twice = put(once, c.next * 2.0, c.row + integer_like(c.row, 1));
  c.f.add_result(put(twice, c.next * 3.0, c.row + integer_like(c.row, 2)), "cache");
  Simulated s = simulate(c.f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(s.copies, 0);
  EXPECT_LE(s.bytes, 8 * most_for_one);
}

// The old value is read by a group that could also run later.
TEST(Updates, RunsAfterReadersOfTheOldValue) {
  Cache c;
  Value changed = put(c.cache, c.next, c.row);
  c.f.add_result(changed, "cache");
  c.f.add_result(reduce_axes(ops::reduce_max, c.cache, {0}), "old");
  Simulated s = simulate(c.f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0, -1}));
  EXPECT_EQ(s.copies, 0);
}

// The group that reads the old value also needs the new one: the cache is copied.
TEST(Updates, NotWhenTheOldValueIsNeededAfterwards) {
  Cache c;
  Value changed = put(c.cache, c.next, c.row);
  Value sum = reduce_axes(ops::reduce_sum, changed, {0});
  c.f.add_result(changed, "cache");
  c.f.add_result(reduce_axes(ops::reduce_max, c.cache + broadcast_to(sum, c.cache.shape()), {1}),
                 "old");
  Simulated s = simulate(c.f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{-1, -1}));
}

// The part is computed from the rows that it replaces, shifted by one, so that order matters.
TEST(Updates, APartMadeOfWhatItReplaces) {
  Function f;
  Value cache = f.add_param(whole, "cache", true), row = f.add_param(i64({}), "row");
  Dims two = {8, width};
  Value now = ops::dynamic_slice(Values{cache, starts(row)}, {{"sizes", two}});
  f.add_result(put(cache, now * 2.0, row + integer_like(row, 1)), "cache");
  Simulated s = simulate(f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(s.copies, 0);
  EXPECT_LE(s.bytes, whole_bytes + 64 * part_bytes);
}

// Keys and values as halves of one flat buffer, each with a row changed.
TEST(Updates, SlicesOfOneFlatBuffer) {
  Function f;
  const Dim half = rows * width;
  Value flat = f.add_param(f32({half * Dim(2)}), "flat", true), k = f.add_param(part, "k"),
        v = f.add_param(part, "v"), row = f.add_param(i64({}), "row");
  Value keys = reshape_to(slice_axis(flat, 0, 0, half), whole.shape.dims),
        values = reshape_to(slice_axis(flat, 0, half, half), whole.shape.dims);
  keys = put(keys, k, row);
  values = put(values, v, row);
  Value scores = reduce_axes(ops::reduce_sum, keys * broadcast_to(k, keys.shape()), {1});
  f.add_result(concat_values(Values{reshape_to(keys, {half}), reshape_to(values, {half})}, 0),
               "flat");
  f.add_result(scores, "scores");
  Simulated s = simulate(f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0, -1}));
  EXPECT_EQ(s.copies, 0);
  EXPECT_LE(s.bytes, whole_bytes + 8 * part_bytes + rows * 4);
}

TEST(Updates, ScatterJoinsInPlace) {
  for (const char* kind : {"set", "add", "mul", "max", "min"}) {
    Function f;
    Value table = f.add_param(whole, "table", true), rows_changed = f.add_param(i64({3}), "rows"),
          change = f.add_param(f32({3, width}), "change");
    f.add_result(ops::scatter(Values{table, rows_changed, change},
                              {{"axis", 0}, {"kind", std::string(kind)}}),
                 "table");
    Simulated s = simulate(f);
    EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0})) << kind;
    EXPECT_EQ(s.copies, 0) << kind;
    EXPECT_LE(s.bytes, 9 * part_bytes + 64) << kind;
  }
}

// Temporaries are updated in place like donated parameters.
TEST(Updates, TemporariesAreUpdatedInPlace) {
  Function f;
  Value x = f.add_param(whole, "x"), next = f.add_param(part, "next"),
        row = f.add_param(i64({}), "row");
  Value made = ops::exp(x);
  Value a = put(made, next, row);
  f.add_result(dot_general(a, a, {}, {{0, 0}}));
  Simulated s = simulate(f);
  EXPECT_EQ(s.copies, 0);
  EXPECT_EQ(s.variant.devices[0].arena_bytes, Dim(whole_bytes));
}

// ---- loops

struct Loop {
  Function f;
  std::shared_ptr<Function> go = std::make_shared<Function>(), next = std::make_shared<Function>();
  Values operands;

  Values begin() {
    Values p;
    for (const Value& v : operands) {
      go->add_param(v.type(), "p");
      p.push_back(next->add_param(v.type(), "p"));
    }
    return p;
  }
  Value end(const Dim& steps) {
    go->add_result(ops::lt(go->param(0), size_value(go->graph(), steps, DType::i64)));
    return ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}});
  }
  Value zero() { return constant(f.graph(), Array::scalar_int(0, DType::i64)); }
  Value count(const Values& p) { return p[0] + integer_like(p[0], 1); }
};

// y[t] = h = tanh(w h + x[t]) over a sequence.
Simulated sequence(std::int64_t steps) {
  Loop l;
  const std::int64_t h = 32;
  const Type all = f32({steps, 1, h});
  Value x = l.f.add_param(all, "x"), w = l.f.add_param(f32({h, h}), "w"),
        first = l.f.add_param(f32({1, h}), "first");
  l.operands = {l.zero(), first, broadcast_to(scalar(l.f.graph(), 0, DType::f32), all.shape), x, w};
  Values p = l.begin();
  const Value at[] = {reshape_to(p[0], {1}), zeros(p[0].graph(), 2)};
  Value place = concat_values(at, 0);
  Value now = squeeze(ops::dynamic_slice(Values{p[3], place}, {{"sizes", Dims{1, 1, h}}}), {0});
  Value state = ops::tanh(dot_general(p[1], p[4], {}, {{1, 1}}) + now);
  l.next->add_result(l.count(p));
  l.next->add_result(state);
  l.next->add_result(ops::dynamic_update(Values{p[2], unsqueeze(state, {0}), place}));
  Value loop = l.end(steps);
  l.f.add_result(loop.result(2), "y");
  l.f.add_result(loop.result(1), "h");
  return simulate(l.f);
}

// The sequence is never copied, and each step moves the same number of bytes.
TEST(Updates, SequencesCostTheSameInEveryStep) {
  Simulated little = sequence(20), more = sequence(40), most = sequence(80);
  // The state, which the contraction reads.
  EXPECT_EQ(more.copies - little.copies, 20);
  EXPECT_EQ(most.copies - more.copies, 40);
  EXPECT_EQ(most.launches - more.launches, 2 * (more.launches - little.launches));
  const std::int64_t per_step = (more.bytes - little.bytes) / 20;
  EXPECT_NEAR(static_cast<double>(most.bytes - more.bytes) / 40, static_cast<double>(per_step),
              0.1 * static_cast<double>(per_step));
  EXPECT_LE(per_step, 20 << 10);
}

// Values that a loop exchanges need a third place; an unchanged value needs none.
TEST(Updates, LoopsExchangeAndKeepState) {
  Loop l;
  const Type t = f32({64});
  Value x = l.f.add_param(t, "x"), y = l.f.add_param(t, "y"), z = l.f.add_param(t, "z");
  l.operands = {l.zero(), x, y, z};
  Values p = l.begin();
  l.next->add_result(l.count(p));
  l.next->add_result(p[2]);
  l.next->add_result(p[1]);
  l.next->add_result(p[3]);
  Value loop = l.end(7);
  for (std::size_t i = 1; i < 4; ++i) l.f.add_result(loop.result(i));
  Simulated s = simulate(l.f);
  EXPECT_EQ(s.copies, 4 + 3 * 7);
}

// The second state is computed from the old value of the first one.
TEST(Updates, StateThatIsReadLaterIsNotOverwritten) {
  Loop l;
  const Type t = f32({6, 6});
  Value x = l.f.add_param(t, "x"), y = l.f.add_param(t, "y");
  l.operands = {l.zero(), x, y};
  Values p = l.begin();
  Value a = ops::tanh(p[1] + p[2]);
  Value b = ops::tanh(dot_general(p[1], a, {}, {{1, 0}}));
  l.next->add_result(l.count(p));
  l.next->add_result(a);
  l.next->add_result(b);
  Value loop = l.end(5);
  l.f.add_result(loop.result(1));
  l.f.add_result(loop.result(2));
  for (unsigned seed = 1; seed < 4; ++seed) simulate(l.f, {}, {}, seed);
}

// Two rows of one carried buffer per step, in a loop inside of a loop.
TEST(Updates, LoopsInLoopsUpdateOneBuffer) {
  Loop outer;
  Value table = outer.f.add_param(whole, "table", true), x = outer.f.add_param(part, "x");
  outer.operands = {outer.zero(), table, x};
  Values p = outer.begin();
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  Values q;
  for (const Type& t : {i64({}), whole, part, i64({})}) {
    go->add_param(t, "p");
    q.push_back(next->add_param(t, "p"));
  }
  go->add_result(ops::lt(go->param(0), go->param(3)));
  Value one = put(q[1], q[2], q[0]);
  Value two = put(one, q[2] * 2.0, q[0] + q[3] + integer_like(q[0], 3));
  next->add_result(q[0] + integer_like(q[0], 1));
  next->add_result(two);
  Value inner = ops::while_loop(
      Values{constant(outer.next->graph(), Array::scalar_int(0, DType::i64)), p[1], p[2], p[0]},
      {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}});
  outer.next->add_result(outer.count(p));
  outer.next->add_result(inner.result(1));
  Value loop = outer.end(6);
  outer.f.add_result(loop.result(1), "table");
  Simulated s = simulate(outer.f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0}));
  EXPECT_LE(s.bytes, whole_bytes);
}

}  // namespace
}  // namespace hone
