#include "plugins/backends/cuda/compile/kernel_file_choice.h"

#include <mulligan/plugin.hpp>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda {
namespace {

namespace fs = std::filesystem;

int major_of(const std::string& version) {
  return std::atoi(version.c_str());
}

// Why it does not serve; empty: it does.
std::string misfit(const KernelFile& file, const CompilerOptions& options) {
  const KernelFile::Origin& origin = file.origin();
  if (origin.architecture != options.architecture)
    return "is for " + origin.architecture + ", not for " + options.architecture;
  if (origin.context != compile_context())
    return "was made by another version of mulligan, with other headers or options";
  if (options.libraries.driver_version != 0 &&
      major_of(origin.nvrtc_version) > options.libraries.driver_version / 1000)
    return "was made by NVRTC " + origin.nvrtc_version + ", whose code the driver, of CUDA " +
           cuda_version_text(options.libraries.driver_version) + ", may not load";
  return {};
}

}  // namespace

std::optional<KernelFile> kernel_file_for(const CompilerOptions& options, const std::string& path) {
  if (path == "none") return std::nullopt;
  const fs::path chosen =
      !path.empty() ? fs::path(path)
                    : plugins::own_folder().parent_path() / "kernels" / (options.architecture + ".kernels");
  if (!fs::exists(chosen)) {
    if (path.empty()) return std::nullopt;
    throw std::runtime_error("backend.kernel_file: there is no file " + path);
  }
  std::string fault;
  try {
    KernelFile file = KernelFile::read(chosen.string());
    fault = misfit(file, options);
    if (fault.empty()) {
      sdk::log(sdk::LogLevel::info,
               std::to_string(file.size()) + " functions compiled ahead of time: " + chosen.string());
      return file;
    }
    fault = chosen.string() + " " + fault;
  } catch (const std::runtime_error& error) {
    fault = error.what();
  }
  sdk::log(sdk::LogLevel::warning, fault + "; its functions are taken from the cache, or compiled");
  return std::nullopt;
}

}  // namespace mulligan::cuda
