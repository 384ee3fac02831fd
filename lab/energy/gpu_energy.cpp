// The total energy of a GPU since its driver was loaded, in millijoules, from NVML. Which GPU: that of the CUDA
// context of this thread, found through its PCI address. Both libraries are the driver's; neither is linked.
#include <dlfcn.h>

#include <fmt/format.h>

#include <utility>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "lab/energy/energy_meter.h"

namespace mulligan::energy {
namespace {

// The parts of the driver's and NVML's C interfaces that are used; both are stable.
using CtxGetDevice = int (*)(int* device);
using DeviceGetPciBusId = int (*)(char* text, int length, int device);
using NvmlInit = int (*)();
using NvmlErrorString = const char* (*)(int status);
using NvmlHandleByPci = int (*)(const char* text, void** device);
using NvmlTotalEnergy = int (*)(void* device, unsigned long long* millijoules);

template <typename Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

class Gpu : public Counter {
 public:
  Gpu(std::string address, void* device, NvmlTotalEnergy total, NvmlErrorString text)
      : address_(std::move(address)), device_(device), total_(total), text_(text) {}

  std::string name() const override { return "GPU " + address_; }
  Part part() const override { return Part::gpu; }
  double read_joules() override {
    unsigned long long millijoules = 0;
    if (const int status = total_(device_, &millijoules))
      throw run_error("the energy of GPU {} cannot be read: {}.", address_, text_(status));
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  std::string address_;
  void* device_;
  NvmlTotalEnergy total_;
  NvmlErrorString text_;
};

Counters absent(std::string why) {
  Counters none;
  none.absent.push_back("GPU: " + std::move(why));
  return none;
}

}  // namespace

Counters gpu_counters() {
  // Only where it is open already: measuring must not start a driver that the run does not use.
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!cuda) return absent("this run uses none");
  CtxGetDevice device_of_context = nullptr;
  DeviceGetPciBusId address_of = nullptr;
  int device = 0;
  char address[32] = {};
  if (!bind(cuda, "cuCtxGetDevice", device_of_context) || !bind(cuda, "cuDeviceGetPCIBusId", address_of) ||
      device_of_context(&device) != 0 || address_of(address, sizeof address, device) != 0)
    return absent("the driver names no device of this run");
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!nvml) return absent("the driver's libnvidia-ml.so.1 was not found");
  NvmlInit init = nullptr;
  NvmlErrorString text = nullptr;
  NvmlHandleByPci handle_of = nullptr;
  NvmlTotalEnergy total = nullptr;
  if (!bind(nvml, "nvmlInit_v2", init) || !bind(nvml, "nvmlErrorString", text) ||
      !bind(nvml, "nvmlDeviceGetHandleByPciBusId_v2", handle_of) ||
      !bind(nvml, "nvmlDeviceGetTotalEnergyConsumption", total))
    return absent("libnvidia-ml.so.1 is too old to tell energy");
  if (const int status = init()) return absent(fmt::format("libnvidia-ml.so.1 says: {}", text(status)));
  void* handle = nullptr;
  if (const int status = handle_of(address, &handle))
    return absent(fmt::format("libnvidia-ml.so.1 says of {}: {}", address, text(status)));
  auto gpu = std::make_unique<Gpu>(address, handle, total, text);
  try {
    gpu->read_joules();
  } catch (const Error& error) {
    return absent(without_full_stop(error.what()));
  }
  Counters found;
  found.counters.push_back(std::move(gpu));
  return found;
}

}  // namespace mulligan::energy
