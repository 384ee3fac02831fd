// Attention of a GPU by cuDNN. (cudnn_absent.cpp stands in where its headers were not found.)
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugins/backends/cuda/attention.h"

namespace mulligan::cuda {

class GpuDevice;

class Cudnn {
 public:
  // `major`: of the GPU's compute capability. `threads`: that make plans which were expected; 0: one for
  // each core, 1: every plan is made when it is asked for, by who asks. Throws std::runtime_error in one
  // sentence where cuDNN is missing, too old, or does not start on the GPU.
  Cudnn(GpuDevice& device, int major, int threads);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  // As Device::expect_attention, attention_workspace_bytes and attention.
  void expect(const AttentionShape& shape);
  std::optional<std::size_t> workspace_bytes(const AttentionShape& shape, std::string& reason) const;
  std::unique_ptr<Attention> attention(const AttentionShape& shape, std::string& reason);
  // How many shapes plans were made for or begun, those included that it has none for.
  std::size_t plans() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace mulligan::cuda
