#include "backend/vulkan/driver/api.h"

#include "base/device_lost.h"
#include "base/library.h"

namespace hone::vulkan {

PFN_vkGetInstanceProcAddr open_loader(std::string& why) {
  constexpr const char* soname = "libvulkan.so.1";
  void* library = open_library(soname);
  auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      find_in_library(library, "vkGetInstanceProcAddr"));
  if (!get)
    why = cat("Vulkan's loader ", soname,
              " is not here; install it (Debian: libvulkan1) and a driver of the GPU's vendor");
  return get;
}

void load(InstanceApi& api, PFN_vkGetInstanceProcAddr get, VkInstance instance) {
#define HONE_VULKAN_LOAD(name) api.name = reinterpret_cast<PFN_##name>(get(instance, #name));
  HONE_VULKAN_INSTANCE_FUNCTIONS(HONE_VULKAN_LOAD)
#undef HONE_VULKAN_LOAD
}

void load(DeviceApi& api, const InstanceApi& instance, VkDevice device){
#define HONE_VULKAN_LOAD(name)                                                          \
  api.name = reinterpret_cast<PFN_##name>(instance.vkGetDeviceProcAddr(device, #name)); \
  if (!api.name) throw UserError("the Vulkan driver has no function " #name);
    HONE_VULKAN_DEVICE_FUNCTIONS(HONE_VULKAN_LOAD)
#undef HONE_VULKAN_LOAD
}

std::string meaning(VkResult r) {
  switch (r) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY: the host has no memory left";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY: the device has no memory left";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED: the driver does not start; is another version of its "
             "kernel module loaded?";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST: the driver gave the device up, after a fault or because a "
             "kernel ran too long; open the device again";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED: the host has no address space for the device's memory";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT: a layer that was asked for is not installed (Debian: "
             "vulkan-validationlayers)";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT: the driver lacks an extension";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT: the device lacks a feature";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER: no driver is installed, or it is older than Vulkan 1.2";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS: the driver allows no further allocation";
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      return "VK_ERROR_OUT_OF_POOL_MEMORY: a pool is used up";
    default:
      return cat("VkResult ", static_cast<int>(r));
  }
}

void require(VkResult r, std::string_view what) {
  if (r == VK_SUCCESS) return;
  if (r == VK_ERROR_DEVICE_LOST) throw DeviceLost("vulkan: ", what, " failed: ", meaning(r));
  throw UserError("vulkan: ", what, " failed: ", meaning(r));
}

}  // namespace hone::vulkan
