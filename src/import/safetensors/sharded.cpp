#include "import/safetensors/sharded.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/json.h"

namespace hone {

namespace {

// One of the files, its tensors by name.
struct Shard {
  Safetensors file;
  std::unordered_map<std::string_view, const Array*> tensors;
};

Shard open_shard(const std::filesystem::path& index, const std::string& name) {
  try {
    Shard s{read_safetensors(MappedFile::open_contained(index.parent_path(), name)), {}};
    for (const SafetensorsEntry& e : s.file.tensors) s.tensors.emplace(e.name, &e.data);
    return s;
  } catch (const UserError& e) {
    throw UserError(index.string(), ": file '", name, "': ", e.what());
  }
}

}  // namespace

ShardedSafetensors read_sharded_safetensors(const std::filesystem::path& index) {
  const auto map = MappedFile::open(index);
  const std::string_view text(reinterpret_cast<const char*>(map->bytes().data()),
                              map->bytes().size());
  const Json json = Json::parse(text, map->path(), 16);
  const Json* weight_map = json.is_object() ? json.find("weight_map") : nullptr;
  if (!weight_map || !weight_map->is_object())
    throw UserError(index.string(),
                    ": has no weight_map; is it the index of a sharded safetensors model?");
  ShardedSafetensors out;
  std::map<std::string, Shard> shards;
  std::unordered_set<std::string_view> listed;
  for (const auto& [name, file] : weight_map->object()) {
    if (!file.is_text())
      throw UserError(index.string(), ": weight_map: the file of '", name, "' is not a string");
    const std::string& file_name = file.text_value();
    auto at = shards.find(file_name);
    if (at == shards.end()) {
      at = shards.emplace(file_name, open_shard(index, file_name)).first;
      out.files.push_back(file_name);
      out.file_bytes = checked_add(out.file_bytes,
                                   static_cast<std::int64_t>(at->second.file.map->bytes().size()));
    }
    const auto found = at->second.tensors.find(name);
    if (found == at->second.tensors.end())
      throw UserError(index.string(), ": tensor '", name, "' is not in '", file_name,
                      "', where weight_map says it is");
    out.tensors.push_back({name, *found->second});
    listed.insert(name);
  }
  for (const std::string& file : out.files)
    for (const SafetensorsEntry& e : shards.at(file).file.tensors)
      if (!listed.contains(e.name)) out.unlisted.push_back(e.name);
  return out;
}

}  // namespace hone
