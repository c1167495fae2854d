// The ONNX backend test suite on this machine: its location and its list of tests. Does not read
// the tests themselves.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hone::conformance {

struct Case {
  std::string name;  // "node/test_abs"
  std::filesystem::path model;
  // test_data_set_K, each with input_J.pb and output_J.pb. Empty for the light models, whose inputs
  // are a ramp from 0 to 1 and whose outputs are stored beside the model.
  std::vector<std::filesystem::path> sets;
};

// The folder onnx/backend/test/data: HONE_ONNX_TESTS (a folder or an archive), else the archive in
// ../shared/onnx or ../../shared/onnx of the checkout, else that of an installed onnx package.
// Archives are unpacked below `cache` once. Empty if there is none.
std::optional<std::filesystem::path> find_suite(const std::filesystem::path& checkout,
                                                const std::filesystem::path& cache);

// All tests of all kinds, sorted by name. Models that are given only by a URL count once, under
// light.
std::vector<Case> list_cases(const std::filesystem::path& suite);

}  // namespace hone::conformance
