// A GpuDevice on the libraries that stand in, whose counters start at zero.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "plugins/backends/cuda/gpu/gpu_device.h"
#include "tests/stub/stub.h"
#include "tests/support/sentence.h"

namespace mulligan::cuda {

// Counters at zero, and work is done when it is enqueued.
inline void reset_stubs() {
  setenv("VIRTUAL_ENV", "/nowhere", 1);  // whose wheels would come before the stubs
  stub() = {};
  stub().streams_are_threads = false;
}

class StubDevice : public testing::Test {
 protected:
  StubDevice() { reset_stubs(); }
  // Compiled code is not kept from device to device.
  static GpuDevice device() { return {0, ""}; }
};

}  // namespace mulligan::cuda
