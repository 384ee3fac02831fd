// A kernel that Triton (or anything else that writes PTX with such a description) compiled, in place of the
// backend's own: checked once against the kernel that it replaces, then planned for each call.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/backends/common/kernel_signature.h"
#include "plugins/backends/cuda/triton/description.h"
#include "plugins/backends/cuda/triton/signature_check.h"

namespace mulligan::cuda::triton {

// The launch of one call; `launch` points into the rest.
struct PlannedCall {
  PlannedCall() = default;
  PlannedCall(const PlannedCall&) = delete;
  PlannedCall& operator=(const PlannedCall&) = delete;

  std::vector<mlg_cuda_argument> arguments;
  mlg_cuda_launch launch{};
  mlg_cuda_plan plan{};  // of that launch; of none when the grid is empty
  std::size_t workspace_bytes = 0;
};

class CompiledKernel {
 public:
  // `file`: .ptx, its description next to it with the ending .json. `architecture`: "sm_90a" of the
  // device; empty: not known, not checked. Throws std::runtime_error with one sentence when a file is missing
  // or damaged, is for another GPU or another kernel, or its parameters do not fit `signature`.
  CompiledKernel(const std::string& file, const std::string& kernel, const std::string& signature,
                 const std::string& architecture);

  const std::string& file() const { return file_; }
  const std::string& code() const { return code_; }  // PTX, as the driver loads it

  // What to launch for a call of that signature. Addresses that are already known must be aligned as the
  // compiler was told. Throws std::runtime_error, naming file and argument, when the code is not for this
  // call: another dtype, an attribute or extent other than "when" says, an extent that is not divisible.
  std::unique_ptr<PlannedCall> plan(const mlg_launch& call) const;

 private:
  // The only value of a number for which the code holds.
  struct Condition {
    CallNumber number;
    double value = 0;
  };
  void check_call(const mlg_launch& call) const;
  mlg_cuda_argument value(const Binding& binding, const mlg_launch& call) const;
  std::runtime_error misfit(const std::string& what) const;

  std::string file_, code_, kernel_;
  backends::Signature signature_;
  Description description_;
  std::vector<Binding> bindings_;
  std::vector<Condition> when_;
  std::vector<CallNumber> grid_;
};

}  // namespace mulligan::cuda::triton
