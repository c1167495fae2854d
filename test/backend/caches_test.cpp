// States that grow along an axis, such as the keys and values of a decoder, on every backend:
// against the reference, and bit for bit against the same function whose caller keeps the cache.
#include "compile/compile.h"
#include "compile/program.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "plan/plan_file.h"
#include "ref/evaluate.h"
#include "runtime/self_test.h"
#include "runtime/state.h"
#include "test/backend/conformance.h"
#include "test/ops/harness.h"

namespace hone::test {

namespace {

constexpr std::int32_t given = ProgramEntry::no_state;
constexpr std::int64_t cache_heads = 2, per_head = 4, row_width = cache_heads * per_head,
                       most_rows = 27;

Array cache_numbers(std::vector<std::int64_t> dims, std::int64_t seed) {
  Array out = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < out.count(); ++i)
    out.set_real(i, 0.1 * static_cast<double>((i * 7 + seed * 3) % 11) - 0.4);
  return out;
}

// Sizes [1, cache_heads, `length`, per_head] with the axis of the length moved to `axis`.
Shape cache_shape(std::size_t axis, const Dim& length) {
  Dims dims = {1, cache_heads, per_head};
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), length);
  return Shape(dims);
}

// The rows of x, projected, in the cache's order of axes.
Value new_rows(Value x, std::size_t axis, std::int64_t seed) {
  const Value w = constant(x.graph(), cache_numbers({row_width, row_width}, seed));
  const Value y = reshape_to(ops::matmul(x, w), {1, x.shape()[0], cache_heads, per_head});
  Dims perm = {0, 2, 3};
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return ops::transpose(y, {{"perm", perm}});
}

Value heads_first(Value cache, std::size_t axis) {
  Dims perm;
  for (std::size_t i = 0; i < 4; ++i)
    if (i != axis) perm.push_back(i);
  perm.insert(perm.begin() + 2, axis);
  return ops::transpose(cache, {{"perm", perm}});
}

// Attention of the rows of x to all rows so far. The cache is `past` and the new rows, or, if it
// fades, half of `past` and the new rows.
Function extend(std::size_t axis, bool fades) {
  Function f;
  const Dim n = Dim::symbol("n", 1, 4), past = Dim::symbol("past", 0, most_rows - 4);
  const Value x = f.add_param(f32({n, row_width}), "x"),
              keys = f.add_param(f32(cache_shape(axis, past)), "keys"),
              values = f.add_param(f32(cache_shape(axis, past)), "values");
  const auto with_new = [&](Value old, std::int64_t seed) {
    return concat_values(Values{fades ? old * 0.5 : old, new_rows(x, axis, seed)},
                         static_cast<int>(axis));
  };
  const Value all_keys = with_new(keys, 1), all_values = with_new(values, 2);
  const Value q = new_rows(x, 2, 3), k = heads_first(all_keys, axis),
              v = heads_first(all_values, axis);
  const Value scores = ops::matmul(q, ops::transpose(k, {{"perm", Dims{0, 1, 3, 2}}}));
  f.add_result(ops::matmul(ops::softmax(scores, {{"axis", 3}}), v), "y");
  f.add_result(all_keys, "all_keys");
  f.add_result(all_values, "all_values");
  return f;
}

ProgramGraph decoder(std::size_t axis, bool fades) {
  ProgramGraph p{"decoder", {}, {}};
  const Type whole = f32(cache_shape(axis, most_rows));
  const auto open = static_cast<std::uint32_t>(axis);
  p.states = {{"keys", "cache", whole, {}, open}, {"values", "cache", whole, {}, open}};
  Function f = extend(axis, fades);
  f.store(1, 1, Capacity{open, most_rows});
  f.store(2, 2, Capacity{open, most_rows});
  p.entries.push_back({"extend", f, {given, 0, 1}});
  Function look;
  const Type some = f32(cache_shape(axis, Dim::symbol("length", 0, most_rows)));
  const Value keys = look.add_param(some, {{}, "keys", false, {}, Capacity{open, most_rows}});
  look.add_result(reduce_axes(ops::reduce_sum, keys, {static_cast<int>(axis)}), "sum");
  p.entries.push_back({"look", look, {0}});
  return p;
}

std::shared_ptr<const Executable> executable_of(const Plan& plan,
                                                const std::shared_ptr<Device>& device) {
  return Executable::load(std::make_shared<const Plan>(plan), device);
}

CompileOptions cache_options(const BackendCase& c) {
  return {.backend = c.backend, .threads = 2, .cache = false};
}

std::vector<std::byte> bytes_in(const Array& a) {
  return std::vector<std::byte>(a.bytes().begin(), a.bytes().end());
}

Array empty_cache(std::size_t axis) {
  std::vector<std::int64_t> dims;
  for (const Dim& d : cache_shape(axis, 0).dims) dims.push_back(d.number());
  return Array::zeros(DType::f32, dims);
}

// Steps of 1 to 3 rows, to the last that is taken.
void expect_equal_to_callers_cache(std::size_t axis, bool fades, const BackendCase& c,
                                   const std::shared_ptr<Device>& device) {
  const ProgramGraph program = decoder(axis, fades);
  const auto executable = executable_of(compile(program, cache_options(c)), device);
  const Function plain = extend(axis, fades);
  Session alone(
      executable_of(compile(Source{"plain", {{{}, plain}}, {}}, cache_options(c)), device));
  State state(executable);
  Session run(executable, {.entry = "extend", .states = {state}}),
      look(executable, {.entry = "look", .states = {state}});
  EXPECT_EQ(run.input_count(), 1u);
  EXPECT_EQ(run.output_count(), 1u);
  std::vector<Array> cache = {empty_cache(axis), empty_cache(axis)};
  EXPECT_EQ(state.dims("keys"), cache[0].dims());
  for (std::int64_t step = 0, length = 0; length <= most_rows - 4; ++step) {
    const std::int64_t n = 1 + step % 3;
    const std::vector<Array> all = {cache_numbers({n, row_width}, step), cache[0], cache[1]};
    const RunCounters before = run.counters();
    const std::vector<Array> wanted = alone.run(all), got = run.run(std::vector{all[0]});
    length += n;
    if (!device->shares_host_memory()) {  // else nothing crosses
      const std::int64_t bytes = n * row_width * 4;
      EXPECT_EQ(run.counters().uploaded_bytes - before.uploaded_bytes, bytes);
      EXPECT_EQ(run.counters().downloaded_bytes - before.downloaded_bytes, bytes);
    }
    EXPECT_EQ(bytes_in(got.at(0)), bytes_in(wanted[0])) << "step " << step;
    cache = {wanted[1], wanted[2]};
    for (std::size_t i = 0; i < 2; ++i) {
      const Array now = state.read(i == 0 ? "keys" : "values");
      EXPECT_EQ(now.dims(), cache[i].dims());
      EXPECT_EQ(bytes_in(now), bytes_in(cache[i])) << "step " << step;
    }
    expect_accepted(wanted, plain, all);
    const std::vector<Array> seen = {cache[0]};
    expect_accepted(look.run(std::vector<Array>{}), program.entries[1].function, seen);
  }
}

}  // namespace

TEST_P(BackendConformance, CachesGrow) {
  for (std::size_t axis : {2u, 0u, 3u}) {
    SCOPED_TRACE(axis);
    expect_equal_to_callers_cache(axis, false, GetParam(), device_);
  }
}

TEST_P(BackendConformance, CachesGrowThatAreChangedAsAWhole) {
  expect_equal_to_callers_cache(2, true, GetParam(), device_);
}

TEST_P(BackendConformance, FullCacheIsRefusedAndKept) {
  const auto executable =
      executable_of(compile(decoder(2, false), cache_options(GetParam())), device_);
  State state(executable), other(executable);
  Session run(executable, {.entry = "extend", .states = {state}});
  for (int step = 0; step < 6; ++step) run.run(std::vector{cache_numbers({4, row_width}, step)});
  const Array full = state.read("keys");
  EXPECT_EQ(full.dims(), (std::vector<std::int64_t>{1, cache_heads, 24, per_head}));
  try {
    run.run(std::vector{cache_numbers({1, row_width}, 9)});
    ADD_FAILURE() << "a cache of 24 rows was taken where 23 are the most";
  } catch (const UserError& e) {
    const std::string says = e.what();
    EXPECT_NE(says.find("holds 24 along axis 2, but entry 'extend' takes 0 to 23"), says.npos)
        << says;
  }
  EXPECT_FALSE(state.is_torn("cache"));
  EXPECT_EQ(bytes_in(state.read("keys")), bytes_in(full));
  other.assign(state);
  state.shorten("keys", 22);
  EXPECT_THROW(run.run(std::vector{cache_numbers({3, row_width}, 9)}), UserError);
  state.shorten("values", 22);
  run.run(std::vector{cache_numbers({4, row_width}, 9)});
  EXPECT_EQ(state.dims("values")[2], 26);
  EXPECT_EQ(bytes_in(other.read("keys")), bytes_in(full));
  EXPECT_THROW(state.shorten("keys", 27), UserError);
  EXPECT_THROW(state.write("keys", cache_numbers({1, cache_heads, most_rows + 1, per_head}, 0)),
               UserError);
  state.write("keys", cache_numbers({1, cache_heads, 5, per_head}, 0));
  EXPECT_EQ(state.dims("keys")[2], 5);
  state.reset();
  EXPECT_EQ(state.dims("keys")[2], 0);
}

}  // namespace hone::test
