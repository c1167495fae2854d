// Vulkan's functions, opened at run time when a device is requested.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <string>
#include <string_view>

// Not in the headers of Debian 12.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr VkStructureType VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
constexpr VkStructureType VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
enum VkComponentTypeKHR {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
  VK_COMPONENT_TYPE_FLOAT64_KHR = 2,
  VK_COMPONENT_TYPE_SINT8_KHR = 3,
  VK_COMPONENT_TYPE_SINT32_KHR = 5,
  VK_COMPONENT_TYPE_UINT8_KHR = 7,
  VK_COMPONENT_TYPE_UINT32_KHR = 9,
};
enum VkScopeKHR { VK_SCOPE_SUBGROUP_KHR = 3 };
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  std::uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
typedef VkResult(VKAPI_PTR* PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)(
    VkPhysicalDevice, std::uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif

namespace hone::vulkan {

#define HONE_VULKAN_INSTANCE_FUNCTIONS(X)              \
  X(vkDestroyInstance)                                 \
  X(vkEnumeratePhysicalDevices)                        \
  X(vkGetPhysicalDeviceProperties2)                    \
  X(vkGetPhysicalDeviceFeatures2)                      \
  X(vkGetPhysicalDeviceMemoryProperties)               \
  X(vkGetPhysicalDeviceQueueFamilyProperties)          \
  X(vkEnumerateDeviceExtensionProperties)              \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) \
  X(vkCreateDevice)                                    \
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
  X(vkCreateQueryPool)                  \
  X(vkDestroyQueryPool)                 \
  X(vkGetQueryPoolResults)              \
  X(vkCmdResetQueryPool)                \
  X(vkCmdWriteTimestamp)                \
  X(vkCreateSemaphore)                  \
  X(vkDestroySemaphore)                 \
  X(vkWaitSemaphores)                   \
  X(vkGetSemaphoreCounterValue)

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
// Throws UserError unless it succeeded; `what` describes the attempted action.
void require(VkResult, std::string_view what);

}  // namespace hone::vulkan
