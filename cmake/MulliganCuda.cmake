# CUDA's headers (12.4 or newer), where they are installed.
option(MULLIGAN_CUDA "Build GPU support where CUDA's headers are found" ON)
if(MULLIGAN_CUDA)
  find_path(MULLIGAN_CUDA_INCLUDE cublasLt.h
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda /usr/local/cuda/targets/x86_64-linux PATH_SUFFIXES include)
  foreach(header cuda.h nvrtc.h)
    if(MULLIGAN_CUDA_INCLUDE AND NOT EXISTS "${MULLIGAN_CUDA_INCLUDE}/${header}")
      set(MULLIGAN_CUDA_INCLUDE "MULLIGAN_CUDA_INCLUDE-NOTFOUND" CACHE PATH "" FORCE)
    endif()
  endforeach()
else()
  unset(MULLIGAN_CUDA_INCLUDE CACHE)
endif()
if(NOT MULLIGAN_CUDA_INCLUDE)
  message(STATUS "CUDA: headers not found, or MULLIGAN_CUDA is OFF; the cuda backend gets its emulated device only")
endif()

# cuDNN's headers (9.16 or newer) as well as CUDA's.
if(MULLIGAN_CUDA_INCLUDE)
  find_path(MULLIGAN_CUDNN_INCLUDE cudnn_graph.h HINTS "${MULLIGAN_CUDA_INCLUDE}" ENV CUDNN_HOME ENV CUDNN_PATH
    PATH_SUFFIXES include)
else()
  unset(MULLIGAN_CUDNN_INCLUDE CACHE)
endif()
if(MULLIGAN_CUDNN_INCLUDE)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES "${MULLIGAN_CUDNN_INCLUDE}" "${MULLIGAN_CUDA_INCLUDE}")
  check_cxx_source_compiles("#include <cudnn_graph.h>
    static_assert(CUDNN_VERSION >= 91600);
    int main() {}" MULLIGAN_CUDNN_IS_NEW_ENOUGH)
  unset(CMAKE_REQUIRED_INCLUDES)
endif()
if(MULLIGAN_CUDA_INCLUDE AND NOT MULLIGAN_CUDNN_IS_NEW_ENOUGH)
  message(STATUS "cuDNN: headers of 9.16 or newer not found; attention is the own kernel's")
  set(MULLIGAN_CUDNN_INCLUDE "MULLIGAN_CUDNN_INCLUDE-NOTFOUND" CACHE PATH "" FORCE)
endif()
