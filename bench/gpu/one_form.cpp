#include "one_form.h"

#include <charconv>

#include "base/error.h"

namespace hone {

namespace {

struct Chosen {
  const Backend* backend = nullptr;
  std::string form;
  Tuning tuning;
};
Chosen chosen;  // functions of a backend hold no data

class OneForm final : public Target {
 public:
  explicit OneForm(std::unique_ptr<Target> usual) : usual_(std::move(usual)) {}

  const TargetInfo& info() const override { return usual_->info(); }
  std::string_view version() const override { return usual_->version(); }
  std::vector<Proposal> candidates(const GroupSpec& spec) const override {
    std::vector<Proposal> all = usual_->candidates(spec);
    if (auto c = usual_->tuned(spec, chosen.form, chosen.tuning))
      all.insert(all.begin(), {.candidate = std::move(*c), .library = "", .refused = ""});
    return all;
  }
  std::vector<Tuning> space(const GroupSpec& spec, std::string_view candidate) const override {
    return usual_->space(spec, candidate);
  }
  std::optional<Candidate> tuned(const GroupSpec& spec, std::string_view candidate,
                                 const Tuning& tuning) const override {
    return usual_->tuned(spec, candidate, tuning);
  }
  void calibrate(const MachineRates& rates) override { usual_->calibrate(rates); }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    return usual_->compile(jobs, pool);
  }
  Listing list(const CompileJob& job) const override { return usual_->list(job); }

 private:
  std::unique_ptr<Target> usual_;
};

}  // namespace

Backend with_one_form(const Backend& backend, const std::string& form) {
  const std::size_t colon = std::min(form.find(':'), form.size());
  chosen = {&backend, form.substr(0, colon), {}};
  for (std::size_t at = colon; at < form.size();) {
    const std::size_t first = at + 1, equals = form.find('=', first),
                      end = std::min(form.find(',', first), form.size());
    std::int64_t number = 0;
    const char* stop = form.data() + end;
    const bool is_named = first < equals && equals < end;
    if (!is_named || std::from_chars(form.data() + equals + 1, stop, number) !=
                         std::from_chars_result{stop, std::errc()})
      throw UserError("--form ", form, ": expected a form, or form:name=number,name=number");
    chosen.tuning.push_back({form.substr(first, equals - first), number});
    at = end;
  }
  Backend out = backend;
  out.target = [](std::string_view name) -> std::unique_ptr<Target> {
    return std::make_unique<OneForm>(chosen.backend->target(name));
  };
  return out;
}

}  // namespace hone
