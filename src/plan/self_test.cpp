#include "plan/self_test.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/random.h"
#include "plan/plan_json.h"

namespace hone {

namespace {

// Elements repeat after this many, a prime, so that large inputs cost only a copy and rows still
// differ.
constexpr std::int64_t period = 4093;

void fill(Array& a, const SelfTestInput& in) {
  SplitMix64 numbers(in.seed);
  const auto range = static_cast<std::uint64_t>(std::max(in.high - in.low, 0.0)) + 1;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (is_float(a.dtype()))
      a.set_real(i, in.low + (in.high - in.low) * numbers.unit());
    else
      a.set_integer(
          i, static_cast<std::int64_t>(in.low) + static_cast<std::int64_t>(numbers.next() % range));
}

std::string name_of_content(const Array& a) {
  return cat(to_hex(hash128(a.bytes())), ".", a.bytes().size());
}

// Fields that a run does not read.
constexpr std::array<std::string_view, 8> not_run = {"strategy",   "verification", "measured",
                                                     "strategies", "graph_arrays", "machine",
                                                     "content",    "self_tests"};

Json without(const Json& object, std::span<const std::string_view> keys) {
  Json out = Json::Object{};
  for (const auto& [key, value] : object.object())
    if (std::ranges::find(keys, key) == keys.end()) out.add(key, value);
  return out;
}

Hash128 hash_of(const Json& plan) {
  constexpr std::string_view records[] = {"groups"};
  std::string text;
  const Json run = without(plan, not_run);
  for (const auto& [key, value] : run.object()) {
    text += key;
    if (key != "variants") {
      text += value.text();
      continue;
    }
    for (const Json& v : value.array()) text += without(v, records).text();
  }
  return hash128(text);
}

}  // namespace

Array self_test_array(const SelfTestInput& in) {
  if (in.given) return *in.given;
  Array whole = Array::zeros(in.dtype, in.dims);
  Array first = Array::zeros(in.dtype, {std::min(whole.count(), period)});
  fill(first, in);
  const std::span<std::byte> to = whole.writable_bytes();
  const std::span<const std::byte> from = first.bytes();
  for (std::size_t at = 0; at < to.size(); at += from.size())
    std::memcpy(to.data() + at, from.data(), std::min(from.size(), to.size() - at));
  return whole;
}

SelfTestResult self_test_result(const Array& a) {
  constexpr std::int64_t most = 64;
  SelfTestResult out{a.dims(), hash128(a.bytes()), {}, {}, 0};
  const std::int64_t count = a.count(), samples = std::min(count, most);
  for (std::int64_t i = 0; i < samples; ++i) {
    // From the first to the last element, at varying positions within rows.
    const std::int64_t at = samples == 1 ? 0
                                         : i * ((count - 1) / (samples - 1)) +
                                               i * ((count - 1) % (samples - 1)) / (samples - 1);
    out.places.push_back(at);
    out.values.push_back(is_float(a.dtype()) ? a.real(at) : static_cast<double>(a.integer(at)));
  }
  return out;
}

Hash128 content_hash(const Plan& plan) {
  return hash_of(
      plan_to_json(plan, [](std::string_view, const Array& a) { return name_of_content(a); }));
}

Hash128 content_hash_when_read(const Plan& plan) {
  std::map<std::string, Array, std::less<>> arrays;
  // The plan that is read shares its arrays with the first, so the same bytes occur twice or more.
  struct Met {
    std::string name;
    Array array;  // keeps the bytes alive; the plan owns those of code
  };
  std::map<std::pair<const std::byte*, std::size_t>, Met> met;
  const auto name_of = [&](std::string_view, const Array& a) {
    Met& m = met[{a.bytes().data(), a.bytes().size()}];
    if (m.name.empty()) {
      m = {name_of_content(a), a};
      arrays.try_emplace(m.name, a);
    }
    return m.name;
  };
  const Json json = plan_to_json(plan, name_of);
  const Plan read =
      plan_from_json(json, [&](std::string_view name) { return arrays.find(name)->second; });
  return hash_of(plan_to_json(read, name_of));
}

Plan only_variant(const Plan& plan, std::uint32_t variant) {
  Plan out = plan;
  Variant one = std::move(out.variants.at(variant));
  out.variants.clear();
  out.variants.push_back(std::move(one));
  out.self_tests.clear();  // they name variants by their places in the whole plan
  return out;
}

}  // namespace hone
