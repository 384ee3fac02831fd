// Libraries in NVIDIA's wheels from PyPI, as PyTorch installs them. Compiled into each plugin that needs it.
#pragma once

#include <string>
#include <vector>

namespace mulligan::plugins {

// Folders of the active Python that exist: nvidia/PACKAGE/lib ("cudnn", "nccl"), and nvidia/cu13/lib, in which the wheels
// of CUDA 13 share a folder. The active Python is that of $VIRTUAL_ENV, else of $CONDA_PREFIX, else the first python3 on
// $PATH together with what pip installed for the user.
std::vector<std::string> wheel_folders(const std::string& package);

}  // namespace mulligan::plugins
