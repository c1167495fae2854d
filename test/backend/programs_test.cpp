// Programs: entries of one plan over shared states, on every backend, against the reference.
#include "compile/program.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "plan/plan_file.h"
#include "ref/evaluate.h"
#include "runtime/state.h"
#include "test/backend/conformance.h"
#include "test/ops/harness.h"

namespace hone::test {

namespace {

constexpr std::int32_t input = ProgramEntry::no_state;

Value stored(Function& f, const Type& t, const char* name) { return f.add_param(t, name, true); }

Array numbers(std::vector<std::int64_t> dims, int seed) {
  Array out = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < out.count(); ++i)
    out.set_real(i, 0.1 * static_cast<double>((i * 7 + seed * 3) % 11) - 0.4);
  return out;
}

// y = x w; one step of gradient descent with momentum on the sum of squares of x w - t; a count of
// the steps.
ProgramGraph regression() {
  ProgramGraph p{"regression", {}, {}};
  const Dim n = Dim::symbol("n", 1, 64);
  const Type count_type(DType::i64, {});
  p.states = {{"w", "model", f32({6, 3}), numbers({6, 3}, 1)},
              {"count", "optimizer", count_type},
              {"velocity", "optimizer", f32({6, 3})}};
  {
    Function f;
    const Value w = stored(f, f32({6, 3}), "w"), count = stored(f, count_type, "count"),
                v = stored(f, f32({6, 3}), "velocity"), x = f.add_param(f32({n, 6}), "x"),
                t = f.add_param(f32({n, 3}), "t");
    const Value off = ops::matmul(x, w) - t;
    const Value g = ops::matmul(ops::transpose(x, {{"perm", Dims{1, 0}}}), off) * 2.0;
    const Value next_v = v * 0.5 + g;
    f.add_result(reduce_axes(ops::reduce_sum, off * off, {0, 1}), "loss");
    f.add_result(next_v, "velocity", 2);
    f.add_result(w - next_v * 0.001, "w", 0);
    f.add_result(count + integer_like(count, 1), "count", 1);
    p.entries.push_back({"train", f, {0, 1, 2, input, input}});
  }
  {
    Function f;
    const Value x = f.add_param(f32({n, 6}), "x"), w = f.add_param(f32({6, 3}), "w");
    f.add_result(ops::matmul(x, w), "y");
    p.entries.push_back({"predict", f, {input, 0}});
  }
  return p;
}

// What the reference makes of a program: the values of all states, run by run.
class ReferenceStates {
 public:
  explicit ReferenceStates(const ProgramGraph& p) : program_(p) {
    for (const StateVariable& s : p.states) {
      std::vector<std::int64_t> dims;
      for (const Dim& d : s.type.shape.dims) dims.push_back(d.number());
      values.push_back(s.start ? *s.start : Array::zeros(s.type.dtype, dims));
    }
  }

  // Checks `got`, the results that update no state, and takes the updates.
  void run(const ProgramEntry& e, const std::vector<Array>& inputs, const std::vector<Array>& got,
           const State& state) {
    std::vector<Array> all;
    std::size_t next = 0;
    for (std::int32_t s : e.states)
      all.push_back(s == input ? inputs[next++] : values[static_cast<std::size_t>(s)]);
    std::vector<Array> results;
    next = 0;
    for (const Function::Result& r : e.function.results())
      results.push_back(r.stored_to ? state.read(program_.states[state_of(e, r)].name)
                                    : got.at(next++));
    expect_accepted(results, e.function, all);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const Function::Result& r = e.function.results()[i]; r.stored_to)
        values[state_of(e, r)] = results[i];
  }

  std::vector<Array> values;

 private:
  static std::size_t state_of(const ProgramEntry& e, const Function::Result& r) {
    return static_cast<std::size_t>(e.states[*r.stored_to]);
  }
  const ProgramGraph& program_;
};

std::shared_ptr<const Executable> loaded(const ProgramGraph& p, const BackendCase& c,
                                         const std::shared_ptr<Device>& device) {
  CompileOptions options{.backend = c.backend, .threads = 2, .cache = false};
  return Executable::load(std::make_shared<const Plan>(compile(p, options)), device);
}

}  // namespace

TEST_P(BackendConformance, EntriesShareStates) {
  const ProgramGraph program = regression();
  const auto executable = loaded(program, GetParam(), device_);
  State state(executable);
  EXPECT_EQ(state.groups(), (std::vector<std::string>{"model", "optimizer"}));
  Session train(executable, {.entry = "train", .states = {state}}),
      predict(executable, {.entry = "predict", .states = {state}});
  EXPECT_EQ(train.inputs().size(), 2u);
  EXPECT_EQ(train.outputs().size(), 1u);
  EXPECT_EQ(train.input_number("t"), 1u);
  ReferenceStates reference(program);
  for (int run = 0; run < 6; ++run) {
    const std::int64_t n = 3 + 5 * (run % 3);
    const std::vector<Array> batch = {numbers({n, 6}, run), numbers({n, 3}, run + 1)};
    reference.run(program.entries[0], batch, train.run(batch), state);
    const std::vector<Array> x = {numbers({n + 1, 6}, run + 2)};
    reference.run(program.entries[1], x, predict.run(x), state);
  }
  EXPECT_EQ(state.read("count").integer(0), 6);
  EXPECT_EQ(state.version("optimizer"), 6u);
  EXPECT_FALSE(state.is_torn("model"));
}

TEST_P(BackendConformance, StatesAreCopiedAndStartAgain) {
  const auto executable = loaded(regression(), GetParam(), device_);
  State state(executable), served(executable, {.groups = {"model"}});
  Session train(executable, {.entry = "train", .states = {state}}),
      predict(executable, {.entry = "predict", .states = {served}});
  const std::vector<Array> batch = {numbers({4, 6}, 0), numbers({4, 3}, 1)};
  const auto bytes = [](const Array& a) {
    return std::vector<std::byte>(a.bytes().begin(), a.bytes().end());
  };
  const Array before = predict.run(std::vector{batch[0]})[0], start = state.read("w");
  train.run(batch);
  EXPECT_EQ(bytes(predict.run(std::vector{batch[0]})[0]), bytes(before));
  EXPECT_NE(bytes(state.read("w")), bytes(start));
  served.assign(state);
  EXPECT_EQ(bytes(served.read("w")), bytes(state.read("w")));
  EXPECT_NE(bytes(predict.run(std::vector{batch[0]})[0]), bytes(before));
  state.reset();
  EXPECT_EQ(bytes(state.read("w")), bytes(start));
  EXPECT_EQ(state.read("count").integer(0), 0);
  served.write("w", start);
  EXPECT_EQ(bytes(predict.run(std::vector{batch[0]})[0]), bytes(before));
}

}  // namespace hone::test
