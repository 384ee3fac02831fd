// cuDNN's backend (graph) API, loaded when it is needed.
#pragma once

#include <cudnn_graph.h>

#include <optional>
#include <string>

#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda::cudnn {

// clang-format off
#define MLG_CUDNN_FUNCTIONS(X)                                                                   \
  X(GetVersion) X(GetCudartVersion) X(GetErrorString) X(GetLastErrorString) X(Create) X(Destroy) \
  X(SetStream) X(BackendCreateDescriptor) X(BackendDestroyDescriptor) X(BackendSetAttribute)     \
  X(BackendGetAttribute) X(BackendFinalize) X(BackendExecute)
// clang-format on

// What to do where cuDNN or its NVRTC is missing or does not fit CUDA of this major version.
std::string cudnn_remedy(int cuda_major);
std::string nvrtc_remedy(int cuda_major);

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
#define MLG_MEMBER(name) decltype(&cudnn##name) name = library["cudnn" #name];
  MLG_CUDNN_FUNCTIONS(MLG_MEMBER)
#undef MLG_MEMBER
};

}  // namespace mulligan::cuda::cudnn
