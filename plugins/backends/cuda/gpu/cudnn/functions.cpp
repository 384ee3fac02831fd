#include "plugins/backends/cuda/gpu/cudnn/functions.h"

#include <stdexcept>

namespace mulligan::cuda::cudnn {
namespace {

// Before 9.16 rows of other lengths than multiples of 128 need a mask; 9.16 and 9.17 read workspace of the packed
// backward pass that nobody has written (TransformerEngine issue 2186).
constexpr std::size_t kOldest = 91801;
constexpr const char* kRemedy = "install cuDNN 9.18.1 or newer";

}  // namespace

Functions::Functions() : library("cuDNN", {"libcudnn.so.9"}, kRemedy) {
  library.bind(GetVersion, "cudnnGetVersion");
  library.bind(GetErrorString, "cudnnGetErrorString");
  library.bind(GetLastErrorString, "cudnnGetLastErrorString");
  library.bind(Create, "cudnnCreate");
  library.bind(Destroy, "cudnnDestroy");
  library.bind(SetStream, "cudnnSetStream");
  library.bind(BackendCreateDescriptor, "cudnnBackendCreateDescriptor");
  library.bind(BackendDestroyDescriptor, "cudnnBackendDestroyDescriptor");
  library.bind(BackendSetAttribute, "cudnnBackendSetAttribute");
  library.bind(BackendGetAttribute, "cudnnBackendGetAttribute");
  library.bind(BackendFinalize, "cudnnBackendFinalize");
  library.bind(BackendExecute, "cudnnBackendExecute");
  if (GetVersion() < kOldest) {
    throw std::runtime_error("cuDNN " + version() + " was found; " + kRemedy);
  }
}

void Functions::check(cudnnStatus_t status, const std::string& what) const {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error("cudnn" + what + " failed: " + said(status));
}

std::string Functions::said(cudnnStatus_t status) const {
  char last[512] = {};
  GetLastErrorString(last, sizeof last);
  std::string text = last;
  text = text.substr(0, text.find('\n'));
  return GetErrorString(status) + (text.empty() ? "" : " (" + text + ")");
}

std::string Functions::version() const {
  const std::size_t number = GetVersion();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

}  // namespace mulligan::cuda::cudnn
