// Faults that only few inputs, sizes or places of memory show, each with a model in which it is
// planted. Each stands for a hole that verification once had.
#include "test/fault/hole_faults.h"

#include <cmath>
#include <limits>

#include "ir/measured.h"
#include "ops/common.h"
#include "test/fault/kernel_change.h"
#include "verify/sample.h"

namespace hone::test {

namespace {

using Build = std::function<void(Function&)>;

SmallModel model(const std::string& name, const Build& build, const std::vector<Sizing>& sizes) {
  Function f;
  build(f);
  SmallModel m{name, {name, {{{}, f}}, {}}, {}};
  for (const Sizing& at : sizes) {
    std::vector<Array> inputs;
    for (const Type& t : f.param_types())
      inputs.push_back(sample_array(t, at, Fill::random, 71 + inputs.size()));
    m.inputs.push_back(std::move(inputs));
  }
  return m;
}

Value weight(Function& f, const Dims& sizes, std::uint64_t seed) {
  return constant(f.graph(),
                  sample_array(Type(DType::f32, Shape(sizes)), {}, Fill::random, 1000 + seed));
}

Fault kernel_fault(std::string name, std::string what, Break change) {
  Fault f;
  f.name = std::move(name);
  f.what = std::move(what);
  f.break_kernel = std::move(change);
  return f;
}

// Results of a kernel are 0 where this returns a condition.
Break zero_where(const std::function<Value(Graph&, const Kernel&)>& condition) {
  return [condition](Kernel& k) {
    bool changed = false;
    any_statement(k, [&](Stmt& s) {
      if (s.kind != Stmt::Kind::store || s.param >= std::ssize(k.params) || !is_real(s.value))
        return false;
      if (const Value is_wrong = condition(*k.graph, k)) {
        s.value = made(ops::select, {is_wrong, number(s.value, 0), s.value});
        changed = true;
      }
      return false;
    });
    return changed;
  };
}

Value dims_of(Graph& g, const Dim& d) { return dims_value(g, {d}, DType::i64, {}); }

// ---- sizes

void add_sizes(std::vector<Hole>& all) {
  // More than 100,000 operations for each row.
  const auto product = [](Function& f) {
    const Value x = f.add_param(f32({Dim::symbol("n", 1, 4096), 256}), "x");
    f.add_result(ops::relu(dot_general(x, weight(f, {256, 300}, 1), {}, {{1, 0}})), "y");
  };
  all.push_back({kernel_fault("hole-many-rows", "a product of more than 24 rows is 0",
                              zero_where([](Graph& g, const Kernel& k) -> Value {
                                if (k.sizes.empty()) return {};
                                return made(ops::lt, {dims_of(g, 24), dims_of(g, k.sizes[0])});
                              })),
                 model("product", product, {{{"n", 3}}, {{"n", 48}}})});
  const auto row = [](Function& f) {
    const Value x = f.add_param(f32({Dim::symbol("n", 1, 600), Dim::symbol("m", 1, 70)}), "x");
    f.add_result(ops::exp(x) + x, "y");
  };
  all.push_back({kernel_fault("hole-upper-bounds", "results are 0 where all sizes are the largest",
                              zero_where([](Graph& g, const Kernel& k) -> Value {
                                if (k.sizes.size() != 2) return {};
                                return made(ops::eq, {dims_of(g, 600 * 70),
                                                      dims_of(g, k.sizes[0] * k.sizes[1])});
                              })),
                 model("row", row, {{{"n", 7}, {"m", 6}}, {{"n", 600}, {"m", 70}}})});
}

// Two sizes that data decides, in so much work that only kernels are checked.
void add_measured(std::vector<Hole>& all) {
  const auto counted = [](Function& f, const std::string& name) {
    constexpr std::int64_t most = 2000;
    const Value x = f.add_param(f32({most}), name);
    const Value is_some = ops::lt(constant_like(x, -0.5), x),
                count = ops::reduce_sum(cast_to(is_some, DType::i64), {{"axes", Dims{0}}});
    const Dim n = Dim::symbol("of_" + name, 0, most);
    ops::measure(count, {{"symbol", Dims{n}}, {"high", Dims{Dim(most)}}});
    return ops::slice(x, {{"starts", Dims{0}}, {"steps", Dims{1}}, {"sizes", Dims{n}}});
  };
  const auto table = [counted](Function& f) {
    const Value a = counted(f, "a"), b = counted(f, "b");
    const Dim n = a.shape()[0], m = b.shape()[0];
    const Value sum =
        broadcast_to(reshape_to(a, {n, Dim(1)}), Shape{n, m}) + broadcast_to(b, Shape{n, m});
    f.add_result(ops::exp(ops::sigmoid(ops::tanh(sum * 2.0) - 1.0)) * sum, "y");
  };
  all.push_back({kernel_fault("hole-measured-exchanged",
                              "a kernel takes two sizes that data decides for each other",
                              [](Kernel& k) {
                                if (k.sizes.size() != 2) return false;
                                std::swap(k.sizes[0], k.sizes[1]);
                                return true;
                              }),
                 model("table", table, {{}})});
}

// ---- numbers

void add_numbers(std::vector<Hole>& all) {
  Fault relu;
  relu.name = "hole-tiny";
  relu.what = "relu(x) becomes the larger of 0 and x - 1e-7";
  relu.after_pass = "simplify";
  relu.break_function = [](const Function& f) {
    return transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
      const Value old(&f.graph(), n);
      if (!old.is(ops::relu)) return {};
      ++fired;
      const Value y = ops::relu(copy(old.operand(0)));
      return {y - ops::minimum(y, constant_like(y, 1e-7))};
    });
  };
  SmallModel small =
      model("rectified",
            [](Function& f) { f.add_result(ops::relu(f.add_param(f32({9, 9}), "x")), "y"); }, {{}});
  small.inputs = {{sample_array(f32({9, 9}), {}, Fill::tiny, 5)}};
  all.push_back({relu, small});

  // So much work in another kernel that few inputs of the whole function are tried.
  const auto beside = [](Function& f) {
    const Value x = f.add_param(f32({8, 8}), "x"), a = f.add_param(f32({40, 40}), "a");
    f.add_result(ops::relu(x), "y");
    f.add_result(dot_general(a, a, {}, {{1, 0}}), "product");
  };
  for (const double special :
       {65504.0, 1e15, 0.5, 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, 1.0, 1e-3}) {
    SmallModel m = model("beside", beside, {{}});
    m.inputs[0][0].set_real(40, special);
    all.push_back({kernel_fault(cat("hole-special-", special), "one special number becomes 2",
                                replacing(ops::maximum,
                                          [special](Graph&, Value old, const Values& v) -> Value {
                                            if (!is_real(old)) return {};
                                            const Value x = v[0].is(ops::constant) ? v[1] : v[0];
                                            return made(ops::select,
                                                        {made(ops::eq, {x, number(x, special)}),
                                                         number(x, 2), made(ops::maximum, v)});
                                          })),
                   m});
  }
}

// ---- memory

// Loads read the next element too, without using it.
Break reading_further() {
  return replacing(ops::load, [](Graph& to, Value old, const Values& v) -> Value {
    if (!is_real(old)) return {};
    Attrs attrs = old.attrs();
    attrs.set("offset", Dims{attrs.dims("offset")[0] + Dim(1)});
    const Value same = to.intern_typed(old.op(), v, old.attrs(), std::vector<Type>{old.type()}),
                next = to.intern_typed(old.op(), v, attrs, std::vector<Type>{old.type()});
    return made(ops::select, {made(ops::eq, {next, number(next, 12345)}),
                              made(ops::add, {same, number(same, 0)}), same});
  });
}

void add_memory(std::vector<Hole>& all) {
  all.push_back(
      {kernel_fault("hole-reads-past-operand", "a load reads the next element, too",
                    reading_further()),
       model("odd",
             [](Function& f) { f.add_result(ops::tanh(f.add_param(f32({7, 9}), "x")), "y"); },
             {{}})});
  all.push_back({kernel_fault("hole-reads-past-column", "a load of a column reads the next element",
                              reading_further()),
                 model("column",
                       [](Function& f) {
                         const Value x = f.add_param(f32({7, 9}), "x");
                         f.add_result(ops::exp(ops::softmax(ops::slice(x, {{"starts", Dims{0, 8}},
                                                                           {"steps", Dims{1, 1}},
                                                                           {"sizes", Dims{7, 1}}}),
                                                            {{"axis", 0}})),
                                      "y");
                       },
                       {{}})});
}

// ---- masks

// The first rows are hidden up to the middle.
Array mask_of(DType t, std::int64_t rows, std::int64_t keys) {
  Array m = Array::zeros(t, {rows, keys});
  for (std::int64_t i = 0; i < m.count(); ++i) {
    const bool is_hidden = i / keys < rows / 2 && i % keys < keys / 2 + 20;
    if (is_float(t))
      m.set_real(i, is_hidden ? -INFINITY : 0);
    else
      m.set_integer(i, !is_hidden);
  }
  return m;
}

void add_masks(std::vector<Hole>& all) {
  for (const DType t : {DType::b1, DType::f32}) {
    constexpr std::int64_t queries = 8, keys = 320;
    SmallModel m = model(
        cat("attention_", t),
        [t](Function& f) {
          const Value q = f.add_param(f32({queries, 8}), "q"), k = f.add_param(f32({keys, 8}), "k"),
                      v = f.add_param(f32({keys, 8}), "v"),
                      mask = f.add_param(Type(t, {queries, keys}), "mask");
          f.add_result(ops::attention(std::vector<Value>{q, k, v, mask}, {{"scale", 0.5}}), "y");
        },
        {{}});
    m.inputs[0][3] = mask_of(t, queries, keys);
    all.push_back(
        {kernel_fault(cat("hole-mask-", t), "scores are shifted by a maximum of -infinity",
                      replacing(ops::select,
                                [](Graph&, Value, const Values& v) -> Value {
                                  const bool is_shift = v[0].is(ops::eq) &&
                                                        v[1].is(ops::constant) &&
                                                        v[0].operand(1).is(ops::constant);
                                  return is_shift ? made(ops::add, {v[2], v[1]}) : Value();
                                })),
         m});
  }
}

}  // namespace

std::vector<Hole> hole_faults() {
  std::vector<Hole> all;
  add_sizes(all);
  add_measured(all);
  add_numbers(all);
  add_memory(all);
  add_masks(all);
  return all;
}

}  // namespace hone::test
