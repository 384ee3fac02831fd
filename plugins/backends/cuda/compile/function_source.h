// What decides a function's code: all that the compiler gets of a launch, and nothing else, so that launches
// which would get the same code share it.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <compare>
#include <string>
#include <vector>

namespace mulligan::cuda {

struct FunctionSource {
  std::string function;                  // as the compiler takes it: "rms_norm_fwd<float>"
  std::vector<std::string> definitions;  // of constants, in alphabetic order: "-DMLG_VALUE_eps=0x1p-20f"
  std::string text;

  auto operator<=>(const FunctionSource&) const = default;
};

// Of a launch of a kernel with that source. A function that a header of device_headers.h states without
// constants is compiled out of this header alone, whichever source includes it.
FunctionSource function_source(const char* source, const mlg_cuda_launch& launch);

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
