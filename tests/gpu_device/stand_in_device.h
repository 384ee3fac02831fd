// A GpuDevice on the libraries that stand in, whose counters start at zero.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "plugins/backends/cuda/gpu/gpu_device.h"
#include "tests/gpu_device/stand_in/stand_in.h"

namespace mulligan::cuda {

class StandInDevice : public testing::Test {
 protected:
  StandInDevice() { stand_in() = {}; }
  // Compiled code is not kept from device to device.
  static GpuDevice device() { return {0, ""}; }
};

// What `action` throws; a failure of the test, and empty, when it throws nothing.
template <typename Action>
std::string refusal_of(Action&& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

}  // namespace mulligan::cuda
