#include <mulligan/dtype.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

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
  CallWork work() override {
    memory_.require_bound();
    return {0, 1, gemm_->measurement()};
  }
  void run() override {
    memory_.require_bound();
    memory_.mark_outputs_unwritten();
    gemm_->run(memory_.tensor(places_.a), memory_.tensor(places_.b), memory_.tensor(places_.term),
               memory_.tensor(places_.c), memory_.workspace());
  }

 private:
  CallMemory memory_;
  std::unique_ptr<Gemm> gemm_;
  MatmulArguments places_;
};

// A matmul of the device's library and launches of the kernel's own code on its result: of all rows, or of some rows
// at a time, so that the launch finds in the GPU's cache what the matmul wrote.
class ProductCall final : public DeviceCall {
 public:
  // `kernel` has a matmul before its own code; `call` fits it. All rows at once where `rows_at_once` is 0, or where
  // parts of so many would not begin at multiples of 16 bytes, as libraries want them.
  ProductCall(Device& device, const mlg_kernel& kernel, const mlg_call& call, const MatmulBefore& product,
              std::int64_t rows_at_once)
      : product_(product) {
    const std::int64_t rows = product.shape.m;
    for (std::uint32_t i = 0; i < call.argument_count; ++i) {
      if (has_rows(i, call.arguments[i]) && rows_at_once * row_bytes(call.arguments[i]) % 16 != 0)
        rows_at_once = 0;
    }
    if (rows_at_once == 0) rows_at_once = rows;
    for (std::int64_t first = 0; first < rows; first += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, rows - first);
      std::vector<mlg_tensor> arguments(call.arguments, call.arguments + call.argument_count);
      for (std::uint32_t i = 0; i < arguments.size(); ++i) {
        if (has_rows(i, arguments[i])) arguments[i].shape[0] = count;
      }
      mlg_call of_part = call;
      of_part.arguments = arguments.data();
      GemmShape shape = product.shape;
      shape.m = count;
      Part& part = parts_.emplace_back(first, std::make_unique<SourceCall>(device, kernel, of_part),
                                       device.gemm(shape));
      part.own->reserve(part.gemm->workspace_bytes());
      part.own->expect();
      workspace_bytes_ = std::max(workspace_bytes_, part.own->workspace_bytes());
    }
  }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  void bind(void* const* addresses, void* workspace) override {
    for (const Part& part : parts_) {
      const std::vector<mlg_tensor>& tensors = part.own->arguments().tensors();
      std::vector<void*> of_part(addresses, addresses + tensors.size());
      for (std::uint32_t i = 0; i < tensors.size(); ++i) {
        if (!has_rows(i, tensors[i])) continue;
        of_part[i] = static_cast<char*>(of_part[i]) + part.first_row * row_bytes(tensors[i]);
      }
      part.own->bind(of_part.data(), workspace);
    }
  }
  std::uint64_t choice() override {
    for (const Part& part : parts_) {
      part.gemm->make_ready();
      part.own->choice();
    }
    return 0;
  }
  CallWork work() override {
    CallWork work;
    for (const Part& part : parts_) {
      work.launches += part.own->work().launches;
      ++work.library_calls;
    }
    work.measurement = parts_.front().gemm->measurement();
    return work;
  }
  void run() override {
    choice();
    for (const Part& part : parts_) {
      const CallMemory& memory = part.own->memory();
      memory.mark_outputs_unwritten();
      memory.mark_workspace_unwritten();
      const DeviceArgument result = memory.tensor(product_.c);
      part.gemm->run(memory.tensor(product_.a), memory.tensor(product_.b), result, result,
                     memory.workspace());
      part.own->launch();
      memory.require_written();
    }
  }

 private:
  struct Part {
    std::int64_t first_row;
    std::unique_ptr<SourceCall> own;
    std::unique_ptr<Gemm> gemm;
  };

  bool has_rows(std::uint32_t index, const mlg_tensor& tensor) const {
    return index != product_.b && tensor.dtype != MLG_ABSENT;
  }
  static std::int64_t row_bytes(const mlg_tensor& tensor) {
    return tensor.shape[1] * static_cast<std::int64_t>(sdk::dtype_bytes(tensor.dtype));
  }

  MatmulBefore product_;
  std::vector<Part> parts_;
  std::size_t workspace_bytes_ = 0;
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
  void expect_choice() override {
    if (attention_) attention_->expect();
  }
  std::uint64_t choice() override {
    own_->memory().require_bound();
    const std::uint64_t choice = attention_ ? attention_->choose() : 0;
    return choice == 0 ? own_->choice() : choice;
  }
  CallWork work() override {
    const std::uint64_t choice = this->choice();
    return choice == 0 ? own_->work() : CallWork{attention_->launches(choice), 1};
  }
  void run() override {
    const std::uint64_t choice = this->choice();
    if (choice == 0) return own_->run();
    own_->memory().mark_outputs_unwritten();
    own_->memory().mark_workspace_unwritten();
    try {
      attention_->run(choice);
    } catch (const AttentionFailure& failure) {
      attention_->library().failed(failure);
      attention_.reset();
      return own_->run();
    }
    own_->memory().require_written();
  }

 private:
  std::unique_ptr<SourceCall> own_;  // loaded when it is needed
  // Null once addresses were not aligned, as a library wants them, or it failed.
  std::unique_ptr<AttentionCall> attention_;
};

}  // namespace

std::unique_ptr<DeviceCall> make_device_call(Device& device, AttentionLibrary& library,
                                             SegmentRowTables& row_tables, const mlg_kernel& kernel,
                                             const mlg_call& call, std::int64_t activation_rows,
                                             const triton::CompiledKernel* compiled) {
  if (compiled) return std::make_unique<CompiledCall>(device, kernel, call, *compiled);
  if (is_matmul(kernel)) return std::make_unique<MatmulCall>(device, kernel, call);
  auto own = std::make_unique<SourceCall>(device, kernel, call);
  if (auto attention = AttentionCall::make(library, row_tables, kernel, own->arguments())) {
    return std::make_unique<LibraryCall>(device, std::move(own), std::move(attention));
  }
  if (const auto product = matmul_before(kernel, own->arguments().launch())) {
    return std::make_unique<ProductCall>(device, kernel, call, *product, activation_rows);
  }
  own->expect();
  return own;
}

}  // namespace mulligan::cuda
