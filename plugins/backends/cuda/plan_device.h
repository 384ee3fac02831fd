// A device that runs nothing and needs no CUDA: calls are planned on it as on a GPU, so that what they would
// launch can be counted. It stands for one with a library of attention. Like the null backend it holds no
// memory; addresses are never dereferenced.
#pragma once

#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda/product_class.h"

namespace mulligan::cuda {

class PlanDevice : public Device {
 public:
  DeviceFacts facts() const override;
  void* allocate(std::size_t bytes) override;
  void free(void*) noexcept override {}
  void to_device(void*, const void*, std::size_t) override {}
  void from_device(void* host, const void* device, std::size_t bytes) override;  // zeros
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, int, std::size_t) override {}
  Function& load(const FunctionRequest& request) override;
  void launch(Function&, const Grid&, std::span<const DeviceArgument>) override {}
  std::unique_ptr<Gemm> gemm(const GemmShape& shape) override;
  std::optional<std::size_t> attention_workspace_bytes(const AttentionShape& shape,
                                                       std::string& reason) override;
  std::unique_ptr<Attention> attention(const AttentionShape& shape, std::string& reason) override;
  void begin_capture() override {}
  std::unique_ptr<CapturedGraph> end_capture() override { return std::make_unique<CapturedGraph>(); }
  void abandon_capture() noexcept override {}
  void launch(CapturedGraph&) override {}
  void synchronize() override {}

 private:
  Function function_;
  ProductClasses classes_;
  std::uintptr_t next_ = std::uintptr_t{1} << 32;
};

}  // namespace mulligan::cuda
