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

}  // namespace mulligan::cuda
