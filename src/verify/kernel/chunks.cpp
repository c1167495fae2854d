#include "verify/kernel/chunks.h"

#include <algorithm>

#include "kernel/reach.h"

namespace hone {

namespace {

struct Written {
  int param;
  std::int64_t chunks;
};

// The kernel's only result, and the number of chunks that write it.
std::optional<Written> written_by(const Kernel& k) {
  if (std::ranges::count_if(k.params, &KernelParam::written) != 1 || !k.chunks.is_number())
    return std::nullopt;
  const auto at = std::ranges::find_if(k.params, &KernelParam::written);
  return Written{static_cast<int>(at - k.params.begin()), k.chunks.number()};
}

}  // namespace

bool is_one_launch(const Candidate& c) {
  const auto runs = [](const Candidate::Step& s) { return !s.prepare; };
  return std::ranges::count_if(c.steps, runs) == 1 &&
         std::holds_alternative<Kernel>(std::ranges::find_if(c.steps, runs)->what);
}

bool Chunks::pack_for_some(const Candidate& c) {
  if (c.steps.size() != 2 || !c.steps[0].prepare || !is_one_launch(c)) return false;
  const auto* pack = std::get_if<Kernel>(&c.steps[0].what);
  const auto& reader = std::get<Kernel>(c.steps[1].what);
  const std::optional<Written> packed = pack ? written_by(*pack) : std::nullopt;
  if (!packed || !reader.chunks.is_number()) return false;
  // The candidate's only temporary is the packed operand.
  const auto is_packed = [](const Candidate::Operand& o) {
    return o.kind == Candidate::Operand::Kind::temporary;
  };
  std::vector<Reach> read;
  for (std::int64_t i = 0; i < reader.chunks.number(); ++i) {
    if (!is_some(i, reader.chunks.number())) continue;
    const std::vector<Candidate::Operand>& operands = c.steps[1].operands;
    for (std::size_t p = 0; p < operands.size(); ++p) {
      if (!is_packed(operands[p])) continue;
      const std::optional<Reach> r = reach(reader, static_cast<int>(p), i);
      if (!r) return false;
      read.push_back(*r);
    }
  }
  std::vector<bool> runs;
  for (std::int64_t i = 0; i < packed->chunks; ++i) {
    const std::optional<Reach> made = reach(*pack, packed->param, i);
    if (!made) return false;
    runs.push_back(
        std::ranges::any_of(read, [&](const Reach& other) { return made->meets(other); }));
  }
  packing_ = std::move(runs);
  return true;
}

void Chunks::run(std::int64_t chunks, Body body, void* context) {
  were_several_ = were_several_ || chunks > 1;
  const bool is_backwards = order_ == Order::backwards;
  const bool packs = packing_ && std::ssize(*packing_) == chunks;
  if (which_ == Which::all && !is_backwards && !packs && chunks > 0)
    return body(context, 0, chunks, 0);
  int turn = 0;
  if (which_ == Which::all && !packs) {
    for (std::int64_t end = chunks; end > 0; ++turn) {
      const std::int64_t begin = std::max<std::int64_t>(end - 1 - turn % 3, 0);
      body(context, begin, end, turn % 2);
      end = begin;
    }
    return;
  }
  for (std::int64_t k = 0; k < chunks; ++k) {
    const std::int64_t i = is_backwards ? chunks - 1 - k : k;
    if (packs ? (*packing_)[static_cast<std::size_t>(i)]
              : which_ == Which::all || is_some(i, chunks))
      body(context, i, i + 1, is_backwards ? turn++ % 2 : 0);
  }
}

}  // namespace hone
