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

# The folder, and those it depends on.
function(hone_closure out folder)
  string(REPLACE "/" "_" target hone_${folder})
  set(all ${folder})
  if(TARGET ${target})
    get_target_property(depends ${target} HONE_DEPENDS)
    foreach(other ${depends})
      hone_closure(more ${other})
      list(APPEND all ${more})
    endforeach()
    list(REMOVE_DUPLICATES all)
  endif()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# hone_library(NAME OF FOLDER [ON LIBRARY] HEADERS ...): libNAME.so of the folder and all that it
# needs, except what is in the library that it stands on.
function(hone_library name)
  cmake_parse_arguments(arg "" "OF;ON" "HEADERS" ${ARGN})
  set(target ${name}_shared)
  set(include ${PROJECT_BINARY_DIR}/include/${name})
  hone_public_headers(${include} headers ${arg_HEADERS})
  string(REGEX REPLACE "^hone_" "" export ${name})
  set(map ${PROJECT_BINARY_DIR}/exports.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/exports.map.in ${map} @ONLY)
  add_library(${target} SHARED)
  add_library(hone::${export} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${include} FILES ${headers})
  add_custom_target(${name}_headers DEPENDS ${headers})
  add_dependencies(${target} ${name}_headers)
  target_compile_features(${target} INTERFACE cxx_std_20)

  hone_closure(folders ${arg_OF})
  if(arg_ON)
    get_target_property(below ${arg_ON}_shared HONE_FOLDERS)
    list(REMOVE_ITEM folders ${below})
    target_link_libraries(${target} PUBLIC ${arg_ON}_shared)
  endif()
  # The archives are linked as files: as targets they would bring what they depend on, and with it
  # a second copy of the library below.
  set(archives)
  foreach(folder ${folders})
    string(REPLACE "/" "_" folder hone_${folder})
    if(NOT TARGET ${folder})
      continue()
    endif()
    get_target_property(kind ${folder} TYPE)
    if(kind STREQUAL STATIC_LIBRARY)
      list(APPEND archives $<TARGET_FILE:${folder}>)
      add_dependencies(${target} ${folder})
    endif()
    get_target_property(link ${folder} HONE_LINK)
    target_link_libraries(${target} PRIVATE ${link})
  endforeach()
  target_link_options(${target} PRIVATE
    -Wl,--whole-archive ${archives} -Wl,--no-whole-archive -Wl,--gc-sections
    -Wl,-Bsymbolic-functions -Wl,--version-script=${map})
  if(NOT HONE_SANITIZE)  # a sanitizer's run-time is in the program
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(${target} PROPERTIES
    HONE_FOLDERS "${folders}" LINK_DEPENDS "${archives};${map}"
    OUTPUT_NAME ${name} EXPORT_NAME ${export} LINKER_LANGUAGE CXX INSTALL_RPATH $ORIGIN
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

# Programs are installed, but not exported: `hone` would be a second hone::hone.
function(hone_install)
  cmake_parse_arguments(arg "" "" "LIBRARIES;PROGRAMS" ${ARGN})
  install(TARGETS ${arg_LIBRARIES} EXPORT hone FILE_SET HEADERS)
  install(TARGETS ${arg_PROGRAMS})
  install(EXPORT hone FILE hone-targets.cmake NAMESPACE hone::
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hone)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/hone-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/hone-config.cmake
                ${PROJECT_BINARY_DIR}/hone-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hone)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()
