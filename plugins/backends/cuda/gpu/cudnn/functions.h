// cuDNN's backend (graph) API, loaded when it is needed.
#pragma once

#include <cudnn_graph.h>

#include <optional>
#include <string>

#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda::cudnn {

// The library's functions, by the names that cudnn_graph.h gives them without "cudnn".
struct Functions {
  // Throws std::runtime_error in one sentence where cuDNN is missing, of a version with a known defect or for a newer
  // CUDA than the driver's, and where NVRTC is missing, which its attention compiles with.
  explicit Functions(const LibrarySearch& search);
  // Throws std::runtime_error when `status` is an error: "cudnnWHAT failed: STATUS (what cuDNN says)".
  void check(cudnnStatus_t status, const std::string& what) const;
  std::string said(cudnnStatus_t status) const;  // "STATUS (what cuDNN says)"
  std::string version() const;                   // "9.19.0"

  plugins::SharedLibrary library;
  // cuDNN opens it by its name, which finds it once it is here.
  std::optional<plugins::SharedLibrary> nvrtc;
  decltype(&cudnnGetVersion) GetVersion = library["cudnnGetVersion"];
  decltype(&cudnnGetCudartVersion) GetCudartVersion = library["cudnnGetCudartVersion"];
  decltype(&cudnnGetErrorString) GetErrorString = library["cudnnGetErrorString"];
  decltype(&cudnnGetLastErrorString) GetLastErrorString = library["cudnnGetLastErrorString"];
  decltype(&cudnnCreate) Create = library["cudnnCreate"];
  decltype(&cudnnDestroy) Destroy = library["cudnnDestroy"];
  decltype(&cudnnSetStream) SetStream = library["cudnnSetStream"];
  decltype(&cudnnBackendCreateDescriptor) BackendCreateDescriptor = library["cudnnBackendCreateDescriptor"];
  decltype(&cudnnBackendDestroyDescriptor) BackendDestroyDescriptor =
      library["cudnnBackendDestroyDescriptor"];
  decltype(&cudnnBackendSetAttribute) BackendSetAttribute = library["cudnnBackendSetAttribute"];
  decltype(&cudnnBackendGetAttribute) BackendGetAttribute = library["cudnnBackendGetAttribute"];
  decltype(&cudnnBackendFinalize) BackendFinalize = library["cudnnBackendFinalize"];
  decltype(&cudnnBackendExecute) BackendExecute = library["cudnnBackendExecute"];
};

}  // namespace mulligan::cuda::cudnn
