// Which file of functions compiled ahead of time serves a device.
#pragma once

#include <optional>
#include <string>

#include "plugins/backends/cuda/compile/kernel_compiler.h"

namespace mulligan::cuda {

// The file at `path`, or where that is empty the one that is shipped next to the plugins,
// ../kernels/ARCHITECTURE.kernels, if there is one; "none": no file. Nothing where it does not serve this
// architecture, these headers and a driver of this version, or is damaged: then the log says why. Throws
// std::runtime_error when there is no file at `path`.
std::optional<KernelFile> kernel_file_for(const CompilerOptions& options, const std::string& path);

}  // namespace mulligan::cuda
