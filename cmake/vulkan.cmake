# What the Vulkan backend is built with: headers, and glslang, which makes SPIR-V. The loader is
# opened at run time. Without them the backend is left out.
find_package(VulkanHeaders CONFIG QUIET)
find_package(SPIRV-Tools CONFIG QUIET)
find_package(SPIRV-Tools-opt CONFIG QUIET)
find_package(SPIRV-Tools-link CONFIG QUIET)
find_package(glslang CONFIG QUIET)
find_program(HONE_GLSLANG_VALIDATOR glslangValidator)
find_path(HONE_VULKAN_INCLUDE vulkan/vulkan_core.h)
if(TARGET glslang::SPIRV AND HONE_GLSLANG_VALIDATOR AND HONE_VULKAN_INCLUDE)
  set(HONE_VULKAN ON)
  set(glslang_link glslang::SPIRV glslang::glslang glslang::glslang-default-resource-limits)
  set(HONE_VULKAN ON PARENT_SCOPE)  # for tests
else()
  message(STATUS "Vulkan: left out, for glslang-dev, glslang-tools, spirv-tools or libvulkan-dev is missing")
endif()
