// How the cuda backend opens the emulated device, which is a library of its own.
#pragma once

#include <mulligan/abi.h>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

// Relative to the folder above that of the plugins.
constexpr const char* kEmulatedLibrary = "devices/mulligan_cuda_emulated.so";

}  // namespace mulligan::cuda

extern "C" {

// The library's only exported function: a new device, which the caller deletes. `order`, `driver` and `log_launches` are the
// backend's keys emulated_order, emulated_driver and log_launches. Throws std::runtime_error where `driver` cannot be opened.
mulligan::cuda::Device* mulligan_emulated_device(const mlg_host* host, const char* order, const char* driver,
                                                 bool log_launches);
}
