# The two shared libraries, their public headers, and what `cmake --install` puts where. See
# docs/decisions/0004-public-headers.md.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Copies src/HEADER for users into `to`: <hone/NAME> for a header of api/, else <hone/FOLDER/NAME>,
# with its own includes spelled the same way.
function(hone_public_headers to out)
  set(copies)
  foreach(header ${ARGN})
    string(REGEX REPLACE "^api/(runtime/)?" "" name ${header})
    add_custom_command(
      OUTPUT ${to}/hone/${name}
      COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_SOURCE_DIR}/src/${header} -DTO=${to}/hone/${name}
              -P ${PROJECT_SOURCE_DIR}/cmake/public_header.cmake
      DEPENDS ${PROJECT_SOURCE_DIR}/src/${header} ${PROJECT_SOURCE_DIR}/cmake/public_header.cmake
      VERBATIM)
    list(APPEND copies ${to}/hone/${name})
  endforeach()
  set(${out} ${copies} PARENT_SCOPE)
endfunction()

# hone_library(NAME FOLDERS ... HEADERS ...): lib<NAME>.so of whole folders and of what they need.
function(hone_library name)
  cmake_parse_arguments(arg "" "" "FOLDERS;HEADERS" ${ARGN})
  set(target ${name}_shared)
  set(include ${PROJECT_BINARY_DIR}/include/${name})
  hone_public_headers(${include} headers ${arg_HEADERS})
  # Symbols are versioned by library, so that both may be in one process.
  string(REGEX REPLACE "^hone_" "" export ${name})
  string(TOUPPER ${name}_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} node)
  set(map ${PROJECT_BINARY_DIR}/${name}.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/exports.map.in ${map} @ONLY)
  add_library(${target} SHARED)
  add_library(hone::${export} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${include} FILES ${headers})
  add_custom_target(${name}_headers DEPENDS ${headers})
  add_dependencies(${target} ${name}_headers)
  target_compile_features(${target} INTERFACE cxx_std_20)
  set(archives)
  foreach(folder ${arg_FOLDERS})
    string(REPLACE "/" "_" folder hone_${folder})
    get_target_property(kind ${folder} TYPE)
    if(kind STREQUAL STATIC_LIBRARY)
      list(APPEND archives $<TARGET_FILE:${folder}>)
    endif()
    target_link_libraries(${target} PRIVATE ${folder})
  endforeach()
  target_link_options(${target} PRIVATE
    -Wl,--whole-archive ${archives} -Wl,--no-whole-archive -Wl,--gc-sections
    -Wl,--version-script=${map} -Wl,--no-undefined)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME ${export} LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

function(hone_install)
  install(TARGETS ${ARGN} EXPORT hone FILE_SET HEADERS)
  install(EXPORT hone FILE hone-targets.cmake NAMESPACE hone::
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hone)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/hone-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/hone-config.cmake
                ${PROJECT_BINARY_DIR}/hone-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hone)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()
