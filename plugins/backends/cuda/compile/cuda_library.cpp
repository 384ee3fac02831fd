#include "plugins/backends/cuda/compile/cuda_library.h"

#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "plugins/common/nvidia_wheels.h"

namespace mulligan::cuda {

std::vector<std::string> cuda_library_files(const LibrarySearch& search, const std::string& package,
                                            const std::vector<std::string>& names) {
  std::vector<std::string> folders;
  std::istringstream own(search.folders);
  for (std::string folder; std::getline(own, folder, ':');) {
    if (!std::filesystem::is_directory(folder))
      throw std::runtime_error("backend.library_path: there is no folder " + folder);
    folders.push_back(folder);
  }
  for (std::string& folder : plugins::wheel_folders(package)) folders.push_back(std::move(folder));
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      const std::filesystem::path file = std::filesystem::path(folder) / name;
      if (std::filesystem::exists(file)) files.push_back(file.string());
    }
  }
  files.insert(files.end(), names.begin(), names.end());
  return files;
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::vector<std::string> cuda_library_names(const std::string& stem, int driver_version) {
  std::vector<std::string> names;
  for (int major = driver_version == 0 ? 13 : driver_version / 1000; major >= 12; --major)
    names.push_back(stem + ".so." + std::to_string(major));
  return names;
}

std::string cuda_library_remedy(int driver_version) {
  if (driver_version == 0 || driver_version >= 13000) return "install CUDA 12.4 or newer";
  return "install that of CUDA 12 (12.4 or newer), which goes with the driver of CUDA " +
         cuda_version_text(driver_version);
}

}  // namespace mulligan::cuda
