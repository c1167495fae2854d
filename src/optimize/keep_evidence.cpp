#include "optimize/keep_evidence.h"

#include "base/replace_file.h"
#include "compile/evidence.h"
#include "import/tensor_file.h"

namespace hone {

namespace fs = std::filesystem;

fs::path keep_evidence(const fs::path& directory, const std::string& model, const Refusal& refusal,
                       const CompileOptions& given) {
  fs::create_directories(directory);
  CompileOptions options = given;
  options.strategy = refusal.strategy;
  const Evidence e = evidence_of(refusal.function, refusal.sizes, options);
  const std::string name = cat(model, "-", refusal.strategy);
  std::string comment =
      cat("hone ", HONE_VERSION, ", strategy ", refusal.strategy, "\n", refusal.message, "\n");
  if (!e.fault.empty()) {
    comment += cat("reduced: ", e.fault, "\n");
  } else {
    comment +=
        "not reduced: random inputs do not show the fault; the inputs that do are in the .npy "
        "files here\n";
    for (std::size_t i = 0; i < refusal.inputs.size(); ++i)
      write_npy(directory / fit_file_name(name, cat("-input_", i, ".npy")), refusal.inputs[i]);
  }
  const fs::path file = directory / fit_file_name(name, ".hone-ir");
  write_atomic(file, case_text(e.found, comment));
  return file;
}

}  // namespace hone
