// Results that are stored to donated inputs: the next run reads there what the last one wrote, on
// every backend, whether or not a result can be computed in place.
#include "ir/verify.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ref/evaluate.h"
#include "test/backend/conformance.h"
#include "test/ops/harness.h"

namespace hone::test {

namespace {

struct Stored {
  const char* name;
  Function f;
};

Value add(Function& f, const Type& t, const char* name) { return f.add_param(t, name, true); }

Function counter() {
  Function f;
  const Value x = add(f, f32({100}), "x");
  f.add_result(x + 1.0, "y", 0);
  return f;
}

// Each is the other's next value, so one of them must be kept aside.
Function exchange() {
  Function f;
  const Value a = add(f, f32({70}), "a"), b = add(f, f32({70}), "b");
  f.add_result(b, "next_a", 0);
  f.add_result(a, "next_b", 1);
  return f;
}

Function rotation() {
  Function f;
  const Value a = add(f, f32({33}), "a"), b = add(f, f32({33}), "b"), c = add(f, f32({33}), "c");
  f.add_result(a * 2.0, "next_c", 2);
  f.add_result(b, "next_a", 0);
  f.add_result(c - 1.0, "next_b", 1);
  return f;
}

// Every element of the result needs all of a row, and another result needs what was there before.
Function product() {
  Function f;
  const Value x = add(f, f32({16, 16}), "x"), w = f.add_param(f32({16, 16}), "w");
  const Value y = ops::matmul(x, w) * 0.1;
  f.add_result(reduce_axes(ops::reduce_sum, x, {1}), "before");
  f.add_result(y, "y", 0);
  f.add_result(reduce_axes(ops::reduce_sum, y, {0}), "after");
  return f;
}

// One row of many changes; the row that was there is a result.
Function ring() {
  Function f;
  const Value rows = add(f, f32({64, 24}), "rows"), row = f.add_param(f32({1, 24}), "row"),
              place = add(f, Type(DType::i64, {2}), "place");
  const Value at = ops::mod(place, integer_like(place, 8));
  f.add_result(ops::dynamic_update(Values{rows, row, at}), "rows", 0);
  f.add_result(ops::dynamic_slice(Values{rows, at}, {{"sizes", Dims{1, 24}}}), "old");
  f.add_result(place + integer_like(place, 0), "place", 2);
  return f;
}

// AdamW without its step number (Loshchilov and Hutter, "Decoupled weight decay regularization",
// 2019): three states, each of which the others' next values need.
Function adam() {
  Function f;
  const Type t = f32({7, 65});
  const Value p = add(f, t, "p"), m = add(f, t, "m"), v = add(f, t, "v"), g = f.add_param(t, "g");
  const Value next_m = m * 0.9 + g * 0.1, next_v = v * 0.99 + g * g * 0.01;
  f.add_result(next_m, "m", 1);
  f.add_result(next_v, "v", 2);
  f.add_result(p * 0.999 - next_m / (ops::sqrt(next_v) + 1e-3) * 0.01, "p", 0);
  return f;
}

// The same for a gradient that is a product: the states are updated where it is computed. The rows
// are no multiple of a tile's.
Function trained() {
  Function f;
  const Type t = f32({37, 65}), row = f32({65});
  const Value p = add(f, t, "p"), m = add(f, t, "m"), v = add(f, t, "v"), b = add(f, row, "b"),
              bm = add(f, row, "bm"), x = f.add_param(f32({40, 37}), "x"),
              dy = f.add_param(f32({40, 65}), "dy");
  const Value g = dot_general(x, dy, {}, {{0, 0}}) * 0.01,
              bg = reduce_axes(ops::reduce_sum, dy, {0}) * 0.01;
  const Value next_m = m * 0.9 + g * 0.1, next_v = v * 0.99 + g * g * 0.01,
              next_bm = bm * 0.9 + bg * 0.1;
  f.add_result(next_m, "m", 1);
  f.add_result(next_v, "v", 2);
  f.add_result(p * 0.999 - next_m / (ops::sqrt(next_v) + 1e-1) * 0.01, "p", 0);
  f.add_result(b - next_bm * 0.01, "b", 3);
  f.add_result(next_bm, "bm", 4);
  return f;
}

// Both are read for both next values, in one pass.
Function turn() {
  Function f;
  const Value a = add(f, f32({70}), "a"), b = add(f, f32({70}), "b");
  f.add_result(a * 0.6 - b * 0.8, "next_a", 0);
  f.add_result(a * 0.8 + b * 0.6, "next_b", 1);
  return f;
}

// As the running statistics of a norm: runs differ in the number of rows.
Function running() {
  Function f;
  const Dim n = Dim::symbol("n", 1, 64);
  const Value mean = add(f, f32({5}), "mean"), x = f.add_param(f32({n, 5}), "x");
  const Value here = reduce_axes(ops::reduce_max, x, {0});
  const Value next = mean * 0.75 + here * 0.25;
  f.add_result(next, "mean", 0);
  f.add_result(x - broadcast_to(reshape_to(mean, {1, 5}), x.shape()), "centred");
  return f;
}

std::vector<Stored> functions() {
  return {{"counter", counter()}, {"exchange", exchange()}, {"rotation", rotation()},
          {"product", product()}, {"ring", ring()},         {"adam", adam()},
          {"running", running()}, {"turn", turn()},         {"trained", trained()}};
}

Array made(const Type& t, const Sizing& sizes, int seed) {
  Type fixed = t;
  for (Dim& d : fixed.shape.dims) d = Dim(size_of(d, sizes));
  int i = seed;
  return harness::filled(fixed, [&](DType d) {
    i += 7;
    return is_float(d) ? 0.05 * (i % 23) + 0.1 : i % 5;
  });
}

Array copy_of(const Array& a) {
  Array out = Array::zeros(a.dtype(), a.dims());
  std::ranges::copy(a.bytes(), out.writable_bytes().begin());
  return out;
}

}  // namespace

TEST_P(BackendConformance, StoredResultsAreWhereTheNextRunReads) {
  for (const Stored& s : functions()) {
    SCOPED_TRACE(s.name);
    verify(s.f);
    const std::shared_ptr<const Plan> plan = compiled(s.f);
    const std::unique_ptr<Session> session = this->session(plan);
    std::vector<Array> state;
    const auto sizes_of_run = [](int run) { return Sizing{{"n", 3 + 4 * (run % 3)}}; };
    for (std::size_t i = 0; i < s.f.params().size(); ++i)
      state.push_back(made(s.f.param(i).type(), sizes_of_run(0), static_cast<int>(i)));
    for (int run = 0; run < 6; ++run) {
      for (std::size_t i = 0; i < state.size(); ++i)
        if (!s.f.params()[i].donated)
          state[i] = made(s.f.param(i).type(), sizes_of_run(run), run + static_cast<int>(i));
      std::vector<Array> before;
      for (const Array& a : state) before.push_back(copy_of(a));
      std::vector<Array> got(s.f.results().size());
      for (std::size_t i = 0; i < state.size(); ++i)
        session->bind_input(i, {state[i].dtype(), state[i].dims(), state[i].writable_bytes()});
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Function::Result& r = s.f.results()[i];
        if (r.stored_to) {
          EXPECT_EQ(plan->main().result_alias[i], static_cast<std::int32_t>(*r.stored_to));
          got[i] = state[*r.stored_to];
          session->bind_output(i, {got[i].dtype(), got[i].dims(), {}});
          continue;
        }
        got[i] = made(r.value.type(), sizes_of_run(run), 0);
        session->bind_output(i, {got[i].dtype(), got[i].dims(), got[i].writable_bytes()});
      }
      session->run();
      expect_accepted(got, s.f, before);
    }
  }
}

// The whole of Adam is one kernel that updates its states where they are: no memory of its own, no
// copy.
TEST(StoredResults, OfOneKernelAreComputedInPlace) {
  const Function f = adam();
  const auto plan =
      std::make_shared<const Plan>(compile(Source{"adam", {{{}, f}}, {}}, {.strategy = "cpu"}));
  EXPECT_EQ(plan->main().variants[0].devices[0].arena_bytes, Dim(0));
  Session session(Executable::load(plan, open_device("cpu")), {.threads = 1});
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < f.params().size(); ++i)
    inputs.push_back(made(f.param(i).type(), {}, static_cast<int>(i)));
  session.run(inputs);
  EXPECT_EQ(session.counters().launches, 1);
  EXPECT_EQ(session.counters().copies, 0);
}

// Plans for several devices cannot store to inputs: asked for, they are refused; `auto` takes one.
TEST(StoredResults, AreKeptOnOneDevice) {
  const Source source{"exchange", {{{}, exchange()}}, {}};
  CompileOptions options{.strategy = "multi"};
  EXPECT_NE(refusal([&] { compile(source, options); }).find("is stored to an input"),
            std::string::npos);
  options.strategy = "auto";
  options.measure = true;
  EXPECT_EQ(compile(source, options).main().result_alias, (std::vector<std::int32_t>{0, 1}));
}

}  // namespace hone::test
