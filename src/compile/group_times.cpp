#include "compile/group_times.h"

#include <algorithm>

#include "backend/devices/devices.h"
#include "base/error.h"
#include "base/json.h"
#include "base/machine.h"
#include "compile/build_id.h"

namespace hone {

namespace {

Json to_json(const CandidateRecord& r) {
  return Json::Object{{"name", r.name}, {"ms", r.ms},           {"low", r.low},
                      {"high", r.high}, {"refused", r.refused}, {"error", r.error}};
}

CandidateRecord record_of(const Json& j) {
  CandidateRecord r;
  r.name = j.at("name").text_value();
  r.ms = j.at("ms").real();
  r.low = j.at("low").real();
  r.high = j.at("high").real();
  r.refused = j.at("refused").text_value();
  r.error = j.at("error").real();
  return r;
}

}  // namespace

GroupTimes::GroupTimes(Store& store, std::string_view target, const Device* device, int threads)
    : store_(store),
      machine_(cat("times ", build_id(), " ", target, " ", device ? device->name() : "", " ",
                   device ? device->description() : "", " ", this_machine().processor, " ",
                   threads)) {}

Hash128 GroupTimes::key(std::string_view group) const {
  return hash128(cat(machine_, "\n", group));
}

std::optional<GroupTimes::Known> GroupTimes::find(std::string_view group) const {
  const std::optional<std::vector<std::byte>> entry = store_.find(key(group));
  if (!entry) return std::nullopt;
  try {
    const Json j = Json::parse({reinterpret_cast<const char*>(entry->data()), entry->size()},
                               "measured times");
    Known known{.winner = j.at("winner").text_value(), .library = j.at("library").text_value()};
    for (const Json& form : j.at("forms").array()) {
      Form& f = known.forms.emplace_back(form.at("base").text_value());
      for (const auto& [name, value] : form.at("tuning").object())
        f.tuning.emplace_back(name, value.integer());
    }
    for (const Json& r : j.at("candidates").array()) known.records.push_back(record_of(r));
    return known;
  } catch (const UserError&) {
    return std::nullopt;  // not written by store(): measure again and overwrite
  }
}

void GroupTimes::store(std::string_view group, const Known& known) const {
  Json records = Json::Array{};
  for (const CandidateRecord& r : known.records) records.push(to_json(r));
  Json forms = Json::Array{};
  for (const Form& f : known.forms) {
    Json tuning = Json::Object{};
    for (const auto& [name, value] : f.tuning) tuning.add(name, value);
    forms.push(Json::Object{{"base", f.base}, {"tuning", tuning}});
  }
  const Json entry = Json::Object{{"winner", known.winner},
                                  {"forms", forms},
                                  {"library", known.library},
                                  {"candidates", records}};
  const std::string text = entry.text();
  store_.store(key(group), std::as_bytes(std::span(text)));
}

std::string library_version(std::string_view library) {
  const std::vector<LibraryStatus> all = device_libraries();
  const auto found = std::ranges::find(all, library, &LibraryStatus::name);
  return found == all.end() ? std::string(library) : cat(library, " ", found->version);
}

}  // namespace hone
