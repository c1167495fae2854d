#include "backend/backend.h"

#include "test/extending/extending.h"

namespace hone::extending {

namespace {

// A machine that takes kernels as text.
class TextTarget final : public Target {
 public:
  const TargetInfo& info() const override { return info_; }
  std::string_view version() const override { return "text 1"; }

  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool&) const override {
    std::vector<Binary> out;
    for (const CompileJob& job : jobs) {
      if (!job.kernel->tiles.empty())
        throw UserError("kernel '", job.kernel->name, "': this machine has no tiles");
      const std::string text = print(*job.kernel);
      const auto bytes = std::as_bytes(std::span(text));
      Binary& b = out.emplace_back();
      b.target = info_.name;
      b.code.assign(bytes.begin(), bytes.end());
      b.entries.push_back({job.entry, 0});
    }
    return out;
  }
  Listing list(const CompileJob& job) const override { return {print(*job.kernel), ""}; }

 private:
  TargetInfo info_ = {.name = "text", .vector_bits = 128, .memory_gbytes = 5};
};

std::unique_ptr<Target> make_target(std::string_view) { return std::make_unique<TextTarget>(); }

constexpr std::string_view target_names[] = {"text"};

}  // namespace

constinit const Backend text_backend = {.name = "text",
                                        .target = make_target,
                                        .target_names = target_names,
                                        .libraries = {},
                                        .measure = nullptr};

}  // namespace hone::extending
