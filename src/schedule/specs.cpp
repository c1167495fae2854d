#include "schedule/specs.h"

#include <algorithm>

#include "base/hash.h"
#include "kernel/in_place.h"
#include "schedule/cost.h"
#include "schedule/views.h"

namespace hone {

std::uint64_t Specs::Key::hash() const {
  std::uint64_t h = mix(function, prepare * 2 + is_aligned);
  for (auto [result, param] : updates) h = mix(h, static_cast<std::uint64_t>(result + param + 1));
  for (bool w : is_weight) h = mix(h, w);
  for (const Dim& d : strides) h = mix(h, d.hash());
  return h;
}

std::uint32_t Specs::function(const Function& f) {
  const std::uint64_t h = f.hash();
  auto [first, last] = by_hash_.equal_range(h);
  for (; first != last; ++first)
    if (same_structure(functions_[first->second], f)) return first->second;
  functions_.push_back(f);
  latest_.push_back(none);
  auto index = static_cast<std::uint32_t>(functions_.size() - 1);
  by_hash_.emplace(h, index);
  return index;
}

void Specs::add_strides(const View& v) {
  const std::size_t first = key_.strides.size();
  key_.strides.insert(key_.strides.end(), v.strides.begin(), v.strides.end());
  normalize_strides(v.dims, std::span(key_.strides).subspan(first));
}

// Slots begin at such multiples; views inside one may not.
bool Specs::is_aligned(const ScheduledGroup& group) const {
  return tells_alignment_ && std::ranges::all_of(group.views, [](const View& v) {
           return mod(v.offset, vector_alignment) == Dim(0);
         });
}

// False if strides of axes of size 1 would have to be normalized first.
bool Specs::fits(const Key& key, bool prepare, const Updates& updates,
                 const ScheduledGroup& group) const {
  std::size_t at = 0;
  auto has_strides = [&](const View& v) {
    for (std::size_t i = 0; i < v.strides.size(); ++i, ++at)
      if (at == key.strides.size() || v.dims[i] == Dim(1) || v.strides[i] != key.strides[at])
        return false;
    return true;
  };
  if (key.prepare != prepare || key.updates != updates || key.is_aligned != is_aligned(group) ||
      key.is_weight.size() != group.params().size())
    return false;
  for (std::size_t i = 0; i < group.params().size(); ++i)
    if (key.is_weight[i] != slots_.is_weight(group.params()[i].buffer) ||
        !has_strides(group.params()[i]))
      return false;
  for (const View& v : group.results())
    if (!has_strides(v)) return false;
  return at == key.strides.size();
}

std::uint32_t Specs::spec(std::uint32_t function, bool prepare, const Updates& updates,
                          const ScheduledGroup& group) {
  std::uint32_t& latest = latest_[function];
  if (latest != none && fits(keys_[latest], prepare, updates, group)) return latest;
  key_.function = function;
  key_.prepare = prepare;
  key_.is_aligned = is_aligned(group);
  key_.updates = updates;
  key_.is_weight.clear();
  key_.strides.clear();
  for (const View& v : group.params()) {
    key_.is_weight.push_back(slots_.is_weight(v.buffer));
    add_strides(v);
  }
  for (const View& v : group.results()) add_strides(v);
  return latest = find(group);
}

std::uint32_t Specs::find(const ScheduledGroup& group) {
  const std::uint64_t h = key_.hash();
  auto [first, last] = by_key_.equal_range(h);
  for (; first != last; ++first)
    if (keys_[first->second] == key_) return first->second;
  by_key_.emplace(h, static_cast<std::uint32_t>(keys_.size()));
  keys_.push_back(key_);
  return add(group);
}

std::uint32_t Specs::add(const ScheduledGroup& group) {
  const Function& f = functions_[key_.function];
  ScheduledSpec out;
  out.spec.function = f;
  for (const View& v : group.params()) out.spec.param_strides.push_back(normal_strides(v));
  for (const View& v : group.results()) out.spec.result_strides.push_back(normal_strides(v));
  out.spec.param_is_weight = key_.is_weight;
  out.spec.updates = key_.updates;
  out.spec.prepares = key_.prepare;
  out.spec.is_aligned = key_.is_aligned;
  out.prepare = key_.prepare;
  if (in_place_) out.in_place = in_place_pairs(f);
  out.name = group_name(f);
  out.bytes = ideal_bytes(out.spec);
  out.flops = ideal_flops(f);
  out_.specs.push_back(std::move(out));
  return static_cast<std::uint32_t>(out_.specs.size() - 1);
}

}  // namespace hone
