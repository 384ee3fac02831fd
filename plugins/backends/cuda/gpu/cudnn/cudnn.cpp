#include "plugins/backends/cuda/gpu/cudnn/cudnn.h"

#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugins/backends/cuda/compile/background_jobs.h"
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
    throw std::runtime_error("cuDNN " + functions_.version() + " does not execute " + describe(shape_) +
                             ": " + functions_.said(status) +
                             "; set backend.attention = \"own\" to compute attention by the own kernel");
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

struct Made {
  std::shared_ptr<const cudnn::AttentionPlan> plan;  // null: there is none
  std::string reason;
};

Made make_plan(const cudnn::Functions& functions, cudnnHandle_t handle, const AttentionShape& shape) {
  Made made;
  std::optional<cudnn::AttentionPlan> plan =
      cudnn::make_attention_plan(functions, {.handle = handle}, shape, made.reason);
  if (plan) made.plan = std::make_shared<const cudnn::AttentionPlan>(std::move(*plan));
  return made;
}

}  // namespace

struct Cudnn::Library {
  Library(GpuDevice& device, int major, int threads)
      : functions(device.libraries()), device(device), major(major), parallel(threads != 1) {
    functions.check(functions.Create(&handle), "Create");
    jobs.emplace(threads);
  }
  ~Library() {
    jobs.reset();
    plans.clear();
    for (const cudnnHandle_t each : idle) functions.Destroy(each);
    functions.Destroy(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // On a thread of jobs, with a handle of its own: cuDNN wants that no two threads use one at the same time.
  Made make(const AttentionShape& shape) {
    device.use();
    const auto give_back = [this](cudnnHandle_t used) {
      const std::lock_guard lock(mutex);
      idle.push_back(used);
    };
    const std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, decltype(give_back)> own(take(), give_back);
    return make_plan(functions, own.get(), shape);
  }
  cudnnHandle_t take() {
    const std::lock_guard lock(mutex);
    cudnnHandle_t own = nullptr;
    if (idle.empty()) {
      idle.reserve(handles_made + 1);  // giving back does not throw
      functions.check(functions.Create(&own), "Create");
      ++handles_made;
    } else {
      own = idle.back();
      idle.pop_back();
    }
    return own;
  }

  cudnn::Functions functions;
  GpuDevice& device;
  int major;
  bool parallel;                   // several plans are made at the same time
  cudnnHandle_t handle = nullptr;  // of the thread that executes
  std::mutex mutex;
  std::size_t handles_made = 0;
  std::vector<cudnnHandle_t> idle;  // of threads that make plans, guarded by mutex; live as long as the plans
  std::map<AttentionShape, std::shared_future<Made>> plans;  // by shared_shape()
  std::optional<BackgroundJobs> jobs;
};

Cudnn::Cudnn(GpuDevice& device, int major, int threads)
    : library_(std::make_unique<Library>(device, major, threads)) {
  const cudnn::Functions& functions = library_->functions;
  functions.check(functions.SetStream(library_->handle, reinterpret_cast<cudaStream_t>(device.stream())),
                  "SetStream");
}

Cudnn::~Cudnn() = default;

std::size_t Cudnn::plans() const {
  return library_->plans.size();
}

std::optional<std::size_t> Cudnn::workspace_bytes(const AttentionShape& shape, std::string& reason) const {
  if (shape.backward && (library_->major == 8 || library_->major == 12)) {
    reason = "cuDNN reads no packed statistics on GPUs of compute capability " +
             std::to_string(library_->major) + ".x";
    return std::nullopt;
  }
  return cudnn::attention_workspace_bytes(shape);
}

void Cudnn::expect(const AttentionShape& shape) {
  std::string reason;
  if (!library_->parallel || (shape.packed && !workspace_bytes(shape, reason))) return;
  const AttentionShape planned = shared_shape(shape);
  if (library_->plans.contains(planned)) return;
  const auto promise = std::make_shared<std::promise<Made>>();
  library_->plans.emplace(planned, promise->get_future().share());
  library_->jobs->add([library = library_.get(), planned, promise] {
    try {
      promise->set_value(library->make(planned));
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
}

std::unique_ptr<Attention> Cudnn::attention(const AttentionShape& shape, std::string& reason) {
  if (shape.packed && !workspace_bytes(shape, reason)) return nullptr;
  const AttentionShape planned = shared_shape(shape);
  auto known = library_->plans.find(planned);
  if (known == library_->plans.end()) {
    std::promise<Made> promise;
    promise.set_value(make_plan(library_->functions, library_->handle, planned));
    known = library_->plans.emplace(planned, promise.get_future().share()).first;
  }
  const Made& made = known->second.get();
  reason = made.reason;
  if (!made.plan) return nullptr;
  return std::make_unique<CudnnAttention>(library_->device, library_->functions, library_->handle, made.plan,
                                          shape);
}

}  // namespace mulligan::cuda
