#include "test/onnx/expected.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace hone::conformance {

namespace {

constexpr std::string_view head =
    "# Tests of the ONNX backend suite that are not passed, by strategy, and why. The conformance\n"
    "# test fails when one of these passes and when one that is not here does not.\n"
    "# Written by test_onnx --update.\n";

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) out.push_back(part);
  return out;
}

Verdict verdict_from(const std::string& name, const std::string& where) {
  for (std::size_t i = 0; i < std::size(verdict_names); ++i)
    if (verdict_names[i] == name) return static_cast<Verdict>(i);
  throw UserError(where, ": '", name, "' is no verdict");
}

}  // namespace

Expected read_expected(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw UserError(path.string(), ": cannot be read; make it with --update");
  Expected out;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string test, strategies, verdict;
    words >> test >> strategies >> verdict;
    for (const std::string& s : parts_of(strategies))
      out[{test, s}] = verdict_from(verdict, cat(path.string(), ", line ", number));
  }
  return out;
}

void write_expected(const std::filesystem::path& path, const Results& results,
                    const std::vector<std::string>& strategies) {
  std::set<std::string> tests;
  for (const auto& [key, o] : results) tests.insert(key.first);
  std::string text(head);
  for (const std::string& test : tests) {
    // Strategies with the same verdict and reason share a line.
    std::vector<std::pair<std::string, std::string>> lines;  // verdict and reason, strategies
    for (const std::string& s : strategies) {
      auto it = results.find({test, s});
      if (it == results.end() || it->second.verdict == Verdict::passed) continue;
      std::string why = cat(name_of(it->second.verdict), " ", kind_of_reason(it->second));
      auto same = std::find_if(lines.begin(), lines.end(), [&](auto& l) { return l.first == why; });
      if (same == lines.end())
        lines.emplace_back(why, s);
      else
        same->second += "," + s;
    }
    for (auto& [why, which] : lines) text += cat(test, " ", which, " ", why, "\n");
  }
  write_atomic(path, text);
}

std::vector<std::string> surprises(const Results& results, const Expected& expected) {
  std::vector<std::string> out;
  for (const auto& [key, o] : results) {
    auto it = expected.find(key);
    const Verdict want = it == expected.end() ? Verdict::passed : it->second;
    if (want == o.verdict) continue;
    out.push_back(cat(key.first, " (", key.second, "): ", name_of(o.verdict), ", listed as ",
                      name_of(want), o.reason.empty() ? "" : ": ", o.reason));
  }
  return out;
}

std::vector<std::string> unknown_tests(const Expected& expected,
                                       const std::vector<std::string>& known) {
  const std::set<std::string> all(known.begin(), known.end());
  std::set<std::string> out;
  for (const auto& [key, verdict] : expected)
    if (!all.contains(key.first)) out.insert(key.first);
  return {out.begin(), out.end()};
}

}  // namespace hone::conformance
