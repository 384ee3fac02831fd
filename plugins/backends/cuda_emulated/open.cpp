#include "plugins/backends/cuda_emulated/open.h"

#include <mulligan/plugin.hpp>

#include "plugins/backends/cuda_emulated/emulated_device.h"

extern "C" [[gnu::visibility("default")]] mulligan::cuda::Device* mulligan_emulated_device(
    const mlg_host* host, const char* order, const char* driver, bool log_launches) {
  using namespace mulligan::cuda;
  mulligan::sdk::host_services = host;
  return new EmulatedDevice(emulated_order(order), driver, log_launches);
}
