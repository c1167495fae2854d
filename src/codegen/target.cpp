#include "codegen/target.h"

#include "kernel/forms/forms.h"

namespace hone {

std::vector<Proposal> Target::candidates(const GroupSpec& spec) const {
  std::vector<Proposal> out;
  for (Candidate& c : generated_candidates(spec, info())) out.push_back({std::move(c), "", ""});
  return out;
}

// Two forms may share a name; a group has the form of only one of them.
std::vector<Tuning> Target::space(const GroupSpec& spec, std::string_view candidate) const {
  for (const KernelForm& b : kernel_forms(info()))
    if (b.name == candidate)
      if (std::vector<Tuning> space = b.space(spec, info()); !space.empty()) return space;
  return {};
}

std::optional<Candidate> Target::tuned(const GroupSpec& spec, std::string_view candidate,
                                       const Tuning& tuning) const {
  for (const KernelForm& b : kernel_forms(info()))
    if (b.name == candidate)
      if (std::optional<Candidate> c = built(b, spec, info(), tuning)) return c;
  return std::nullopt;
}

}  // namespace hone
