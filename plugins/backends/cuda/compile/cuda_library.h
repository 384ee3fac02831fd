// Which of CUDA's libraries goes with the driver, and where it is looked for. A library of a newer major than the
// driver's CUDA version makes code that the driver may not load; an older one is fine.
#pragma once

#include <string>
#include <vector>

namespace mulligan::cuda {

struct LibrarySearch {
  int driver_version = 0;    // as cuDriverGetVersion says, 12040; 0: no driver, any will do
  std::string folders = {};  // backend.library_path: separated by ':', searched first
};

// Files to try, in this order: those of `names` that lie in the search's folders, those in the active Python's wheel
// `package` (nvidia_wheels.h), and `names` as the dynamic linker finds them. Wheels come before the system's libraries,
// so that a newer version which pip installed is the one that is used.
std::vector<std::string> cuda_library_files(const LibrarySearch& search, const std::string& package,
                                            const std::vector<std::string>& names);

// "12.4" of 12040, the form in which drivers tell their CUDA version.
std::string cuda_version_text(int version);

// Names to try, in this order: ("libnvrtc", 13000) gives libnvrtc.so.13 and libnvrtc.so.12. `driver_version` 0: no driver.
std::vector<std::string> cuda_library_names(const std::string& stem, int driver_version);
// What to install where none of them is found.
std::string cuda_library_remedy(int driver_version);

}  // namespace mulligan::cuda
