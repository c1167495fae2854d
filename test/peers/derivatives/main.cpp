// Computes the losses and derivatives of all cases, and 50 steps of each optimiser. Writes for each
// case a folder DIR/NAME of .npy files: in.0, in.1, ... (arguments), before.STATE, loss, d.0, d.1,
// ... and d.STATE, after.STATE. Prints a line for each case that throws, and exits with 1 then.
// usage: peer_derivatives DIR [NAME...]
#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "case.h"

using namespace hone;
using namespace hone::peer;

namespace {

constexpr int steps = 50;

using Random = std::mt19937_64;

double between(Random& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}

Array array_of(const Input& in, Random& random) {
  const DType dtype = in.kind == Input::Kind::index     ? DType::i64
                      : in.kind == Input::Kind::boolean ? DType::b1
                                                        : DType::f32;
  Array out = Array::zeros(dtype, in.dims);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const double x =
        in.kind == Input::Kind::real
            ? between(random, in.low, in.high)
            : in.low + static_cast<double>(random() % static_cast<unsigned>(in.high - in.low + 1));
    out.set_real(i, x);
  }
  return out;
}

Arg argument(const Input& in, std::size_t number, DType dtype) {
  Dims dims(in.dims.begin(), in.dims.end());
  if (in.open >= 0) dims[static_cast<std::size_t>(in.open)] = dim("n", 1, 1000);
  return {"x" + std::to_string(number), Type(dtype, Shape(std::move(dims)))};
}

// What a state holds in a case: norms are moved off 1 and 0, where mistakes do not show.
Array moved(const std::string& name, const Array& start, Random& random) {
  const bool is_scale =
      name.ends_with("running_var") || (name.ends_with("weight") && start.rank() == 1);
  const bool is_shift = name.ends_with("running_mean") || name.ends_with("bias");
  if (!is_scale && !is_shift) return start;
  return array_of(is_scale ? real(start.dims(), 0.5, 1.5) : real(start.dims(), -0.5, 0.5), random);
}

class Folder {
 public:
  Folder(const std::filesystem::path& all, const std::string& name) : path_(all / name) {
    std::filesystem::create_directories(path_);
  }
  void write(const std::string& name, const Array& a) const {
    write_array((path_ / (name + ".npy")).string(), a);
  }

 private:
  std::filesystem::path path_;
};

Random random_of(const std::string& name) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return Random(hash);
}

void run_case(const Case& c, const Folder& folder) {
  Random random = random_of(c.name);
  Program p(c.name);
  nn::Module root(p, "net");
  const Function f = c.make ? c.make(root) : c.function;
  std::vector<Array> inputs;
  std::vector<Arg> arguments;
  for (const Input& in : c.inputs) {
    inputs.push_back(array_of(in, random));
    arguments.push_back(argument(in, arguments.size(), inputs.back().dtype()));
    folder.write("in." + std::to_string(arguments.size() - 1), inputs.back());
  }
  std::vector<std::string> names = {"loss"};
  const auto record = [&](std::same_as<Tensor> auto... x) {
    const Tensors all = {x...};
    Tensors floats;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].dtype() == DType::f32) {
        floats.push_back(all[i]);
        names.push_back("d." + std::to_string(i));
      }
    Tensor loss = f(all);
    if (loss.rank() > 0) loss = weighed(loss);
    Results out{{"loss", loss}};
    Tensors d = floats.empty() ? Tensors() : grad(loss, floats, {.unused = true});
    const Variables parameters = root.parameters();
    for (const Variable& v : parameters) names.push_back("d." + v.name());
    if (!parameters.empty())
      for (const Tensor& t : grad(loss, parameters)) d.push_back(t);
    for (std::size_t i = 0; i < d.size(); ++i) out.add("d" + std::to_string(i), d[i]);
    return out;
  };
  p.entry("main", arguments, record, {.training = c.training});
  const Compiled compiled = compile(p, {.threads = 1});
  const runtime::Executable exe = compiled.load();
  std::optional<runtime::State> state;
  std::vector<std::string> states;
  for (const Variable& v : root.states()) states.push_back(v.name());
  runtime::SessionOptions options{.threads = 1, .entry = "main"};
  if (!states.empty()) {
    state.emplace(exe);
    options.states = {&*state};
  }
  for (const std::string& s : states) {
    const Array start = moved(s, read(*state, s), random);
    write(*state, s, start);
    folder.write("before." + s, start);
  }
  runtime::Session session(exe, options);
  const std::vector<Array> results = run(session, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) folder.write(names.at(i), results[i]);
  for (const std::string& s : states) folder.write("after." + s, read(*state, s));
}

void run_optimizer(const OptimizerCase& c, const Folder& folder) {
  Random random = random_of(c.name);
  Program p(c.name, {.seed = 3});
  nn::Module root(p, "net");
  const nn::Linear first(root, "first", {.in = 4, .out = 8}),
      last(root, "last", {.in = 8, .out = 2});
  const Step step = c.make(p, root.parameters());
  p.entry("main", {{"x", f32({16, 4})}, {"y", f32({16, 2})}},
          [&](Tensor x, Tensor y) {
            const Tensor loss = mse_loss(last(tanh(first(x))), y);
            step(grad(loss, root.parameters()));
            return Results{{"loss", loss}};
          },
          {.training = true});
  const runtime::Executable exe = compile(p, {.threads = 1}).load();
  runtime::State state(exe);
  runtime::Session session(exe, {.threads = 1, .entry = "main", .states = {&state}});
  const std::vector<Array> inputs = {array_of(real({16, 4}), random),
                                     array_of(real({16, 2}), random)};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    folder.write("in." + std::to_string(i), inputs[i]);
  for (const Variable& v : p.variables()) folder.write("before." + v.name(), read(state, v.name()));
  Array losses = Array::zeros(DType::f32, {steps});
  for (int i = 0; i < steps; ++i) losses.set_real(i, run(session, inputs)[0].real(0));
  folder.write("loss", losses);
  for (const Variable& v : p.variables()) folder.write("after." + v.name(), read(state, v.name()));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: peer_derivatives DIR [NAME...]\n");
    return 2;
  }
  const std::filesystem::path all = arguments[1];
  const std::set<std::string> only(arguments + 2, arguments + count);
  struct Task {
    std::string name;
    std::function<void()> run;
  };
  std::vector<Task> tasks;
  for (std::vector<Case>& part : std::vector{function_cases(), network_cases()})
    for (const Case& c : part) tasks.push_back({c.name, [=] { run_case(c, Folder(all, c.name)); }});
  for (const OptimizerCase& c : optimizer_cases())
    tasks.push_back(
        {"optimizer." + c.name, [=] { run_optimizer(c, Folder(all, "optimizer." + c.name)); }});
  std::erase_if(tasks, [&](const Task& t) { return !only.empty() && !only.contains(t.name); });

  std::atomic<std::size_t> next = 0, failed = 0;
  std::mutex prints;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) try {
        tasks[i].run();
      } catch (const std::exception& e) {
        ++failed;
        const std::lock_guard lock(prints);
        std::printf("%s: %s\n", tasks[i].name.c_str(), e.what());
      }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned k = std::max(1u, std::thread::hardware_concurrency()); k > 0; --k)
      workers.emplace_back(work);
  }
  std::printf("%zu cases computed, %zu failed\n", tasks.size() - failed, failed.load());
  return failed == 0 ? 0 : 1;
}
