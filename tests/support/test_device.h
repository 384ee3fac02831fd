// The device on which tests of the cuda backend run: MULLIGAN_TEST_DEVICE is "emulated" (also where it is not
// set) or "gpu". One definition of each test serves both.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace mulligan {

// Whether the variable is set: tests that otherwise use the cpu backend then use the cuda backend
// on that device.
inline bool test_device_chosen() {
  return std::getenv("MULLIGAN_TEST_DEVICE") != nullptr;
}

inline std::string test_device() {
  const char* chosen = std::getenv("MULLIGAN_TEST_DEVICE");
  const std::string device = chosen ? chosen : "emulated";
  if (device == "emulated" || device == "gpu") return device;
  throw std::runtime_error("MULLIGAN_TEST_DEVICE is '" + device + "'; it is emulated or gpu");
}

// False where MULLIGAN_TEST_FUSED_KERNELS is "off": tests of whole models then go without them.
inline bool test_fused_kernels() {
  const char* chosen = std::getenv("MULLIGAN_TEST_FUSED_KERNELS");
  const std::string fused = chosen ? chosen : "on";
  if (fused == "on" || fused == "off") return fused == "on";
  throw std::runtime_error("MULLIGAN_TEST_FUSED_KERNELS is '" + fused + "'; it is on or off");
}

}  // namespace mulligan
