// Derivatives as text: test/grad/cases/*.txt hold a function, and after "--" the function of its
// parameters and one weight for each of its float results that gives the derivatives of its float
// parameters.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "grad/gradients.h"
#include "ir/function.h"
#include "ops/ops.h"

namespace hone {
namespace {

struct TextCase {
  std::string name, before, after;
};

// A case begins with "== name".
std::vector<TextCase> read_text_cases(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<TextCase> out;
  bool is_after = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) {
      out.push_back({line.substr(3), "", ""});
      is_after = false;
    } else if (line == "--") {
      is_after = true;
    } else if (!out.empty() && !line.empty()) {
      (is_after ? out.back().after : out.back().before) += line + "\n";
    }
  }
  return out;
}

Function derivative(const Function& f) {
  Function out = clone_params(f);
  Values params;
  for (std::size_t i = 0; i < f.params().size(); ++i) params.push_back(out.param(i));
  const Values results = inline_call(out.graph(), f, params);
  Values ys, dys, xs;
  for (const Value& y : results)
    if (is_float(y.dtype())) {
      ys.push_back(y);
      dys.push_back(out.add_param(y.type(), cat("d", ys.size() - 1)));
    }
  for (const Value& x : params)
    if (is_float(x.dtype())) xs.push_back(x);
  for (const Value& d : gradients(ys, dys, xs)) out.add_result(d);
  return out;
}

TEST(Cases, DerivativesAreTheTextTheyShould) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(HONE_SOURCE_DIR "/test/grad/cases"))
    for (const TextCase& c : read_text_cases(file.path())) {
      const Function after = derivative(parse(c.before, find_op));
      verify(after);
      EXPECT_EQ(print(after), c.after) << "case " << c.name << " of " << file.path();
      ++count;
    }
  EXPECT_GE(count, 12);
}

}  // namespace
}  // namespace hone
