#include "plan/plan_file.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "plan/check.h"
#include "plan/footprint.h"
#include "plan/plan_json.h"
#include "plan/written.h"
#include "type/safetensors.h"

namespace hone {

namespace {

constexpr std::string_view version_key = "hone.version", checksum_key = "hone.checksum",
                           plan_key = "hone.plan", hashes_key = "hone.hashes",
                           graph_key = "hone.graph", requires_key = "hone.requires";
constexpr std::string_view no_checksum = "00000000000000000000000000000000";
constexpr std::size_t quick_limit = std::size_t{256} << 20;

// The tensors of a plan, each content once.
class TensorSet {
 public:
  std::string add(std::string_view name, const Array& a) {
    const Hash128 hash = hash128(a.bytes());
    const std::string key = cat(to_hex(hash), ".", a.bytes().size());
    auto [it, is_new] = by_content_.try_emplace(key, 0);
    if (!is_new) return tensors[it->second].name;
    it->second = tensors.size();
    tensors.push_back({unique(name), a.dtype(), a.dims()});
    data.push_back(a.bytes());
    kept_.push_back(a.storage());
    hashes.add(tensors.back().name, to_hex(hash));
    return tensors.back().name;
  }

  std::vector<SafetensorsLayout::Tensor> tensors;
  std::vector<std::span<const std::byte>> data;
  Json hashes = Json::Object();

 private:
  // Plain ASCII; the plan itself keeps names as they are.
  std::string unique(std::string_view wanted) {
    std::string name(wanted);
    std::replace_if(name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }, '_');
    std::string out = name.starts_with("__") ? "tensor." + name : name;
    for (int n = 2; !names_.insert(out).second; ++n) out = cat("tensor.", n, ".", name);
    return out;
  }

  std::unordered_map<std::string, std::size_t> by_content_;
  std::unordered_set<std::string> names_;
  std::vector<Storage> kept_;  // keeps downloaded data alive
};

// What a reader must know to run a plan; a plan of one function without states needs nothing.
constexpr std::string_view features[] = {"entries", "states", "capacity"};
std::string required_features(const Plan& plan) {
  Json out = Json::Array();
  if (plan.entries.size() > 1) out.push(Json(features[0]));
  if (!plan.states.empty()) out.push(Json(features[1]));
  const auto grows = [](const PlanEntry& e) {
    return std::ranges::any_of(e.params, [](const PlanParam& p) { return p.capacity.has_value(); });
  };
  if (std::ranges::any_of(plan.entries, grows)) out.push(Json(features[2]));
  return out.text();
}

// The graph of an entry: the first has the key alone.
std::string graph_key_of(const Plan& plan, std::size_t entry) {
  return entry == 0 ? std::string(graph_key) : cat(graph_key, ".", plan.entries[entry].name);
}

// Checksum of the header with the checksum's own digits set to zero.
std::string header_checksum(std::string header, std::size_t digits_at) {
  header.replace(digits_at, no_checksum.size(), no_checksum);
  return to_hex(hash128(header));
}

// Position of the checksum's digits; npos if absent.
std::size_t checksum_position(std::string_view header) {
  const std::string key = cat('"', checksum_key, "\":\"");
  const std::size_t at = header.find(key);
  const std::size_t digits = at + key.size();
  return at == std::string_view::npos || digits + no_checksum.size() > header.size()
             ? std::string_view::npos
             : digits;
}

const std::string& metadata(const Safetensors& file, std::string_view key, std::string_view path) {
  if (const std::string* text = file.find_metadata(key)) return *text;
  throw UserError(path, ": is a safetensors file, but not a plan: metadata '", key,
                  "' is missing; make a plan with `hone optimize MODEL.onnx`");
}

void check_version(const std::string& version, std::string_view path) {
  if (version == std::to_string(Plan::format_version)) return;
  throw UserError(path, ": has plan format version ", version, ", expected ", Plan::format_version,
                  "; make the plan again with this version of hone");
}

void check_features(const std::string& wanted, std::string_view path) {
  const Json list = Json::parse(wanted, path);
  for (const Json& feature : list.array())
    if (std::ranges::count(features, std::string_view(feature.text_value())) == 0)
      throw UserError(path, ": requires '", feature.text_value(),
                      "', which this version of hone does not have; use a newer version");
}

[[noreturn]] void refuse_damaged(std::string_view path, std::string_view part) {
  throw UserError(path, ": is damaged: the checksum of ", part,
                  " does not match; copy or make the file again");
}

void verify_header(const Safetensors& file, std::string_view path) {
  const std::size_t at = checksum_position(file.header);
  if (at == std::string_view::npos) refuse_damaged(path, "the header");
  if (header_checksum(std::string(file.header), at) != file.header.substr(at, no_checksum.size()))
    refuse_damaged(path, "the header");
}

// Weights of a large file are verified only with VerifyData::all: reading them all would cost more
// than the first run. Code and graph are small.
bool is_verified(std::string_view name, std::size_t all_bytes, VerifyData verify) {
  return verify == VerifyData::all || all_bytes <= quick_limit || name.starts_with("code.") ||
         name.starts_with("graph.");
}

void verify_data(const Safetensors& file, const Json& hashes, VerifyData verify,
                 std::string_view path) {
  std::map<std::string_view, std::string_view> expected;
  for (const auto& [name, hash] : hashes.object()) expected.emplace(name, hash.text_value());
  std::size_t all_bytes = 0;
  for (const SafetensorsEntry& t : file.tensors) all_bytes += t.data.bytes().size();
  for (const SafetensorsEntry& t : file.tensors) {
    auto it = expected.find(t.name);
    const bool is_known = it != expected.end();
    if (!is_known ||
        (is_verified(t.name, all_bytes, verify) && to_hex(hash128(t.data.bytes())) != it->second))
      refuse_damaged(path, cat("tensor '", t.name, "'"));
  }
  for (std::span<const std::byte> hole : file.padding)
    for (std::byte b : hole)
      if (b != std::byte{0}) refuse_damaged(path, "padding");
}

// Heap bytes used while the header is read.
std::size_t header_heap_bytes(const Safetensors& file) {
  std::size_t bytes = heap_bytes(file.metadata) + heap_bytes(file.tensors);
  for (const auto& [key, text] : file.metadata) bytes += heap_bytes(key) + heap_bytes(text);
  for (const SafetensorsEntry& t : file.tensors)
    bytes += heap_bytes(t.name) + heap_bytes(t.data.dims());
  return bytes;
}

Plan parse_plan(const Safetensors& file, std::string_view path) {
  std::unordered_map<std::string_view, const Array*> tensors;
  for (const SafetensorsEntry& t : file.tensors) tensors.emplace(t.name, &t.data);
  const Json json = Json::parse(metadata(file, plan_key, path), path);
  try {
    Plan plan = plan_from_json(json, [&](std::string_view name) {
      auto it = tensors.find(name);
      if (it == tensors.end()) throw UserError("plan: tensor '", name, "' is missing");
      return *it->second;
    });
    plan.reading.transient = heap_bytes(json) + header_heap_bytes(file);
    return plan;
  } catch (const UserError& e) {
    throw UserError(path, ": contains a plan that this version cannot read: ", e.what());
  }
}

}  // namespace

namespace {

// A plan as a file: its header, and the tensors behind it.
struct PlanText {
  TensorSet set;
  Json json;
  SafetensorsMetadata texts;

  explicit PlanText(const Plan& plan)
      : json(plan_to_json(plan,
                          [&](std::string_view name, const Array& a) { return set.add(name, a); })),
        texts({{"format", "hone plan"},
               {std::string(version_key), cat(Plan::format_version)},
               {std::string(checksum_key), std::string(no_checksum)},
               {std::string(hashes_key), set.hashes.text()},
               {std::string(requires_key), required_features(plan)},
               {std::string(plan_key), json.text()}}) {
    for (std::size_t i = 0; i < plan.entries.size(); ++i)
      texts.emplace_back(graph_key_of(plan, i), plan.entries[i].graph);
  }
};

}  // namespace

void write_plan(const std::filesystem::path& path, const Plan& plan) {
  check(plan, path.string());
  PlanText text(plan);
  SafetensorsLayout layout(text.texts, text.set.tensors);
  const std::size_t at = checksum_position(layout.header());
  HONE_ASSERT(at != std::string::npos, "the header holds its checksum");
  const std::string sum = header_checksum(layout.header().substr(8), at - 8);
  layout.header().replace(at, sum.size(), sum);
  write_atomic(path, layout.parts(text.set.data));
}

PlanReading reading_when_written(const Plan& plan) {
  PlanText text(plan);
  SafetensorsLayout layout(text.texts, text.set.tensors);
  PlanReading out;
  for (std::span<const std::byte> part : layout.parts(text.set.data)) out.mapped += part.size();
  out.transient = heap_bytes(text.json);
  for (const auto& [key, value] : text.texts) out.transient += heap_bytes(key) + heap_bytes(value);
  for (const SafetensorsLayout::Tensor& t : text.set.tensors)
    out.transient += sizeof(SafetensorsEntry) + heap_bytes(t.name) + heap_bytes(t.dims);
  return out;
}

namespace {

Plan read_plan(const std::shared_ptr<const MappedFile>& map, VerifyData verify) {
  const std::string& where = map->path();
  const Safetensors file = read_safetensors(map);
  check_version(metadata(file, version_key, where), where);
  check_features(metadata(file, requires_key, where), where);
  verify_header(file, where);
  verify_data(file, Json::parse(metadata(file, hashes_key, where), where), verify, where);
  Plan plan = parse_plan(file, where);
  for (std::size_t i = 0; i < plan.entries.size(); ++i)
    plan.entries[i].graph = metadata(file, graph_key_of(plan, i), where);
  plan.reading.mapped = map->bytes().size();
  check(plan, where);
  return plan;
}

}  // namespace

Plan read_plan(const std::filesystem::path& path, VerifyData verify) {
  return read_plan(MappedFile::open(path), verify);
}

Plan read_plan(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
               std::string name, VerifyData verify) {
  return read_plan(MappedFile::over(std::move(owner), bytes, std::move(name)), verify);
}

}  // namespace hone
