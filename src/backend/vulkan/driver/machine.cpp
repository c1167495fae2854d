#include "backend/vulkan/driver/machine.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "base/flags.h"
#include "base/log.h"

namespace hone::vulkan {

namespace {

std::atomic<int> messages = 0;

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  ++messages;
  log_warning(cat("Vulkan validation: ", data->pMessage));
  return VK_FALSE;
}

std::string hex(const std::uint8_t* bytes, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
    if (i == 3 || i == 5 || i == 7 || i == 9) out += '-';
  }
  return out;
}

// Features that kernels need on every device, but this one lacks.
std::string missing_of(const Adapter& a) {
  std::string out;
  const auto need = [&](bool has, std::string_view what) {
    if (!has) out += cat(out.empty() ? "lacks " : ", ", what);
  };
  need(a.api_version >= VK_API_VERSION_1_2, "Vulkan 1.2");
  need(a.features12.bufferDeviceAddress, "bufferDeviceAddress");
  need(a.features12.scalarBlockLayout, "scalarBlockLayout");
  need(a.features12.timelineSemaphore, "timelineSemaphore");
  need(a.features.shaderInt64, "shaderInt64");
  need(a.queue_family != VK_QUEUE_FAMILY_IGNORED, "a queue for compute");
  return out;
}

bool has_extension(const InstanceApi& api, VkPhysicalDevice device, std::string_view name) {
  std::uint32_t count = 0;
  api.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  api.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return std::ranges::any_of(
      all, [&](const VkExtensionProperties& e) { return name == e.extensionName; });
}

std::string_view component_name(VkComponentTypeKHR t) {
  switch (t) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR:
      return "f16";
    case VK_COMPONENT_TYPE_FLOAT32_KHR:
      return "f32";
    case VK_COMPONENT_TYPE_FLOAT64_KHR:
      return "f64";
    case VK_COMPONENT_TYPE_SINT8_KHR:
      return "i8";
    case VK_COMPONENT_TYPE_SINT32_KHR:
      return "i32";
    case VK_COMPONENT_TYPE_UINT8_KHR:
      return "u8";
    case VK_COMPONENT_TYPE_UINT32_KHR:
      return "u32";
    default:
      return "";
  }
}

// Reads which sizes of full subgroups a kernel may require.
void describe_subgroups(const InstanceApi& api, Adapter& a) {
  if (a.api_version < VK_API_VERSION_1_3) return;
  VkPhysicalDeviceVulkan13Features f13{};
  f13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  VkPhysicalDeviceFeatures2 f{};
  f.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f.pNext = &f13;
  api.vkGetPhysicalDeviceFeatures2(a.handle, &f);
  VkPhysicalDeviceVulkan13Properties p13{};
  p13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  VkPhysicalDeviceProperties2 p{};
  p.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  p.pNext = &p13;
  api.vkGetPhysicalDeviceProperties2(a.handle, &p);
  if (f13.subgroupSizeControl && f13.computeFullSubgroups &&
      (p13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    a.least_subgroup = p13.minSubgroupSize, a.most_subgroup = p13.maxSubgroupSize;
    a.group_subgroups = p13.maxComputeWorkgroupSubgroups;
  }
}

// Reads the device's VK_KHR_cooperative_matrix properties; omits types that have no name here.
void describe_matrices(const InstanceApi& api, Adapter& a) {
  if (a.api_version < VK_API_VERSION_1_3 ||
      !api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
      !has_extension(api, a.handle, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
    return;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};
  matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  VkPhysicalDeviceFeatures2 f{};
  f.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f.pNext = &matrices;
  api.vkGetPhysicalDeviceFeatures2(a.handle, &f);
  if (!matrices.cooperativeMatrix) return;
  std::uint32_t count = 0;
  api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(a.handle, &count, nullptr);
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count);
  for (auto& m : all) m.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(a.handle, &count, all.data());
  for (const auto& m : all) {
    const MatrixShape shape{m.MSize, m.NSize, m.KSize, m.AType, m.ResultType};
    const bool is_plain = m.AType == m.BType && m.CType == m.ResultType &&
                          !m.saturatingAccumulation && m.scope == VK_SCOPE_SUBGROUP_KHR &&
                          !component_name(m.AType).empty() && !component_name(m.CType).empty();
    if (is_plain && std::ranges::find(a.matrices, shape) == a.matrices.end())
      a.matrices.push_back(shape);
  }
  std::ranges::sort(a.matrices, {}, &MatrixShape::text);
  constexpr std::uint32_t subgroup = 32;
  const MatrixShape used{16, 16, 16, VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR};
  a.multiplies_matrices = a.features12.vulkanMemoryModel && a.features12.shaderFloat16 &&
                          a.least_subgroup <= subgroup && subgroup <= a.most_subgroup &&
                          std::ranges::find(a.matrices, used) != a.matrices.end() &&
                          flag_number("HONE_VULKAN_MATRICES") != 0;
}

Adapter describe(const Instance& instance, VkPhysicalDevice device) {
  const InstanceApi& api = instance.api;
  Adapter a;
  a.handle = device;
  VkPhysicalDeviceVulkan12Properties p12{};
  p12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  VkPhysicalDeviceVulkan11Properties p11{};
  p11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  p11.pNext = &p12;
  VkPhysicalDeviceProperties2 p{};
  p.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  p.pNext = &p11;
  api.vkGetPhysicalDeviceProperties2(device, &p);
  a.name = p.properties.deviceName;
  a.driver = cat(p12.driverName, " ", p12.driverInfo);
  a.uuid = hex(p11.deviceUUID, VK_UUID_SIZE);
  a.api_version = p.properties.apiVersion;
  a.cache_version = p.properties.driverVersion;
  a.is_software = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  a.limits = p.properties.limits;
  a.subgroup = p11.subgroupSize;
  constexpr VkSubgroupFeatureFlags joins = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                           VK_SUBGROUP_FEATURE_VOTE_BIT |
                                           VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  a.joins_in_subgroups = (p11.subgroupSupportedOperations & joins) == joins &&
                         (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                         flag_number("HONE_VULKAN_SUBGROUPS") != 0;
  a.shuffles_in_subgroups =
      a.joins_in_subgroups && (p11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
  a.max_allocation = p11.maxMemoryAllocationSize;
  a.keeps_nan = p12.shaderSignedZeroInfNanPreserveFloat32;
  a.keeps_denormals = p12.shaderDenormPreserveFloat32;
  a.converts_halves = p12.shaderSignedZeroInfNanPreserveFloat16 &&
                      p12.shaderDenormPreserveFloat16 && p12.shaderRoundingModeRTEFloat16 &&
                      p12.shaderRoundingModeRTEFloat32 && p12.shaderRoundingModeRTEFloat64;
  // Vulkan allows exp2 an error of 3 + 2 |x| units; NVIDIA's instruction has 2.
  a.raises_two = p12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  api.vkGetPhysicalDeviceMemoryProperties(device, &a.memory);
  a.features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  a.features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  a.features11.pNext = &a.features12;
  VkPhysicalDeviceFeatures2 f{};
  f.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f.pNext = &a.features11;
  api.vkGetPhysicalDeviceFeatures2(device, &f);
  a.features = f.features;
  a.features11.pNext = a.features12.pNext = nullptr;
  describe_subgroups(api, a);
  describe_matrices(api, a);
  std::uint32_t count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  a.queue_family = VK_QUEUE_FAMILY_IGNORED;
  for (std::uint32_t i = 0; i < count && a.queue_family == VK_QUEUE_FAMILY_IGNORED; ++i)
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) a.queue_family = i;
  if (a.queue_family != VK_QUEUE_FAMILY_IGNORED)
    a.time_bits = families[a.queue_family].timestampValidBits;
  a.why_not = missing_of(a);
  return a;
}

}  // namespace

int validation_messages() { return messages; }

Instance::Instance() {
  std::string why;
  const PFN_vkGetInstanceProcAddr get = open_loader(why);
  if (!get) throw UserError(why);
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "hone";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const bool validates = flag_number("HONE_VULKAN_VALIDATION") != 0;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  const VkValidationFeatureEnableEXT enabled[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT validation{};
  validation.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = enabled;
  VkDebugUtilsMessengerCreateInfoEXT listener{};
  listener.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  listener.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                             VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  listener.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  listener.pfnUserCallback = on_message;
  if (validates) {
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
    validation.pNext = &listener;
    info.pNext = &validation;
  }
  const VkResult r = create(&info, nullptr, &handle);
  if (r != VK_SUCCESS)
    throw UserError("no Vulkan driver can be loaded: ", meaning(r),
                    "; install a driver (Debian: mesa-vulkan-drivers, or the GPU vendor's)");
  load(api, get, handle);
  if (!validates) return;
  const auto listen = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      get(handle, "vkCreateDebugUtilsMessengerEXT"));
  destroy_messenger = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      get(handle, "vkDestroyDebugUtilsMessengerEXT"));
  listen(handle, &listener, nullptr, &messenger);
}

Instance::~Instance() {
  if (messenger) destroy_messenger(handle, messenger, nullptr);
  if (handle) api.vkDestroyInstance(handle, nullptr);
}

// Never destroyed: the loader would unload the drivers with the last instance, and some leak
// resources each time. NVIDIA's cannot be loaded again after about 15 times.
std::shared_ptr<Instance> open_instance() {
  static std::mutex mutex;
  static auto* const known = new std::shared_ptr<Instance>;
  const std::scoped_lock lock(mutex);
  if (!*known) *known = std::make_shared<Instance>();
  return *known;
}

std::vector<Adapter> adapters(const Instance& instance) {
  std::uint32_t count = 0;
  require(instance.api.vkEnumeratePhysicalDevices(instance.handle, &count, nullptr),
          "listing devices");
  std::vector<VkPhysicalDevice> handles(count);
  require(instance.api.vkEnumeratePhysicalDevices(instance.handle, &count, handles.data()),
          "listing devices");
  std::vector<Adapter> out;
  for (VkPhysicalDevice h : handles) out.push_back(describe(instance, h));
  return out;
}

std::string MatrixShape::text() const {
  return cat(m, "x", n, "x", k, " ", component_name(of), " to ", component_name(sums));
}

std::string Adapter::api_text() const {
  return cat(VK_API_VERSION_MAJOR(api_version), ".", VK_API_VERSION_MINOR(api_version), ".",
             VK_API_VERSION_PATCH(api_version));
}

std::string Adapter::summary() const {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      bytes = std::max<std::uint64_t>(bytes, memory.memoryHeaps[i].size);
  std::string has;
  const auto add = [&](bool is_there, std::string_view what) {
    if (is_there) has += cat(", ", what);
  };
  add(features12.shaderFloat16, "f16");
  add(features.shaderFloat64, "f64");
  add(features12.shaderInt8, "8-bit integers");
  add(features.shaderInt16, "16-bit integers");
  add(features12.storageBuffer8BitAccess, "8-bit storage");
  add(features11.storageBuffer16BitAccess, "16-bit storage");
  add(joins_in_subgroups, "subgroup arithmetic");
  add(keeps_denormals, "denormals");
  add(converts_halves, "exact conversions of f16");
  for (const MatrixShape& m : matrices) add(true, cat("matrices ", m.text()));
  return cat(name, " (", driver, "), ", bytes >> 30, " GiB, groups of ",
             limits.maxComputeWorkGroupInvocations, " threads and ",
             limits.maxComputeSharedMemorySize >> 10, " KiB, subgroups of ", subgroup, has, ", ",
             uuid, is_software ? ", software: used only when HONE_VULKAN_DEVICE names it" : "",
             why_not.empty() ? "" : ", not used: it ", why_not);
}

Adapter choose_adapter(const Instance& instance) {
  const std::vector<Adapter> all = adapters(instance);
  if (all.empty())
    throw UserError(
        "Vulkan has no device here: the loader is installed, but no driver; install one (Debian: "
        "mesa-vulkan-drivers, or the GPU vendor's)");
  const std::string wanted = flag("HONE_VULKAN_DEVICE");
  std::string list;
  for (std::size_t i = 0; i < all.size(); ++i)
    list += cat(i ? "; " : "", i, ": ", all[i].name, ", ", all[i].uuid);
  const Adapter* best = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Adapter& a = all[i];
    const bool is_named = wanted == cat(i) || wanted == a.uuid ||
                          (wanted.size() > 2 && a.name.find(wanted) != std::string::npos);
    if (!best && (wanted.empty() ? !a.is_software && a.why_not.empty() : is_named)) best = &a;
  }
  if (!best && wanted.empty())
    throw UserError("no GPU here can run Vulkan kernels; found: ", list,
                    "; set HONE_VULKAN_DEVICE=0 to use the first, even if it is software");
  if (!best) throw UserError("HONE_VULKAN_DEVICE is '", wanted, "', expected one of: ", list);
  if (!best->why_not.empty())
    throw UserError("Vulkan device '", best->name, "' ", best->why_not, ", which kernels need");
  return *best;
}

Machine::Machine() : Machine(open_instance(), choose_adapter(*open_instance())) {}

Machine::Machine(std::shared_ptr<Instance> opened, Adapter chosen)
    : instance(std::move(opened)), adapter(std::move(chosen)) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queues{};
  queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queues.queueFamilyIndex = adapter.queue_family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  // Enables the device's features that kernels can use.
  VkPhysicalDeviceVulkan12Features f12{};
  f12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  f12.bufferDeviceAddress = f12.scalarBlockLayout = f12.timelineSemaphore = VK_TRUE;
  f12.storageBuffer8BitAccess = adapter.features12.storageBuffer8BitAccess;
  f12.shaderInt8 = adapter.features12.shaderInt8;
  f12.shaderFloat16 = adapter.features12.shaderFloat16;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};
  matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  matrices.cooperativeMatrix = VK_TRUE;
  VkPhysicalDeviceVulkan13Features f13{};
  f13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  f13.subgroupSizeControl = f13.computeFullSubgroups = VK_TRUE;
  if (adapter.most_subgroup > 0) f12.pNext = &f13;
  if (adapter.multiplies_matrices) {
    f12.vulkanMemoryModel = VK_TRUE;
    f13.pNext = &matrices;
  }
  VkPhysicalDeviceVulkan11Features f11{};
  f11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  f11.pNext = &f12;
  f11.storageBuffer16BitAccess = adapter.features11.storageBuffer16BitAccess;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  VkPhysicalDeviceFeatures2 f{};
  f.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f.pNext = &f11;
  f.features.shaderInt64 = VK_TRUE;
  f.features.shaderInt16 = adapter.features.shaderInt16;
  f.features.shaderFloat64 = adapter.features.shaderFloat64;
  info.pNext = &f;
  const char* const extensions[] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME};
  if (adapter.multiplies_matrices) {
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = extensions;
  }
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queues;
  require(instance->api.vkCreateDevice(adapter.handle, &info, nullptr, &handle),
          cat("opening '", adapter.name, "'"));
  load(api, instance->api, handle);
  api.vkGetDeviceQueue(handle, adapter.queue_family, 0, &queue);
}

Machine::~Machine() {
  if (!handle) return;
  api.vkDeviceWaitIdle(handle);
  api.vkDestroyDevice(handle, nullptr);
}

void Machine::require(VkResult r, std::string_view what) {
  if (r == VK_ERROR_DEVICE_LOST) is_lost_ = true;
  vulkan::require(r, what);
}

void Machine::submit(const VkSubmitInfo& info) {
  const std::scoped_lock lock(queue_mutex);
  require(api.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE), "handing work to the device");
}

}  // namespace hone::vulkan
