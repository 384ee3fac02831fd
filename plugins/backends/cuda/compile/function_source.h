// The compiler's input for one device function. Launches with equal input share the compiled code.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <compare>
#include <string>
#include <vector>

namespace mulligan::cuda {

struct FunctionSource {
  std::string function;                  // name expression for NVRTC: "rms_norm_fwd<float>"
  std::vector<std::string> definitions;  // constants in alphabetical order: "-DMLG_VALUE_eps=0x1p-20f"
  std::string text;

  auto operator<=>(const FunctionSource&) const = default;
};

// Returns the input for a launch of a kernel of `source`. A function without constants that a header of device_headers.h
// defines is compiled from that header alone.
FunctionSource function_source(const char* source, const mlg_cuda_launch& launch);

// Resources of a function, as reported by ptxas.
struct FunctionResources {
  int registers = 0, shared_bytes = 0, spill_stores = 0, spill_loads = 0, stack_bytes = 0;
};

struct CompiledFunction {
  std::string cubin;
  std::string symbol;  // the function's name in it
  FunctionResources resources;
};

// Converts a function to bytes for a file, and back. unpack() throws std::runtime_error if bytes are missing.
std::string pack(const CompiledFunction& function);
CompiledFunction unpack(const std::string& bytes);

}  // namespace mulligan::cuda
