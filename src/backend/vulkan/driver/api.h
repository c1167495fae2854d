// Vulkan's functions, opened at run time: the library is looked for when a device is asked for.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <string>
#include <string_view>

namespace hone::vulkan {

#define HONE_VULKAN_INSTANCE_FUNCTIONS(X)     \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

#define HONE_VULKAN_DEVICE_FUNCTIONS(X) \
  X(vkDestroyDevice)                    \
  X(vkGetDeviceQueue)                   \
  X(vkQueueSubmit)                      \
  X(vkDeviceWaitIdle)                   \
  X(vkAllocateMemory)                   \
  X(vkFreeMemory)                       \
  X(vkMapMemory)                        \
  X(vkCreateBuffer)                     \
  X(vkDestroyBuffer)                    \
  X(vkGetBufferMemoryRequirements)      \
  X(vkBindBufferMemory)                 \
  X(vkGetBufferDeviceAddress)           \
  X(vkCreateShaderModule)               \
  X(vkDestroyShaderModule)              \
  X(vkCreatePipelineCache)              \
  X(vkDestroyPipelineCache)             \
  X(vkGetPipelineCacheData)             \
  X(vkCreatePipelineLayout)             \
  X(vkDestroyPipelineLayout)            \
  X(vkCreateComputePipelines)           \
  X(vkDestroyPipeline)                  \
  X(vkCreateCommandPool)                \
  X(vkDestroyCommandPool)               \
  X(vkAllocateCommandBuffers)           \
  X(vkFreeCommandBuffers)               \
  X(vkBeginCommandBuffer)               \
  X(vkEndCommandBuffer)                 \
  X(vkCmdBindPipeline)                  \
  X(vkCmdPushConstants)                 \
  X(vkCmdDispatch)                      \
  X(vkCmdCopyBuffer)                    \
  X(vkCmdFillBuffer)                    \
  X(vkCmdPipelineBarrier)               \
  X(vkCreateSemaphore)                  \
  X(vkDestroySemaphore)                 \
  X(vkWaitSemaphores)

#define HONE_VULKAN_MEMBER(name) PFN_##name name = nullptr;

struct InstanceApi {
  HONE_VULKAN_INSTANCE_FUNCTIONS(HONE_VULKAN_MEMBER)
};
struct DeviceApi {
  HONE_VULKAN_DEVICE_FUNCTIONS(HONE_VULKAN_MEMBER)
};

// Null when no loader is found; says what to install in `why`.
PFN_vkGetInstanceProcAddr open_loader(std::string& why);
void load(InstanceApi&, PFN_vkGetInstanceProcAddr, VkInstance);
void load(DeviceApi&, const InstanceApi&, VkDevice);

// "VK_ERROR_DEVICE_LOST: the driver gave the device up, ..."
std::string meaning(VkResult);
// Throws UserError unless it succeeded; `what` was to be done.
void require(VkResult, std::string_view what);

}  // namespace hone::vulkan
