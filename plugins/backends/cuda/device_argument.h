// Memory that work on a device reads or writes.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <cstddef>

namespace mulligan::cuda {

// A pointer parameter of a launch, with the memory that it stands for.
struct DeviceArgument {
  void* address = nullptr;  // null for an absent tensor, and for numbers
  std::size_t bytes = 0;
  const char* name = "";  // of the argument, for messages
  bool readable = true, writable = true;
  mlg_cuda_argument value{};  // kind, and the number of INT, LONG and FLOAT
};

}  // namespace mulligan::cuda
