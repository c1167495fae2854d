# find_package(hone): hone::runtime loads and runs plans; hone::hone also compiles models. Link one.
include(${CMAKE_CURRENT_LIST_DIR}/hone-targets.cmake)
