#include "backend/null/target/null_target.h"

namespace hone::null {

namespace {

class NullTarget final : public Target {
 public:
  const TargetInfo& info() const override { return info_; }
  std::string_view version() const override { return "null"; }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool&) const override {
    std::vector<Binary> out(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      out[i].target = info_.name;
      out[i].entries.push_back({jobs[i].entry, 0});
    }
    return out;
  }
  Listing list(const CompileJob&) const override { return {}; }

 private:
  TargetInfo info_ = {.name = "null"};
};

}  // namespace

std::unique_ptr<Target> make_target(std::string_view) { return std::make_unique<NullTarget>(); }

}  // namespace hone::null
