#include "plan/content_hash.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "plan/plan_json.h"

namespace hone {

namespace {

std::string name_of_content(const Array& a) {
  return cat(to_hex(hash128(a.bytes())), ".", a.bytes().size());
}

// Fields that a run does not read.
constexpr std::array<std::string_view, 5> not_run = {"strategy", "verification", "measured",
                                                     "machine", "content"};
constexpr std::array<std::string_view, 3> not_run_of_entry = {"strategies", "graph_arrays",
                                                              "self_tests"};

Json without(const Json& object, std::span<const std::string_view> keys) {
  Json out = Json::Object{};
  for (const auto& [key, value] : object.object())
    if (std::ranges::find(keys, key) == keys.end()) out.add(key, value);
  return out;
}

// The text of an object whose list `key` is given element by element.
template <class F>
std::string text_of(const Json& object, std::string_view key, const F& element) {
  std::string text;
  for (const auto& [name, value] : object.object()) {
    text += name;
    if (name != key) {
      text += value.text();
      continue;
    }
    for (const Json& e : value.array()) text += element(e);
  }
  return text;
}

Hash128 hash_of(const Json& plan) {
  static constexpr std::string_view records[] = {"groups"};
  const auto variant = [](const Json& v) { return without(v, records).text(); };
  const auto entry = [&](const Json& e) {
    return text_of(without(e, not_run_of_entry), "variants", variant);
  };
  return hash128(text_of(without(plan, not_run), "entries", entry));
}

}  // namespace

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

}  // namespace hone
