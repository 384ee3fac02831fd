// Machine code of one __global__ function.
#pragma once

#include <string>

namespace mulligan::cuda {

// What ptxas says of a function.
struct FunctionResources {
  int registers = 0, shared_bytes = 0, spill_stores = 0, spill_loads = 0, stack_bytes = 0;
};

struct CompiledFunction {
  std::string cubin;
  std::string symbol;  // the function's name in it
  FunctionResources resources;
};

// As bytes for a file, and back. unpack() throws std::runtime_error when they are too few.
std::string pack(const CompiledFunction& function);
CompiledFunction unpack(const std::string& bytes);

}  // namespace mulligan::cuda
