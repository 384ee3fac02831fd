#include "plugins/backends/cuda/gpu/cudnn/functions.h"

#include <stdexcept>

namespace mulligan::cuda::cudnn {
namespace {

// Versions, as cudnnGetVersion counts them, that attention is not computed with. A row ends before the next one begins.
struct Defect {
  std::size_t from, before;
  const char* what;
};
constexpr Defect kDefects[] = {
    {0, 91600, "needs a mask for rows whose length is no multiple of 128"},
    {91600, 91801, "computes wrong gradients of packed rows (TransformerEngine issue 2186)"},
};

// Of the driver, or of the newest CUDA where there is none.
int driver_major(const LibrarySearch& search) {
  return search.driver_version == 0 ? 13 : search.driver_version / 1000;
}

}  // namespace

std::string cudnn_remedy(int cuda_major) {
  const std::string major = std::to_string(cuda_major);
  return "run pip install --upgrade 'nvidia-cudnn-cu" + major +
         ">=9.18.1', or set backend.library_path to the folder of such a libcudnn.so.9";
}

std::string nvrtc_remedy(int cuda_major) {
  return "run pip install " + std::string(cuda_major == 12 ? "nvidia-cuda-nvrtc-cu12" : "nvidia-cuda-nvrtc") +
         ", or set backend.library_path to its folder";
}

Functions::Functions(const LibrarySearch& search)
    : library("cuDNN", cuda_library_files(search, "cudnn", {"libcudnn.so.9"}),
              cudnn_remedy(driver_major(search))) {
  const int cuda = static_cast<int>(GetCudartVersion() / 1000), driver = driver_major(search);
  const std::string found = "cuDNN " + version() + " of " + library.file();
  if (cuda > driver) {
    throw std::runtime_error(found + " is for CUDA " + std::to_string(cuda) + ", and the driver is of CUDA " +
                             cuda_version_text(search.driver_version) + "; " + cudnn_remedy(driver));
  }
  for (const Defect& defect : kDefects) {
    if (GetVersion() >= defect.from && GetVersion() < defect.before)
      throw std::runtime_error(found + " " + defect.what + "; " + cudnn_remedy(cuda));
  }
  const std::string major = std::to_string(cuda);
  nvrtc.emplace("NVRTC of CUDA " + major + ", with which cuDNN " + version() + " compiles attention,",
                cuda_library_files(search, "cuda_nvrtc", {"libnvrtc.so." + major}), nvrtc_remedy(cuda));
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
