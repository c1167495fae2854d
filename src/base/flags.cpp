#include "base/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace hone {

namespace {

constexpr Flag table[] = {
    {"HONE_CACHE_DIR", "directory of compiled kernels and measurements", ""},
    {"HONE_CPU_ISA", "the widest instruction set to use, as `hone devices` names it, or native",
     "native"},
    {"HONE_CUDA_DIR",
     "directories of NVIDIA's libraries, separated by colons, searched before the usual ones", ""},
    {"HONE_DEBUG", "how much to log, 0 to 6: devices, passes, plans, sources, graphs, rules", "0",
     6},
    {"HONE_DUMP", "directory that receives graphs, kernels and plans as files", ""},
    {"HONE_MAP_FILES",
     "0: read files into memory instead of mapping them, for files that may change", "1", 1},
    {"HONE_RESTARTS", "set by hone: how often it started itself again after a GPU failed", "0",
     1'000},
    {"HONE_SEED", "seed of the numbers that verification makes up", "0", 1'000'000'000},
    {"HONE_THREADS", "threads of the default pool; 0: as many as the machine offers", "0", 1024},
    {"HONE_VULKAN_DEVICE",
     "the device to use of those that `hone devices` lists as library: number, UUID or part of a "
     "name",
     ""},
    {"HONE_VULKAN_MATRICES", "0: no cooperative matrices, as on devices that have none", "1", 1},
    {"HONE_VULKAN_SUBGROUPS",
     "0: threads of a group reduce through shared memory, not by subgroup operations", "1", 1},
    {"HONE_VULKAN_VALIDATION",
     "1: enable validation layers, and run in reverse what no barrier orders", "0", 1},
};

}  // namespace

std::span<const Flag> all_flags() { return table; }

std::vector<std::string> unknown_flags() {
  std::vector<std::string> out;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable, name = text.substr(0, text.find('='));
    if (name.starts_with("HONE_") && std::ranges::find(table, name, &Flag::name) == std::end(table))
      out.emplace_back(name);
  }
  return out;
}

std::string flag(std::string_view name) {
  for (const Flag& f : table)
    if (f.name == name) {
      const char* set = std::getenv(std::string(name).c_str());
      return std::string(set && *set ? std::string_view(set) : f.fallback);
    }
  throw InternalError("flag ", name, " is not in the table of base/flags.cpp");
}

long flag_number(std::string_view name) {
  const std::string text = flag(name);
  const long most = std::ranges::find(table, name, &Flag::name)->most;
  char* end = nullptr;
  const long n = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end || n < 0 || n > most)
    throw UserError(name, " is '", text, "', expected an integer from 0 to ", most,
                    "; set it to one, or unset it");
  return n;
}

}  // namespace hone
