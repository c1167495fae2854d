// The devices that Vulkan's drivers offer, and an opened device.
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

// A matrix product that subgroups support: m x k by k x n, of these types.
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
  bool is_software = false;  // emulated by the CPU
  VkPhysicalDeviceLimits limits{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::uint32_t subgroup = 1;
  bool joins_in_subgroups = false;     // subgroup arithmetic and votes
  bool shuffles_in_subgroups = false;  // threads of a subgroup exchange values
  std::uint64_t max_allocation = 0;
  std::uint32_t queue_family = 0;
  std::uint32_t time_bits = 0;  // of the queue's clock; 0: no clock
  std::uint32_t cache_version = 0;
  VkPhysicalDeviceFeatures features{};
  VkPhysicalDeviceVulkan11Features features11{};
  VkPhysicalDeviceVulkan12Features features12{};
  bool keeps_nan = false, keeps_denormals = false;      // f32, when a shader requests it
  bool converts_halves = false;                         // exactly, when a shader requests it
  bool raises_two = false;                              // exp2 is within 2 units in the last place
  std::uint32_t least_subgroup = 0, most_subgroup = 0;  // sizes a shader may request; 0: none
  std::uint32_t group_subgroups = 0;                    // of a requested size in one group
  std::vector<MatrixShape> matrices;                    // sorted by text(), unique
  // Subgroups of 32 multiply 16 x 16 elements of f16 into f32, unless HONE_VULKAN_MATRICES=0.
  bool multiplies_matrices = false;
  std::string why_not;  // reason it cannot run kernels; empty: it can

  std::string api_text() const;  // "1.3.230"
  // Name, driver, memory, group sizes, features for kernels, UUID, and why it is not used.
  std::string summary() const;
};

// Throws UserError when there is no loader or no driver.
std::shared_ptr<Instance> open_instance();
std::vector<Adapter> adapters(const Instance&);
// By HONE_VULKAN_DEVICE: an index, or a part of the name or UUID; else the first that is not
// software, which would be slower than the CPU backend. Throws UserError listing all devices.
Adapter choose_adapter(const Instance&);

// Number of validation layer messages so far; HONE_VULKAN_VALIDATION=1 enables the layers.
int validation_messages();

// An open device. Thread-safe, except the queue: one thread at a time.
struct Machine {
  // Opens the chosen adapter; the other opens a given one.
  Machine();
  Machine(std::shared_ptr<Instance>, Adapter);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Submits under a lock. Throws UserError when the device is lost.
  void submit(const VkSubmitInfo&);
  // Throws UserError unless the call succeeded.
  void require(VkResult, std::string_view what);
  // Whether require() was given VK_ERROR_DEVICE_LOST: all later calls fail, too.
  bool is_lost() const { return is_lost_; }

  std::shared_ptr<Instance> instance;
  Adapter adapter;
  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::mutex queue_mutex;
  DeviceApi api;
  // Changes when a buffer or pipeline is destroyed, so that recordings that use it are not reused.
  std::atomic<std::uint64_t> generation = 0;

 private:
  std::atomic<bool> is_lost_ = false;
};

}  // namespace hone::vulkan
