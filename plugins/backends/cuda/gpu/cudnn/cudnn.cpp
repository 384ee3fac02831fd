#include "plugins/backends/cuda/gpu/cudnn/cudnn.h"

#include <utility>

#include "plugins/backends/cuda/gpu/cudnn/attention_plan.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {
namespace {

class CudnnAttention final : public Attention {
 public:
  CudnnAttention(GpuDevice& device, const cudnn::Functions& functions, cudnnHandle_t handle,
                 cudnn::AttentionPlan plan)
      : device_(device), functions_(functions), handle_(handle), plan_(std::move(plan)) {}

  std::size_t workspace_bytes() const override { return plan_.workspace_bytes(); }

  void run(const AttentionArguments& arguments, void* workspace) override {
    device_.use();
    const cudnn::Descriptor pack = plan_.pack(functions_, arguments, workspace);
    const cudnnStatus_t status = functions_.BackendExecute(handle_, plan_.descriptor().raw(), pack.raw());
    functions_.check(status, "BackendExecute of attention (backend.attention = \"own\" does without cuDNN)");
  }

 private:
  GpuDevice& device_;
  const cudnn::Functions& functions_;
  cudnnHandle_t handle_;
  cudnn::AttentionPlan plan_;
};

}  // namespace

struct Cudnn::Library {
  Library(GpuDevice& device, int major) : device(device), major(major) {
    functions.check(functions.Create(&handle), "Create");
  }
  ~Library() { functions.Destroy(handle); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  cudnn::Functions functions;
  GpuDevice& device;
  int major;
  cudnnHandle_t handle = nullptr;
};

Cudnn::Cudnn(GpuDevice& device, int major) : library_(std::make_unique<Library>(device, major)) {
  const cudnn::Functions& functions = library_->functions;
  functions.check(functions.SetStream(library_->handle, reinterpret_cast<cudaStream_t>(device.stream())),
                  "SetStream");
}

Cudnn::~Cudnn() = default;

std::unique_ptr<Attention> Cudnn::attention(const AttentionShape& shape, std::string& reason) {
  if (shape.backward && shape.packed && (library_->major == 8 || library_->major == 12)) {
    reason = "cuDNN reads no packed statistics on GPUs of compute capability " +
             std::to_string(library_->major) + ".x";
    return nullptr;
  }
  std::optional<cudnn::AttentionPlan> plan =
      cudnn::make_attention_plan(library_->functions, {.handle = library_->handle}, shape, reason);
  if (!plan) return nullptr;
  return std::make_unique<CudnnAttention>(library_->device, library_->functions, library_->handle,
                                          std::move(*plan));
}

}  // namespace mulligan::cuda
