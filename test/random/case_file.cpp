#include "test/random/case_file.h"

#include <map>
#include <sstream>

#include "ops/ops.h"

namespace hone::fuzz {

std::string case_text(const Case& c, std::string_view comment) {
  std::string out;
  std::istringstream lines{std::string(comment)};
  for (std::string line; std::getline(lines, line);) out += "# " + line + "\n";
  for (const Run& r : c.runs) {
    out += cat("run seed=", r.seed, r.numbers == Numbers::extreme ? " extreme" : " ordinary");
    const std::map<std::string, std::int64_t> sizes(r.sizes.begin(), r.sizes.end());
    for (const auto& [name, size] : sizes) out += cat(" ", name, "=", size);
    out += "\n";
  }
  return out + print(c.function, nullptr, ~std::size_t{0});
}

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
    Run run;
    std::istringstream words(line.substr(4));
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (word == "extreme")
        run.numbers = Numbers::extreme;
      else if (equals == std::string::npos ? word != "ordinary" : equals == 0)
        throw UserError("case: '", word, "' is no part of a run; give seed=, a size or extreme");
      else if (word.starts_with("seed="))
        run.seed = std::stoull(word.substr(5));
      else if (equals != std::string::npos)
        run.sizes[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
    }
    c.runs.push_back(std::move(run));
  }
  if (c.runs.empty()) throw UserError("case: there is no line 'run seed=1 ordinary'");
  c.function = parse(function, find_op);
  return c;
}

}  // namespace hone::fuzz
