#include "plugins/backends/cuda/gpu/cudnn/cudnn.h"

#include <bit>
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
                 std::shared_ptr<const cudnn::AttentionPlan> plan, std::int64_t tokens)
      : device_(device), functions_(functions), handle_(handle), plan_(std::move(plan)), tokens_(tokens) {}

  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(tokens_); }

  void run(const AttentionArguments& arguments, void* workspace) override {
    device_.use();
    const cudnn::Descriptor pack = plan_->pack(functions_, arguments, tokens_, workspace);
    const cudnnStatus_t status = functions_.BackendExecute(handle_, plan_->descriptor().raw(), pack.raw());
    functions_.check(status, "BackendExecute of attention (backend.attention = \"own\" does without cuDNN)");
  }

 private:
  GpuDevice& device_;
  const cudnn::Functions& functions_;
  cudnnHandle_t handle_;
  std::shared_ptr<const cudnn::AttentionPlan> plan_;
  std::int64_t tokens_;
};

// A plan takes half a second, so packed rows share it whatever their total of tokens, and the longest row is
// rounded up here too, where the total limited it.
AttentionShape shared_shape(AttentionShape shape) {
  if (!shape.packed) return shape;
  shape.tokens = 0;
  shape.longest = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(shape.longest)));
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

std::unique_ptr<Attention> Cudnn::attention(const AttentionShape& shape, std::string& reason) {
  if (shape.backward && shape.packed && (library_->major == 8 || library_->major == 12)) {
    reason = "cuDNN reads no packed statistics on GPUs of compute capability " +
             std::to_string(library_->major) + ".x";
    return nullptr;
  }
  const AttentionShape planned = shared_shape(shape);
  std::shared_ptr<const cudnn::AttentionPlan>& plan = library_->plans[planned];
  if (!plan) {
    std::optional<cudnn::AttentionPlan> made =
        cudnn::make_attention_plan(library_->functions, {.handle = library_->handle}, planned, reason);
    if (!made) return nullptr;
    plan = std::make_shared<const cudnn::AttentionPlan>(std::move(*made));
  }
  return std::make_unique<CudnnAttention>(library_->device, library_->functions, library_->handle, plan,
                                          shape.tokens);
}

}  // namespace mulligan::cuda
