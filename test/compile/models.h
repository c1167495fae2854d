// The four real models and the demo model, with their test sets.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "backend/devices/devices.h"
#include "compile/compile.h"
#include "import/import.h"
#include "import/tensor_file.h"
#include "ref/compare.h"
#include "runtime/session.h"

namespace hone::test {

namespace fs = std::filesystem;

inline fs::path models_root() {
  const char* given = std::getenv("HONE_MODELS");
  fs::path root =
      given && *given ? fs::path(given) : fs::path(HONE_SOURCE_DIR) / "../shared/models";
  EXPECT_TRUE(fs::is_directory(root))
      << "the models are not at " << root << "; set HONE_MODELS to their directory";
  return root;
}

inline const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"squeezenet_fp16", "ultraface_rfb_320",
                                                 "silero_vad", "magika_v3_3"};
  return names;
}

struct TestSet {
  std::vector<Array> inputs, outputs;
};

inline std::vector<Array> read_tensors(const fs::path& set, const char* kind) {
  std::vector<Array> out;
  for (int i = 0; fs::exists(set / cat(kind, "_", i, ".pb")); ++i)
    out.push_back(read_tensor_pb(set / cat(kind, "_", i, ".pb")));
  return out;
}

inline std::vector<TestSet> test_sets(const std::string& model) {
  std::vector<TestSet> out;
  for (int i = 0; fs::exists(models_root() / model / cat("test_data_set_", i)); ++i) {
    fs::path set = models_root() / model / cat("test_data_set_", i);
    out.push_back({read_tensors(set, "input"), read_tensors(set, "output")});
  }
  EXPECT_FALSE(out.empty()) << model;
  return out;
}

inline Source source_of(const fs::path& file, const ImportOptions& options = {}) {
  Imported imported = import_onnx(file, options);
  Source s;
  s.name = imported.name;
  for (ImportedVariant& v : imported.variants) {
    SourceVariant variant{{}, std::move(v.function)};
    for (const Assumption& a : v.assumptions)
      variant.guards.push_back({hone::Guard::Kind::equal, a.condition, Dim(a.holds ? 1 : 0)});
    s.variants.push_back(std::move(variant));
  }
  return s;
}

inline Source model_source(const std::string& model) {
  Source s = source_of(models_root() / model / "model.onnx");
  for (TestSet& set : test_sets(model)) s.samples.push_back(set.inputs);
  return s;
}

// The tolerance of the model sets: |got - expected| <= 1e-4 max|expected| + 1e-3 |expected| for
// f32, 2e-3 and 1e-2 for f16.
inline void expect_close(const std::vector<Array>& got, const std::vector<Array>& expected,
                         const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool narrow = expected[i].dtype() == DType::f16;
    double most = 0;
    for (std::int64_t k = 0; k < expected[i].count(); ++k)
      most = std::max(most, std::fabs(expected[i].real(k)));
    Comparison c = within(got[i], expected[i], (narrow ? 2e-3 : 1e-4) * most, narrow ? 1e-2 : 1e-3);
    EXPECT_TRUE(c.ok) << what << " output " << i << ": " << c;
  }
}

// A cache directory that starts empty and is removed with the test.
class EmptyCache {
 public:
  EmptyCache() {
    directory_ = fs::temp_directory_path() / cat("hone_test_cache_", ::getpid());
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    fs::permissions(directory_, fs::perms::owner_all);
    ::setenv("HONE_CACHE_DIR", directory_.c_str(), 1);
  }
  ~EmptyCache() { fs::remove_all(directory_); }
  const fs::path& directory() const { return directory_; }

 private:
  fs::path directory_;
};

inline std::unique_ptr<Session> session_of(std::shared_ptr<const Plan> plan, int threads = 1) {
  return std::make_unique<Session>(Executable::load(std::move(plan), open_device("cpu")),
                                   SessionOptions{.threads = threads});
}

}  // namespace hone::test
