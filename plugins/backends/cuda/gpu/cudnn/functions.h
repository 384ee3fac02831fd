// cuDNN's backend (graph) API, loaded when it is needed.
#pragma once

#include <cudnn_graph.h>

#include <string>

#include "plugins/common/shared_library.h"

namespace mulligan::cuda::cudnn {

// The library's functions, by the names that cudnn_graph.h gives them without "cudnn".
struct Functions {
  // Throws std::runtime_error in one sentence where cuDNN is missing or older than 9.18.1.
  Functions();
  // Throws std::runtime_error when `status` is an error: "cudnnWHAT failed: STATUS (what cuDNN says)".
  void check(cudnnStatus_t status, const std::string& what) const;
  std::string said(cudnnStatus_t status) const;  // "STATUS (what cuDNN says)"
  std::string version() const;                   // "9.19.0"

  plugins::SharedLibrary library;
  decltype(&cudnnGetVersion) GetVersion;
  decltype(&cudnnGetErrorString) GetErrorString;
  decltype(&cudnnGetLastErrorString) GetLastErrorString;
  decltype(&cudnnCreate) Create;
  decltype(&cudnnDestroy) Destroy;
  decltype(&cudnnSetStream) SetStream;
  decltype(&cudnnBackendCreateDescriptor) BackendCreateDescriptor;
  decltype(&cudnnBackendDestroyDescriptor) BackendDestroyDescriptor;
  decltype(&cudnnBackendSetAttribute) BackendSetAttribute;
  decltype(&cudnnBackendGetAttribute) BackendGetAttribute;
  decltype(&cudnnBackendFinalize) BackendFinalize;
  decltype(&cudnnBackendExecute) BackendExecute;
};

}  // namespace mulligan::cuda::cudnn
