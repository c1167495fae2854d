// How hostile files are opened, and what is reported for a file that is valid after all.
#include <chrono>
#include <fstream>

#include "backend/devices/devices.h"
#include "base/sanitizer.h"
#include "compile/compile.h"
#include "import/gguf/gguf.h"
#include "import/tensor_file.h"
#include "ops/ops.h"
#include "plan/plan_file.h"
#include "ref/evaluate.h"
#include "runtime/session.h"
#include "test/hostile/hostile.h"
#include "type/safetensors.h"
#include "verify/sample.h"
#include "verify/sizes.h"

namespace hone::hostile {

namespace {

// Instrumented code is some ten times slower.
constexpr auto time_to_run =
    std::chrono::milliseconds(with_address_sanitizer || with_thread_sanitizer ? 5000 : 500);

std::string first_of(const std::vector<Array>& results) {
  if (results.empty()) return "ran: no result";
  const Array& a = results[0];
  std::string out = cat("ran: ", a.type());
  for (std::int64_t i = 0; i < std::min<std::int64_t>(a.count(), 4); ++i)
    out += cat(i == 0 ? " = " : ", ", a.real(i));
  return out;
}

std::vector<Array> made_up(const std::vector<Type>& types, const std::vector<Guard>& guards) {
  const std::optional<Sizing> sizes = sample_sizes(types, guards);
  if (!sizes) throw UserError("no sizes fit");
  std::vector<Array> out;
  for (const Type& t : types) out.push_back(sample_array(t, *sizes, Fill::random, out.size() + 1));
  return out;
}

std::string run(std::shared_ptr<const Plan> plan) {
  std::vector<Type> types;
  for (const PlanParam& p : plan->main().params) types.push_back(p.type);
  const std::vector<Array> inputs = made_up(types, plan->main().variants[0].guards);
  Session s(Executable::load(plan, open_device("cpu")), {.threads = 1});
  s.set_deadline(std::chrono::steady_clock::now() + time_to_run);
  return first_of(s.run(inputs));
}

std::string described(const Array& a) { return cat("read: ", a.type()); }

}  // namespace

std::string imported(const fs::path& file) {
  const Imported m = import_onnx(file);
  std::size_t nodes = 0;
  for (const ImportedVariant& v : m.variants) {
    verify(v.function);
    nodes += live_nodes(v.function).size();
  }
  return cat("read: ", m.variants.size(), " variants, ", nodes, " nodes");
}

std::string ran(const fs::path& file) {
  Imported m = import_onnx(file);
  Source source{m.name, {}, {}};
  for (ImportedVariant& v : m.variants) {
    source.variants.push_back({{}, std::move(v.function)});
    for (const Assumption& a : v.assumptions)
      source.variants.back().guards.push_back(
          {Guard::Kind::equal, a.condition, Dim(a.holds ? 1 : 0)});
  }
  CompileOptions options;
  options.strategy = "cpu";
  options.cache = false;
  options.threads = 1;
  return run(std::make_shared<const Plan>(compile(source, options)));
}

std::string interpreted(const fs::path& file) {
  const Imported m = import_onnx(file);
  const Function& f = m.variants[0].function;
  return first_of(evaluate(f, made_up(f.param_types(), {})));
}

std::string ran_plan(const fs::path& file) {
  return run(std::make_shared<const Plan>(read_plan(file)));
}

std::string parsed_text(const fs::path& file) {
  const Function f = parse(read_text(file), find_op);
  verify(f);
  return cat("read: ", live_nodes(f).size(), " nodes");
}

std::string read_as_safetensors(const fs::path& file) {
  return cat("read: ", read_safetensors(file).tensors.size(), " tensors");
}
std::string read_as_gguf(const fs::path& file) {
  const Gguf all = read_gguf(file);
  for (const GgufTensor& t : all.tensors) dequantize(t);
  return cat("read: ", all.tensors.size(), " tensors");
}
std::string read_as_npy(const fs::path& file) { return described(read_npy(file)); }
std::string read_as_pb(const fs::path& file) { return described(read_tensor_pb(file)); }
std::string read_as_sequence(const fs::path& file) {
  return cat("read: ", read_sequence_pb(file).size(), " tensors");
}

std::string sweep(const fs::path& file, Open open) {
  const std::string whole = read_text(file);
  const fs::path broken = file.parent_path() / "broken";
  std::size_t answered = 0;
  const auto attempt = [&](const std::string& content) {
    std::ofstream(broken, std::ios::binary) << content;
    try {
      open(broken);
    } catch (const UserError&) {
    }
    ++answered;
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    attempt(whole.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string s = whole;
      s[i] = static_cast<char>(s[i] ^ (1 << bit));
      attempt(s);
    }
  }
  return answered == 9 * whole.size() ? "swept" : "";
}

// ==== makers

std::string repeated(std::string_view part, std::size_t times) {
  std::string out;
  out.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += part;
  return out;
}

Make bytes(std::string content) {
  return bytes([content = std::move(content)] { return content; });
}

Make bytes(std::function<std::string()> content) {
  return [content = std::move(content)](const fs::path& file) {
    const std::string all = content();
    std::ofstream(file, std::ios::binary).write(all.data(), static_cast<long>(all.size()));
  };
}

Make model(std::function<void(ModelBuilder&)> fill, std::int64_t opset) {
  return bytes([fill = std::move(fill), opset] {
    ModelBuilder b(opset);
    fill(b);
    return b.bytes();
  });
}

std::string varint(std::uint64_t n) {
  std::string out;
  for (; n >= 128; n >>= 7) out += static_cast<char>(n | 128);
  return out + static_cast<char>(n);
}

std::string number_field(std::uint32_t number, std::uint64_t value) {
  return varint(std::uint64_t{number} << 3) + varint(value);
}

std::string bytes_field(std::uint32_t number, const std::string& content) {
  return varint(std::uint64_t{number} << 3 | 2) + varint(content.size()) + content;
}

std::string good_model() {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "3"});
  b.constant("w", reals({3}, {1, 2, 3}));
  b.node("Add", {"x", "w"}, {"y"});
  b.output("y");
  return b.bytes();
}

}  // namespace hone::hostile
