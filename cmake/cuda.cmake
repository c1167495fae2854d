# NVIDIA's headers, which declare what the CUDA backend opens at run time; nothing is linked. tools/setup
# installs them into build/cuda; a toolkit serves as well. Without them the backend is left out.
file(GLOB cuda_packages ${PROJECT_SOURCE_DIR}/build/cuda/lib/python3*/site-packages/nvidia/cu13)
find_path(HONE_CUDA_INCLUDE nvrtc.h HINTS $ENV{CUDA_PATH}/include PATHS /usr/local/cuda/include
          ${cuda_packages} PATH_SUFFIXES include NO_CACHE)
if(HONE_CUDA_INCLUDE AND EXISTS ${HONE_CUDA_INCLUDE}/cuda.h)
  set(HONE_CUDA ON)
  get_filename_component(HONE_CUDA_LIBRARIES ${HONE_CUDA_INCLUDE}/../lib REALPATH)
  message(STATUS "CUDA backend: headers in ${HONE_CUDA_INCLUDE}")
else()
  set(HONE_CUDA OFF)
  message(STATUS "CUDA backend: left out, cuda.h and nvrtc.h were not found; tools/setup installs them")
endif()
