// A graph of cuDNN operations made ready to run: the first of the engines that cuDNN proposes which takes it.
#pragma once

#include <optional>
#include <string>

#include "plugins/backends/cuda/gpu/cudnn/descriptor.h"

namespace mulligan::cuda::cudnn {

// What plans are made for: a handle of a GPU, or, without one, a description of a
// device (see described_device).
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

// A device by its properties in JSON, as cuDNN writes those of a real one.
Descriptor described_device(const Functions& functions, const std::string& json);

class Plan {
 public:
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  const Descriptor& descriptor() const { return plan_; }

 private:
  friend std::optional<Plan> make_plan(const Functions&, const Target&, const Descriptor&, std::string&);
  Plan(Descriptor plan, std::size_t workspace_bytes);
  Descriptor plan_;
  std::size_t workspace_bytes_;
};

// Nothing where no engine takes `graph`, an operation graph; then `reason` is what cuDNN said last.
std::optional<Plan> make_plan(const Functions& functions, const Target& target, const Descriptor& graph,
                              std::string& reason);

}  // namespace mulligan::cuda::cudnn
