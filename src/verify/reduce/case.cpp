#include "verify/reduce/case.h"

#include <charconv>
#include <limits>
#include <map>
#include <sstream>

#include "base/random.h"
#include "ops/ops.h"

namespace hone {

namespace {

// Finite values are small enough that the order of adding products cannot make a sum overflow.
double extreme_real(Random& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return random.of({0.0, -0.0, 1.0, -1.0, 1e-7, 6e-8, -1e-40, 1e-45, 2048.0, 65504.0, -7e4, 88.8,
                    16777217.0, 1e12, -1e15, 3e15, infinity, -infinity,
                    std::numeric_limits<double>::quiet_NaN()});
}

std::int64_t extreme_integer(DType t, Random& random) {
  const int bits = 8 * byte_size(t);
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);  // the sign bit
  auto as_signed = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
  return random.of<std::int64_t>({0, 1, -1, 2, as_signed(top), as_signed(top - 1),
                                  as_signed(top + 1), bits, bits - 1, 127, 255});
}

double ordinary_real(Random& random) {
  // Halves make ties, equal elements and sums without rounding.
  return random.chance(30) ? random.between(-4, 4) * 0.5 : random.real(-2, 2);
}

}  // namespace

Array input_array(const Type& type, const Sizing& sizes, std::uint64_t seed, CaseNumbers numbers) {
  std::vector<std::int64_t> dims;
  for (const Dim& d : type.shape.dims) dims.push_back(size_of(d, sizes));
  Array a = Array::zeros(type.dtype, dims);
  Random random(seed);
  for (std::int64_t i = 0, n = a.count(); i < n; ++i) {
    const bool extreme = numbers == CaseNumbers::extreme && random.chance(25);
    if (is_float(type.dtype))
      a.set_real(i, extreme ? extreme_real(random) : ordinary_real(random));
    else if (type.dtype == DType::b1)
      a.set_integer(i, random.below(2));
    else
      a.set_integer(i, extreme ? extreme_integer(type.dtype, random)
                               : random.between(is_signed(type.dtype) ? -4 : 0, 8));
  }
  return a;
}

std::vector<Array> inputs_of(const Function& f, const CaseRun& run) {
  std::vector<Array> out;
  for (const Type& t : f.param_types())
    out.push_back(input_array(t, run.sizes, run.seed * 1000003 + out.size(), run.numbers));
  return out;
}

std::string case_text(const Case& c, std::string_view comment) {
  std::string out;
  std::istringstream lines{std::string(comment)};
  for (std::string line; std::getline(lines, line);) out += "# " + line + "\n";
  for (const CaseRun& r : c.runs) {
    out += cat("run seed=", r.seed, r.numbers == CaseNumbers::extreme ? " extreme" : " ordinary");
    const std::map<std::string, std::int64_t> sizes(r.sizes.begin(), r.sizes.end());
    for (const auto& [name, size] : sizes) out += cat(" ", name, "=", size);
    out += "\n";
  }
  return out + print(c.function, nullptr, ~std::size_t{0});
}

namespace {

// Of "seed=1" and "n=4".
template <class T>
T number(std::string_view word) {
  const std::string_view text = word.substr(word.find('=') + 1);
  T n{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError("a run has '", word, "', expected an integer after '='");
  return n;
}

}  // namespace

Case parse_case(std::string_view text) {
  Case c;
  std::istringstream lines{std::string(text)};
  std::string function;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    if (!line.starts_with("run ")) {
      function += line + "\n";
      continue;
    }
    CaseRun run;
    std::istringstream words(line.substr(4));
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (word == "extreme")
        run.numbers = CaseNumbers::extreme;
      else if (equals == std::string::npos ? word != "ordinary" : equals == 0)
        throw UserError("a run has '", word,
                        "', expected seed=, a size such as n=4, ordinary or extreme");
      else if (word.starts_with("seed="))
        run.seed = number<std::uint64_t>(word);
      else if (equals != std::string::npos)
        run.sizes[word.substr(0, equals)] = number<std::int64_t>(word);
    }
    c.runs.push_back(std::move(run));
  }
  if (c.runs.empty()) throw UserError("it has no line such as 'run seed=1 ordinary'");
  c.function = parse(function, find_op);
  return c;
}

}  // namespace hone
