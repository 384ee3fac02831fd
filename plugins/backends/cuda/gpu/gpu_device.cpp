#include "plugins/backends/cuda/gpu/gpu_device.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>

#include "plugins/backends/common/local_ranks.h"
#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/gpu/cublaslt.h"
#include "plugins/backends/cuda/gpu/cudnn/cudnn.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {
namespace {

CUdeviceptr device_pointer(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

std::string gigabytes(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GB", static_cast<double>(bytes) / 1e9);
  return text;
}

// Released on whatever thread, whose context may be another.
struct GpuGraph final : CapturedGraph {
  GpuGraph(const Driver& driver, CUcontext context) : driver(driver), context(context) {}
  ~GpuGraph() override {
    driver.CtxSetCurrent(context);
    if (executable) driver.GraphExecDestroy(executable);
  }
  const Driver& driver;
  CUcontext context;
  CUgraphExec executable = nullptr;
};

}  // namespace

// A module of its own. Modules stay until the device goes: what was loaded once is asked for again.
struct GpuFunction final : Function {
  explicit GpuFunction(const Driver& driver) : driver(driver) {}
  ~GpuFunction() override {
    if (module) driver.ModuleUnload(module);
  }
  const Driver& driver;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::uint32_t shared_bytes = 48 * 1024;  // dynamic shared memory that launches may ask for
};

GpuDevice::GpuDevice(int index, const std::string& cache_directory, const std::string& kernel_file,
                     int threads, const std::string& library_path)
    : cache_directory_(cache_directory), library_path_(library_path), threads_(threads) {
  int count = 0;
  MLG_CU(driver_, DeviceGetCount, &count);
  const bool by_rank = index < 0;
  index = backends::device_of_rank(index, count);
  if (by_rank && index >= count) {
    throw std::runtime_error("rank " + std::to_string(index) + " of this machine has no GPU: CUDA sees " +
                             std::to_string(count) +
                             "; start as many ranks, or look at CUDA_VISIBLE_DEVICES");
  }
  if (index >= count) {
    throw std::runtime_error("backend.index is " + std::to_string(index) + ", but CUDA sees " +
                             std::to_string(count) + " GPUs; look at CUDA_VISIBLE_DEVICES");
  }
  MLG_CU(driver_, DeviceGet, &device_, index);
  char name[256] = {};
  MLG_CU(driver_, DeviceGetName, name, sizeof name, device_);
  name_ = name;
  int minor = 0;
  MLG_CU(driver_, DeviceGetAttribute, &major_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_);
  MLG_CU(driver_, DeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_);
  if (major_ < 8)
    throw std::runtime_error(name_ + " is older than the cuda backend supports, compute capability 8.0");
  architecture_ = "sm_" + std::to_string(major_) + std::to_string(minor) + (major_ >= 9 ? "a" : "");
  MLG_CU(driver_, DevicePrimaryCtxRetain, &context_, device_);
  use();
  MLG_CU(driver_, StreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  MLG_CU(driver_, MemGetInfo, &free_bytes_, &total_bytes_);
  staging_.emplace(driver_);
  const CompilerOptions options{architecture_, cache_directory_, libraries(), threads};
  compiler_ = std::make_unique<KernelCompiler>(options, kernel_file_for(options, kernel_file));
}

GpuDevice::~GpuDevice() {
  if (!context_) return;
  driver_.CtxSetCurrent(context_);
  if (stream_) driver_.StreamSynchronize(stream_);
  blas_.reset();
  cudnn_.reset();
  functions_.clear();
  staging_.reset();
  for (const CUevent mark : marks_) {
    if (mark) driver_.EventDestroy(mark);
  }
  if (stream_) driver_.StreamDestroy(stream_);
  driver_.DevicePrimaryCtxRelease(device_);
}

// The memory is what other processes leave of the card.
DeviceFacts GpuDevice::facts() const {
  return {name_ + " (" + architecture_ + ", CUDA driver " + cuda_version_text(driver_.version()) + ")",
          free_bytes_, 0, true, architecture_};
}

void* GpuDevice::allocate(std::size_t bytes) {
  use();
  CUdeviceptr address = 0;
  const CUresult result = driver_.MemAlloc(&address, std::max<std::size_t>(bytes, 1));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0, total = 0;
    MLG_CU(driver_, MemGetInfo, &free, &total);
    throw std::runtime_error(name_ + " has " + gigabytes(free) + " of its " + gigabytes(total) +
                             " left, and a tensor takes " + gigabytes(bytes) +
                             "; see with nvidia-smi whether another process uses it");
  }
  driver_.check(result, "cuMemAlloc");
  return reinterpret_cast<void*>(address);
}

void GpuDevice::free(void* address) noexcept {
  driver_.CtxSetCurrent(context_);
  driver_.StreamSynchronize(stream_);
  driver_.MemFree(device_pointer(address));
}

void GpuDevice::to_device(void* device, const void* host, std::size_t bytes) {
  use();
  if (bytes <= StagingRing::kMostBytes) return staging_->upload(device_pointer(device), host, bytes, stream_);
  MLG_CU(driver_, MemcpyHtoDAsync, device_pointer(device), host, bytes, stream_);
  MLG_CU(driver_, StreamSynchronize, stream_);
}

void GpuDevice::from_device(void* host, const void* device, std::size_t bytes) {
  use();
  MLG_CU(driver_, MemcpyDtoHAsync, host, device_pointer(device), bytes, stream_);
  MLG_CU(driver_, StreamSynchronize, stream_);
}

void GpuDevice::copy(void* to, const void* from, std::size_t bytes) {
  use();
  MLG_CU(driver_, MemcpyDtoDAsync, device_pointer(to), device_pointer(from), bytes, stream_);
}

void GpuDevice::fill(void* device, int byte, std::size_t bytes) {
  use();
  MLG_CU(driver_, MemsetD8Async, device_pointer(device), static_cast<unsigned char>(byte), bytes, stream_);
}

std::unique_ptr<GpuFunction> GpuDevice::make_function(const FunctionRequest& request,
                                                      const FunctionSource& source) {
  auto function = std::make_unique<GpuFunction>(driver_);
  if (request.compiled) {
    // std::string ends with the zero that the driver wants after PTX.
    const CUresult result = driver_.ModuleLoadData(&function->module, source.text.data());
    driver_.check(result, ("cuModuleLoadData of " + request.compiled->file()).c_str());
    MLG_CU(driver_, ModuleGetFunction, &function->function, function->module, request.launch->function);
  } else {
    const CompiledFunction code = compiler_->compile(request.kernel, source);
    MLG_CU(driver_, ModuleLoadData, &function->module, code.cubin.data());
    MLG_CU(driver_, ModuleGetFunction, &function->function, function->module, code.symbol.c_str());
  }
  return function;
}

void GpuDevice::expect(const FunctionRequest& request) {
  const FunctionSource source = function_source(request.source, *request.launch);
  if (!functions_.contains(source)) compiler_->begin(request.kernel, source);
}

Function& GpuDevice::load(const FunctionRequest& request) {
  use();
  const FunctionSource source = request.compiled
                                    ? FunctionSource{request.launch->function, {}, request.compiled->code()}
                                    : function_source(request.source, *request.launch);
  auto known = functions_.find(source);
  if (known == functions_.end()) known = functions_.emplace(source, make_function(request, source)).first;
  GpuFunction& function = *known->second;
  if (request.launch->shared_bytes > function.shared_bytes) {
    MLG_CU(driver_, FuncSetAttribute, function.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
           static_cast<int>(request.launch->shared_bytes));
    function.shared_bytes = request.launch->shared_bytes;
  }
  return function;
}

void GpuDevice::launch(Function& function, const Grid& grid, std::span<const DeviceArgument> arguments) {
  union Value {
    CUdeviceptr pointer;
    int integer;
    long long wide;
    float number;
  };
  constexpr std::size_t kMost = 32;
  if (arguments.size() > kMost) throw std::runtime_error("a kernel has more than 32 parameters");
  std::array<Value, kMost> values;
  std::array<void*, kMost> places;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const DeviceArgument& argument = arguments[i];
    places[i] = &values[i];
    switch (argument.value.kind) {
      case MLG_CUDA_INT:
        values[i].integer = static_cast<int>(argument.value.integer);
        break;
      case MLG_CUDA_LONG:
        values[i].wide = argument.value.integer;
        break;
      case MLG_CUDA_FLOAT:
        values[i].number = static_cast<float>(argument.value.number);
        break;
      default:
        values[i].pointer = device_pointer(argument.address);
    }
  }
  use();
  MLG_CU(driver_, LaunchKernel, static_cast<GpuFunction&>(function).function, grid.blocks[0], grid.blocks[1],
         grid.blocks[2], grid.threads[0], grid.threads[1], grid.threads[2], grid.shared_bytes, stream_,
         places.data(), nullptr);
}

std::unique_ptr<Gemm> GpuDevice::gemm(const GemmShape& shape) {
  use();
  if (!blas_) blas_ = std::make_unique<CublasLt>(*this, name_, cache_directory_, libraries());
  return blas_->gemm(shape);
}

std::string GpuDevice::measured() const {
  if (!blas_) return {};
  return blas_->measured() + "; modules of kernels: " + std::to_string(functions_.size()) + " loaded, " +
         std::to_string(compiler_->compilations()) +
         " of them compiled now; plans of attention: " + std::to_string(cudnn_ ? cudnn_->plans() : 0);
}

DeviceMade GpuDevice::made() const {
  return {functions_.size(), static_cast<std::uint64_t>(compiler_->compilations()),
          blas_ ? blas_->measurements() : 0};
}

std::string GpuDevice::attention_missing() {
  if (cudnn_) return {};
  use();
  try {
    cudnn_ = std::make_unique<Cudnn>(*this, major_, threads_);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

std::optional<std::size_t> GpuDevice::attention_workspace_bytes(const AttentionShape& shape,
                                                                std::string& reason) {
  reason = attention_missing();
  if (!reason.empty()) return std::nullopt;
  return cudnn_->workspace_bytes(shape, reason);
}

void GpuDevice::expect_attention(const AttentionShape& shape) {
  if (attention_missing().empty()) cudnn_->expect(shape);
}

std::unique_ptr<Attention> GpuDevice::attention(const AttentionShape& shape, std::string& reason) {
  reason = attention_missing();
  if (!reason.empty()) return nullptr;
  use();
  return cudnn_->attention(shape, reason);
}

void GpuDevice::begin_capture() {
  use();
  MLG_CU(driver_, StreamBeginCapture, stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
}

std::unique_ptr<CapturedGraph> GpuDevice::end_capture() {
  CUgraph graph = nullptr;
  MLG_CU(driver_, StreamEndCapture, stream_, &graph);
  auto captured = std::make_unique<GpuGraph>(driver_, context_);
  const CUresult result = driver_.GraphInstantiateWithFlags(&captured->executable, graph, 0);
  driver_.GraphDestroy(graph);
  driver_.check(result, "cuGraphInstantiateWithFlags");
  return captured;
}

void GpuDevice::abandon_capture() noexcept {
  CUgraph graph = nullptr;
  driver_.StreamEndCapture(stream_, &graph);
  if (graph) driver_.GraphDestroy(graph);
}

void GpuDevice::launch(CapturedGraph& graph) {
  use();
  MLG_CU(driver_, GraphLaunch, static_cast<GpuGraph&>(graph).executable, stream_);
}

void GpuDevice::synchronize() {
  use();
  MLG_CU(driver_, StreamSynchronize, stream_);
}

void GpuDevice::mark(std::uint32_t slot) {
  use();
  CUevent& mark = marks_.at(slot);
  if (!mark) MLG_CU(driver_, EventCreate, &mark, CU_EVENT_DISABLE_TIMING);
  MLG_CU(driver_, EventRecord, mark, stream_);
}

void GpuDevice::await(std::uint32_t slot) {
  use();
  if (marks_.at(slot)) MLG_CU(driver_, EventSynchronize, marks_[slot]);
}

}  // namespace mulligan::cuda
