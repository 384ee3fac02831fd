#include "plugins/backends/cuda/gpu/cudnn/cudnn.h"

#include <map>
#include <optional>
#include <utility>

#include "plugins/backends/cuda/gpu/cudnn/attention_plan.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {
namespace {

class CudnnAttention final : public Attention {
 public:
  CudnnAttention(GpuDevice& device, const cudnn::Functions& functions, cudnnHandle_t handle,
                 std::shared_ptr<const cudnn::AttentionPlan> plan, const AttentionShape& shape)
      : device_(device), functions_(functions), handle_(handle), plan_(std::move(plan)), shape_(shape) {}

  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(shape_.tokens); }

  void run(const AttentionArguments& arguments, void* workspace) override {
    device_.use();
    const cudnn::Descriptor pack = plan_->pack(functions_, arguments, shape_.tokens, workspace);
    const cudnnStatus_t status = functions_.BackendExecute(handle_, plan_->descriptor().raw(), pack.raw());
    if (status == CUDNN_STATUS_SUCCESS) return;
    throw AttentionFailure("cuDNN " + functions_.version() + " does not execute " + describe(shape_) + ": " +
                           functions_.said(status));
  }

 private:
  GpuDevice& device_;
  const cudnn::Functions& functions_;
  cudnnHandle_t handle_;
  std::shared_ptr<const cudnn::AttentionPlan> plan_;
  AttentionShape shape_;
};

// A plan takes most of a second, so packed rows share it whatever their total of tokens.
AttentionShape shared_shape(AttentionShape shape) {
  if (shape.packed) shape.tokens = 0;
  return shape;
}

}  // namespace

struct Cudnn::Library {
  Library(GpuDevice& device, int major) : device(device), major(major) {
    functions.check(functions.Create(&handle), "Create");
  }
  ~Library() {
    plans.clear();
    functions.Destroy(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  cudnn::Functions functions;
  GpuDevice& device;
  int major;
  cudnnHandle_t handle = nullptr;
  std::map<AttentionShape, std::shared_ptr<const cudnn::AttentionPlan>> plans;  // by shared_shape()
};

Cudnn::Cudnn(GpuDevice& device, int major) : library_(std::make_unique<Library>(device, major)) {
  const cudnn::Functions& functions = library_->functions;
  functions.check(functions.SetStream(library_->handle, reinterpret_cast<cudaStream_t>(device.stream())),
                  "SetStream");
}

Cudnn::~Cudnn() = default;

std::optional<std::size_t> Cudnn::workspace_bytes(const AttentionShape& shape, std::string& reason) const {
  if (shape.backward && (library_->major == 8 || library_->major == 12)) {
    reason = "cuDNN reads no packed statistics on GPUs of compute capability " +
             std::to_string(library_->major) + ".x";
    return std::nullopt;
  }
  return cudnn::attention_workspace_bytes(shape);
}

std::unique_ptr<Attention> Cudnn::attention(const AttentionShape& shape, std::string& reason) {
  if (shape.packed && !workspace_bytes(shape, reason)) return nullptr;
  const AttentionShape planned = shared_shape(shape);
  std::shared_ptr<const cudnn::AttentionPlan>& plan = library_->plans[planned];
  if (!plan) {
    std::optional<cudnn::AttentionPlan> made =
        cudnn::make_attention_plan(library_->functions, {.handle = library_->handle}, planned, reason);
    if (!made) return nullptr;
    plan = std::make_shared<const cudnn::AttentionPlan>(std::move(*made));
  }
  return std::make_unique<CudnnAttention>(library_->device, library_->functions, library_->handle, plan,
                                          shape);
}

}  // namespace mulligan::cuda
