// The devices that Vulkan's drivers offer, and one of them opened.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backend/vulkan/driver/api.h"

namespace hone::vulkan {

// The process's instance; lives as long as the process.
struct Instance {
  Instance();
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle = VK_NULL_HANDLE;
  InstanceApi api;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger = nullptr;
};

// Matrices that subgroups multiply: m x k by k x n, of these types.
struct MatrixShape {
  std::uint32_t m = 0, n = 0, k = 0;
  VkComponentTypeKHR of = VK_COMPONENT_TYPE_FLOAT16_KHR, sums = VK_COMPONENT_TYPE_FLOAT32_KHR;

  std::string text() const;  // "16x16x16 f16 to f32"
  bool operator==(const MatrixShape&) const = default;
};

// One device as its driver describes it.
struct Adapter {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string name, driver, uuid;
  std::uint32_t api_version = 0;
  bool is_software = false;  // the processor plays the device
  VkPhysicalDeviceLimits limits{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::uint32_t subgroup = 1;
  bool joins_in_subgroups = false;  // arithmetic and votes of the threads that run in step
  std::uint64_t max_allocation = 0;
  std::uint32_t queue_family = 0;
  std::uint32_t time_bits = 0;  // of the queue's clock; 0: it has none
  std::uint32_t cache_version = 0;
  VkPhysicalDeviceFeatures features{};
  VkPhysicalDeviceVulkan11Features features11{};
  VkPhysicalDeviceVulkan12Features features12{};
  bool keeps_nan = false, keeps_denormals = false;      // of f32, when a shader asks for it
  bool converts_halves = false;                         // exactly, when a shader asks for it
  bool raises_two = false;                              // exp2 is within 2 units in the last place
  std::uint32_t least_subgroup = 0, most_subgroup = 0;  // that a shader may ask for; 0: none
  std::vector<MatrixShape> matrices;                    // in order of their text, each once
  // Subgroups of 32 multiply 16 x 16 elements of f16 into f32, unless HONE_VULKAN_MATRICES=0.
  bool multiplies_matrices = false;
  std::string why_not;  // it cannot run kernels; empty: it can

  std::string api_text() const;  // "1.3.230"
  // Name, driver, memory, groups of threads, what kernels may use, UUID, and why it is not used.
  std::string summary() const;
};

// Throws UserError when there is no loader or no driver.
std::shared_ptr<Instance> open_instance();
std::vector<Adapter> adapters(const Instance&);
// By HONE_VULKAN_DEVICE: an index, a part of the name or the UUID; else the first one that is not
// software, which would be slower than the processor's own backend. Throws UserError that lists
// all.
Adapter choose_adapter(const Instance&);

// Messages of the validation layers since the process began; they are on with
// HONE_VULKAN_VALIDATION=1.
int validation_messages();

// An open device. May be used by several threads; the queue by one at a time.
struct Machine {
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Submits under a lock. Throws UserError when the device is lost.
  void submit(const VkSubmitInfo&);

  std::shared_ptr<Instance> instance;
  Adapter adapter;
  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::mutex queue_mutex;
  DeviceApi api;
  // Changes when a buffer or pipeline is gone, so that what was recorded with it is not used again.
  std::atomic<std::uint64_t> generation = 0;
};

}  // namespace hone::vulkan
