#include "plugins/backends/cuda/gpu/cublaslt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "plugins/backends/cuda/gpu/cublaslt_gemm.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {

namespace {

// Where ranks of one machine find each other's measurements though the cache cannot be written: a folder of
// this user alone below the temporary one. Nothing that is executed comes from there.
std::string shared_directory(const std::string& wanted) {
  if (wanted.empty() || !CompileCache(wanted).directory().empty()) return wanted;
  std::error_code error;
  const std::string own =
      (std::filesystem::temp_directory_path(error) / ("mulligan-products-" + std::to_string(getuid())))
          .string();
  if (error) return {};
  mkdir(own.c_str(), S_IRWXU);
  struct stat found {};
  const bool sound = lstat(own.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == getuid() &&
                     (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return sound ? own : std::string();
}

}  // namespace

CublasLtFunctions::CublasLtFunctions(const LibrarySearch& search)
    : library("cuBLASLt",
              cuda_library_files(search, "cublas", cuda_library_names("libcublasLt", search.driver_version)),
              cuda_library_remedy(search.driver_version)) {}

void CublasLtFunctions::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cublasLt") + call + " failed: " + GetStatusString(status) +
                           " (status " + std::to_string(status) + ")");
}

CublasLt::CublasLt(GpuDevice& device, const std::string& gpu_name, const std::string& cache_directory,
                   const LibrarySearch& search)
    : device_(device), gpu_name_(gpu_name), cache_(shared_directory(cache_directory)), functions_(search) {
  MLG_LT(functions_, Create, &handle_);
}

CublasLt::~CublasLt() {
  if (handle_) functions_.Destroy(handle_);
}

std::unique_ptr<Gemm> CublasLt::gemm(const GemmShape& shape) {
  auto gemm = std::make_unique<CublasLtGemm>(*this, shape);
  gemm->try_ready(false);
  return gemm;
}

std::optional<std::string> CublasLt::algorithm(CublasLtGemm& gemm, bool wait) {
  const std::optional<GemmShape> known = product_class(gemm.shape());
  if (!known) {
    ++unmeasured_;
    return {};
  }
  const std::uint32_t number = classes_.number(*known);
  const auto found = algorithms_.find(number);
  if (found != algorithms_.end()) return found->second;
  const std::string key = algorithm_key(gpu_name_ + " cublasLt " + std::to_string(functions_.GetVersion()),
                                        *known, allowed_algorithms(*known));
  bool made = false;
  const auto measure = [&] {
    made = true;
    const auto begin = std::chrono::steady_clock::now();
    std::string fastest = gemm.measure();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return fastest;
  };
  std::optional<std::string> algorithm = cache_.get(key, measure, wait);
  if (!algorithm) return {};
  ++(made ? measured_ : read_);
  return algorithms_.emplace(number, std::move(*algorithm)).first->second;
}

std::string CublasLt::measured() const {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", seconds_);
  return "algorithms of matmuls: " + std::to_string(measured_) + " measured in " + seconds + " s, " +
         std::to_string(read_) + " that were measured before or by other ranks; " +
         std::to_string(unmeasured_) + " small matmuls take the library's first proposal";
}

}  // namespace mulligan::cuda
