// NVIDIA's run-time compiler, loaded when it is needed.
#pragma once

#include <nvrtc.h>

#include <string>
#include <vector>

#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda {

struct NvrtcResult {
  std::string cubin;  // PTX, with the zero after it, where the architecture is a virtual one (compute_90a)
  std::string symbol, log;
};

class Nvrtc {
 public:
  // One whose code the driver loads: of its CUDA version's major or an older one. Throws std::runtime_error when there
  // is none.
  explicit Nvrtc(const LibrarySearch& search);

  // "13.0"
  std::string version() const;
  // Compiles `source` with the headers of device_headers.h and gives the function `expression` ("f<float>")
  // of it. Throws std::runtime_error with the compiler's messages.
  NvrtcResult compile(const char* name, const char* source, const std::vector<std::string>& options,
                      const char* expression) const;

 private:
  plugins::SharedLibrary library_;
  decltype(&nvrtcVersion) version_ = library_["nvrtcVersion"];
  decltype(&nvrtcCreateProgram) create_program_ = library_["nvrtcCreateProgram"];
  decltype(&nvrtcDestroyProgram) destroy_program_ = library_["nvrtcDestroyProgram"];
  decltype(&nvrtcAddNameExpression) add_name_expression_ = library_["nvrtcAddNameExpression"];
  decltype(&nvrtcGetLoweredName) get_lowered_name_ = library_["nvrtcGetLoweredName"];
  decltype(&nvrtcCompileProgram) compile_program_ = library_["nvrtcCompileProgram"];
  decltype(&nvrtcGetCUBINSize) get_cubin_size_ = library_["nvrtcGetCUBINSize"];
  decltype(&nvrtcGetCUBIN) get_cubin_ = library_["nvrtcGetCUBIN"];
  decltype(&nvrtcGetProgramLogSize) get_log_size_ = library_["nvrtcGetProgramLogSize"];
  decltype(&nvrtcGetProgramLog) get_log_ = library_["nvrtcGetProgramLog"];
  decltype(&nvrtcGetErrorString) get_error_string_ = library_["nvrtcGetErrorString"];
};

}  // namespace mulligan::cuda
