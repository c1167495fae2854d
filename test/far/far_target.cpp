#include <cstring>

#include "test/far/far.h"

namespace hone::test {

namespace {

// The code of a kernel is its text.
class FarTarget final : public Target {
 public:
  FarTarget() {
    info_.name = "far-1";
    info_.group_threads = 32;
    info_.group_bytes = 16 << 10;
  }
  const TargetInfo& info() const override { return info_; }
  std::string_view version() const override { return "far"; }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool&) const override {
    std::vector<Binary> out;
    for (const CompileJob& job : jobs) {
      const std::string text = print(*job.kernel);
      Binary& b = out.emplace_back();
      b.target = info_.name;
      b.code.resize(text.size() + 1);
      std::memcpy(b.code.data(), text.c_str(), text.size() + 1);
      b.entries.push_back({job.entry, 0});
    }
    return out;
  }
  Listing list(const CompileJob& job) const override { return {print(*job.kernel), {}}; }

 private:
  TargetInfo info_;
};

}  // namespace

const Backend& far_backend() {
  static const Backend far = [] {
    Backend b{};
    b.name = "far";
    b.target = [](std::string_view) -> std::unique_ptr<Target> {
      return std::make_unique<FarTarget>();
    };
    static constexpr std::string_view target_names[] = {"far-1"};
    b.target_names = target_names;
    return b;
  }();
  return far;
}

namespace {

FarPace& listed_pace() {
  static FarPace pace;
  return pace;
}

}  // namespace

void set_far_pace(FarPace pace) { listed_pace() = std::move(pace); }

FarListed::FarListed()
    : device_({"far", [] { return open_far_device(1, listed_pace()); }, nullptr, 2}),
      backend_(far_backend()) {}

}  // namespace hone::test
