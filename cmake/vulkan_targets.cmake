# What glslang and its kin add to the folders of the Vulkan backend.
target_include_directories(hone_backend_vulkan_driver SYSTEM PUBLIC ${HONE_VULKAN_INCLUDE})
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/vulkan)
foreach(shader plain_copy strided_copy)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/vulkan/${shader}.h)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/backend/vulkan/device/${shader}.comp)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${HONE_GLSLANG_VALIDATOR} --quiet --target-env vulkan1.2 --vn ${shader}_spirv -o ${header} ${source}
    DEPENDS ${source}
    VERBATIM)
  target_sources(hone_backend_vulkan_device PRIVATE ${header})
endforeach()
target_include_directories(hone_backend_vulkan_device PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/vulkan)
target_compile_definitions(hone_backend_devices PRIVATE HONE_VULKAN)
target_compile_definitions(hone_backend PRIVATE HONE_VULKAN)
if(HONE_SANITIZE MATCHES "undefined")
  # glslang is built without the types at run time that this check compares.
  target_compile_options(hone_backend_vulkan_target PRIVATE -fno-sanitize=vptr)
endif()
