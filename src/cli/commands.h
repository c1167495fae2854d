// The subcommands of `hone`. Each returns an exit code; errors are thrown and become messages and
// codes in main.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/exit.h"

namespace hone::cli {

struct ModelOptions {
  std::string model;                 // .onnx, .hone, or a directory that holds model.onnx
  std::string strategy = "auto";     // ref, cpu, onednn, auto
  std::vector<std::string> targets;  // empty: native
  std::vector<std::string> dims;     // "n=4", "n=1..64"
  std::string shapes;                // "input:1x3x224x224,other:2x2"
  std::vector<std::string> passes_off;
  std::string verify = "kernels";  // none, kernels, model
  int threads = 0;
  std::int64_t max_memory = 0;  // bytes; 0: no limit
  bool one_op_groups = false;
  bool no_cache = false;
  bool json = false;
  bool quiet = false;
};

struct OptimizeOptions : ModelOptions {
  std::string output;  // default: the model's name with .hone
  std::vector<std::string> strategies = {"ref", "cpu", "onednn", "auto"};
  std::string inputs;  // directory of sample inputs
  bool strip = false;
  int rounds = 20;
  std::string report;   // page to write; empty: none
  std::string command;  // as typed, for the report
};

struct RunOptions : ModelOptions {
  std::vector<std::string> inputs;  // "name=file" or "file", .npy, .pb or raw
  std::string output_dir = ".";
  std::vector<std::string> dump;  // inner values by ONNX name, added to the results
  bool print_times = false;
};

struct BenchOptions : ModelOptions {
  std::vector<std::string> inputs;
  int iterations = 0;
  double duration = 1.0;  // seconds
  double warm_up = 200;   // ms
  std::string export_times;
};

struct ValidateOptions : ModelOptions {
  std::vector<std::string> strategies = {"auto"};
  double atol = -1, rtol = -1;  // -1: by dtype
  bool first_difference = false;
};

struct ExplainOptions : ModelOptions {
  bool steps = false;
  bool candidates = false;
  std::string report;  // page to write; empty: none
  std::vector<std::string> inputs;
  std::string command;
};

int optimize(const OptimizeOptions&);
int run(const RunOptions&);
int bench(const BenchOptions&);
int validate(const ValidateOptions&);
int explain(const ExplainOptions&);
int flags();

}  // namespace hone::cli
