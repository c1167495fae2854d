// The checked-in list of tests that do not pass, with reasons. A test that is not listed must pass.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "test/onnx/outcome.h"

namespace hone::conformance {

// By test and strategy.
using Results = std::map<std::pair<std::string, std::string>, Outcome>;
using Expected = std::map<std::pair<std::string, std::string>, Verdict>;

// Lines "TEST STRATEGIES VERDICT REASON"; '#' starts a comment.
Expected read_expected(const std::filesystem::path&);
void write_expected(const std::filesystem::path&, const Results&,
                    const std::vector<std::string>& strategies);

// One line for each result that differs from the list.
std::vector<std::string> surprises(const Results&, const Expected&);
// Listed tests that are not in `known`.
std::vector<std::string> unknown_tests(const Expected&, const std::vector<std::string>& known);

}  // namespace hone::conformance
