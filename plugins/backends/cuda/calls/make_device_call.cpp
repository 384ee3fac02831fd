#include <stdexcept>
#include <utility>

#include "kernels/leaky_relu_squared/cuda_linear.h"
#include "kernels/matmul/cuda.h"
#include "plugins/backends/cuda/attention/attention_call.h"
#include "plugins/backends/cuda/calls/device_call.h"
#include "plugins/backends/cuda/calls/launch_call.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {
namespace {

// The plan that the kernel's prepare() made, given back to its release().
using KernelState = std::unique_ptr<void, void (*)(void*)>;

// Throws the kernel's sentence when the call does not fit.
KernelState prepare_kernel(const mlg_kernel& kernel, const mlg_launch& call, std::size_t& workspace_bytes) {
  mlg_preparation preparation{};
  if (const mlg_error error = kernel.prepare(&call, &preparation)) throw std::runtime_error(error);
  workspace_bytes = preparation.workspace_bytes;
  return {preparation.state, kernel.release};
}

// A call that the kernel's own source computes; expect() or load() make it ready.
class SourceCall final : public LaunchCall {
 public:
  SourceCall(Device& device, const mlg_kernel& kernel, const mlg_call& call)
      : LaunchCall(device, kernel, call) {
    plan_anew();
  }

 private:
  const mlg_cuda_plan& plan(const mlg_kernel& kernel, const mlg_launch& call,
                            std::size_t& workspace_bytes) override {
    state_ = prepare_kernel(kernel, call, workspace_bytes);
    return *static_cast<const mlg_cuda_plan*>(state_.get());
  }

  KernelState state_{nullptr, nullptr};
};

// A call that a compiled file computes in place of the kernel's own code, which still checks it.
class CompiledCall final : public LaunchCall {
 public:
  CompiledCall(Device& device, const mlg_kernel& kernel, const mlg_call& call,
               const triton::CompiledKernel& compiled)
      : LaunchCall(device, kernel, call, &compiled), compiled_(compiled) {
    plan_anew();
    load();
  }

 private:
  const mlg_cuda_plan& plan(const mlg_kernel& kernel, const mlg_launch& call,
                            std::size_t& workspace_bytes) override {
    if (is_matmul(kernel)) {
      gemm_shape(kernel, call);
    } else {
      prepare_kernel(kernel, call, workspace_bytes);
    }
    planned_ = compiled_.plan(call);
    workspace_bytes = planned_->workspace_bytes;
    return planned_->plan;
  }

  const triton::CompiledKernel& compiled_;
  std::unique_ptr<triton::PlannedCall> planned_;
};

// A matmul (matmul, matmul_add), which the device computes by its library.
class MatmulCall final : public DeviceCall {
 public:
  MatmulCall(Device& device, const mlg_kernel& kernel, const mlg_call& call)
      : memory_(device, kernel, call),
        gemm_(device.gemm(gemm_shape(kernel, memory_.arguments().launch()))),
        places_(matmul_arguments(kernel)) {}

  std::size_t workspace_bytes() const override { return gemm_->workspace_bytes(); }
  void bind(void* const* addresses, void* workspace) override {
    memory_.bind(addresses, workspace, workspace_bytes());
  }
  std::uint64_t choice() override {
    memory_.require_bound();
    gemm_->make_ready();
    return 0;
  }
  mlg_work work() override {
    memory_.require_bound();
    return {0, 1, gemm_->measurement()};
  }
  void run() override {
    memory_.require_bound();
    memory_.mark_unwritten();
    gemm_->run(memory_.tensor(places_.a), memory_.tensor(places_.b), memory_.tensor(places_.term),
               memory_.tensor(places_.c), memory_.workspace());
  }

 private:
  CallMemory memory_;
  std::unique_ptr<Gemm> gemm_;
  MatmulArguments places_;
};

// A matmul of the device's library and the launches of the kernel's own code on its result.
class ProductCall final : public DeviceCall {
 public:
  ProductCall(Device& device, std::unique_ptr<SourceCall> own, const MatmulBefore& product)
      : own_(std::move(own)), product_(product), gemm_(device.gemm(product.shape)) {
    own_->reserve(gemm_->workspace_bytes());
    own_->expect();
  }

  std::size_t workspace_bytes() const override { return own_->workspace_bytes(); }
  void bind(void* const* addresses, void* workspace) override { own_->bind(addresses, workspace); }
  std::uint64_t choice() override {
    gemm_->make_ready();
    return own_->choice();
  }
  mlg_work work() override { return {own_->work().launches, 1, gemm_->measurement()}; }
  void run() override {
    choice();
    const CallMemory& memory = own_->memory();
    memory.mark_unwritten();
    const DeviceArgument result = memory.tensor(product_.c);
    gemm_->run(memory.tensor(product_.a), memory.tensor(product_.b), result, result, memory.workspace());
    own_->launch();
    memory.require_written();
  }

 private:
  std::unique_ptr<SourceCall> own_;
  MatmulBefore product_;
  std::unique_ptr<Gemm> gemm_;
};

// An attention call, computed by a library where it has a plan for the segments, else by the own kernel.
class LibraryCall final : public DeviceCall {
 public:
  // `attention` is of the arguments of `own`.
  LibraryCall(Device& device, std::unique_ptr<SourceCall> own, std::unique_ptr<AttentionCall> attention)
      : own_(std::move(own)), attention_(std::move(attention)) {
    own_->reserve(attention_->workspace_bytes());
    if (device.facts().computes) return;
    attention_->load();
    own_->expect();
  }

  std::size_t workspace_bytes() const override { return own_->workspace_bytes(); }
  void bind(void* const* addresses, void* workspace) override {
    own_->bind(addresses, workspace);
    if (!own_->memory().aligned()) attention_.reset();
    if (!attention_) return;
    attention_->bind([this](std::uint32_t index) { return own_->memory().tensor(index); }, workspace);
  }
  std::uint64_t choice() override {
    own_->memory().require_bound();
    const std::uint64_t choice = attention_ ? attention_->choose() : 0;
    return choice == 0 ? own_->choice() : choice;
  }
  mlg_work work() override {
    const std::uint64_t choice = this->choice();
    return choice == 0 ? own_->work() : mlg_work{attention_->launches(), 1, 0};
  }
  void run() override {
    if (choice() == 0) return own_->run();
    own_->memory().mark_unwritten();
    attention_->run();
    own_->memory().require_written();
  }

 private:
  std::unique_ptr<SourceCall> own_;  // loaded when it is needed
  // Null once addresses were not aligned, as a library wants them.
  std::unique_ptr<AttentionCall> attention_;
};

}  // namespace

std::unique_ptr<DeviceCall> make_device_call(Device& device, AttentionLibrary& library,
                                             const mlg_kernel& kernel, const mlg_call& call,
                                             const triton::CompiledKernel* compiled) {
  if (compiled) return std::make_unique<CompiledCall>(device, kernel, call, *compiled);
  if (is_matmul(kernel)) return std::make_unique<MatmulCall>(device, kernel, call);
  auto own = std::make_unique<SourceCall>(device, kernel, call);
  if (auto attention = AttentionCall::make(library, kernel, own->arguments())) {
    return std::make_unique<LibraryCall>(device, std::move(own), std::move(attention));
  }
  if (const auto product = matmul_before(kernel, own->arguments().launch())) {
    return std::make_unique<ProductCall>(device, std::move(own), *product);
  }
  own->expect();
  return own;
}

}  // namespace mulligan::cuda
