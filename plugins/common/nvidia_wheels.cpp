#include "plugins/common/nvidia_wheels.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace mulligan::plugins {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Where packages of the active Python may lie: folders that have lib/python3*.
std::vector<fs::path> python_prefixes() {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = variable(name); !prefix.empty()) return {prefix};
  }
  std::vector<fs::path> prefixes;
  if (const std::string home = variable("HOME"); !home.empty()) prefixes.push_back(fs::path(home) / ".local");
  std::istringstream path(variable("PATH"));
  std::error_code error;
  for (std::string folder; std::getline(path, folder, ':');) {
    if (!fs::exists(fs::path(folder) / "python3", error)) continue;
    const fs::path prefix = fs::path(folder).parent_path();
    if (prefix == "/usr") prefixes.emplace_back("/usr/local");  // where Debian's pip installs
    prefixes.push_back(prefix);
    break;
  }
  return prefixes;
}

// Entries of a folder whose names begin so, the longest and last name first: python3.12 before python3.9.
std::vector<fs::path> entries(const fs::path& folder, const std::string& begin) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(begin)) found.push_back(entry.path());
  }
  std::ranges::sort(found, [](const fs::path& a, const fs::path& b) {
    return std::pair(a.native().size(), a) > std::pair(b.native().size(), b);
  });
  return found;
}

}  // namespace

std::vector<std::string> wheel_folders(const std::string& package) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const fs::path& prefix : python_prefixes()) {
    for (const fs::path& python : entries(prefix / "lib", "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const std::string& wheel : {package, std::string("cu13")}) {
          const fs::path folder = python / packages / "nvidia" / wheel / "lib";
          if (fs::is_directory(folder, error)) folders.push_back(folder.string());
        }
      }
    }
  }
  return folders;
}

}  // namespace mulligan::plugins
