// The stubs judge: planted misuses of driver, cuBLASLt and cuDNN. Each is refused by a sentence that names call and
// argument; after that nothing works, as on a card. (For NCCL: tests/unit/communicator_nccl_test.cpp.)
#include <cublasLt.h>
#include <cuda.h>
#include <mulligan/cuda_kernel.h>

#include <functional>
#include <vector>

#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::misuse_test {
namespace {

struct Misuse {
  const char* what;
  std::function<void(GpuDevice&)> plant;
  const char* says;
};
void PrintTo(const Misuse& misuse, std::ostream* out) {
  *out << misuse.what;
}

char* memory(GpuDevice& gpu, std::size_t bytes) {
  auto* address = static_cast<char*>(gpu.allocate(bytes));
  gpu.fill(address, 1, bytes);
  return address;
}

// c [m, n] = a [m, k] b [k, n] in f32, by columns as cuBLASLt counts, with all that a caller can get wrong.
struct Matmul {
  int m = 64, n = 32, k = 16, batch = 1;
  long long leading_a = 64, leading_b = 16, stride_c = 64 * 32;
  int rows_b = 16, batch_b = 1, columns_d = 32;
  std::size_t workspace = 1024, allocated_workspace = 1024;
  bool proposed = true;
  std::function<void(GpuDevice&, char*& a, char*& b, char*& d)> spoil = [](auto&&...) {};

  void run(GpuDevice& gpu) const {
    cublasLtHandle_t handle = nullptr;
    cublasLtCreate(&handle);
    cublasLtMatmulDesc_t matmul = nullptr;
    cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const auto layout = [](int rows, int columns, long long leading, int count, long long stride) {
      cublasLtMatrixLayout_t made = nullptr;
      cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), leading);
      cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
      cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                       sizeof stride);
      return made;
    };
    const cublasLtMatrixLayout_t a = layout(m, k, leading_a, batch, m * k),
                                 b = layout(rows_b, n, leading_b, batch_b, k * n),
                                 d = layout(m, columns_d, m, batch, stride_c);
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    const std::uint32_t alignment = 16;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment,
                                         sizeof alignment);
    cublasLtMatmulHeuristicResult_t results[3];
    int count = 0;
    if (proposed) cublasLtMatmulAlgoGetHeuristic(handle, matmul, a, b, d, d, preference, 3, results, &count);
    const float one = 1, zero = 0;
    cublasLtMatmulAlgo_t algorithm{};
    const auto bytes = [&](int rows, int columns) {
      return static_cast<std::size_t>(batch * rows * columns) * sizeof(float);
    };
    char *pa = memory(gpu, bytes(m, k) + 16), *pb = memory(gpu, bytes(k, n)), *pd = memory(gpu, bytes(m, n));
    void* space = allocated_workspace == 0 ? nullptr : memory(gpu, allocated_workspace);
    spoil(gpu, pa, pb, pd);
    cublasLtMatmul(handle, matmul, &one, pa, a, pb, b, &zero, pd, d, pd, d, &algorithm, space, workspace,
                   nullptr);
    for (const cublasLtMatrixLayout_t made : {a, b, d}) cublasLtMatrixLayoutDestroy(made);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatmulDescDestroy(matmul);
  }
};

Misuse matmul(const char* what, Matmul wrong, const char* says) {
  return {what, [wrong](GpuDevice& gpu) { wrong.run(gpu); }, says};
}

// Packed attention of two rows of 100 and 156 tokens, 2 heads over 1 of width 16, forward or backward.
struct Packed {
  explicit Packed(GpuDevice& device, bool backward = false) : gpu(device) {
    shape = {.backward = backward,
             .packed = true,
             .tokens = 256,
             .query_heads = 2,
             .kv_heads = 1,
             .width = 16,
             .rows = 16,
             .longest = 2048,
             .scale = 0.25};
    const std::size_t query = 256 * 2 * 16 * 2, kv = 256 * 16 * 2;
    for (DeviceArgument* one : {&arguments.q, &arguments.o, &arguments.d_o, &arguments.dq})
      one->address = memory(gpu, query);
    for (DeviceArgument* one : {&arguments.k, &arguments.v, &arguments.dk, &arguments.dv})
      one->address = memory(gpu, kv);
    arguments.stats.address = memory(gpu, 256 * 2 * 4);
    arguments.query_starts.address = starts(32);
    arguments.kv_starts.address = starts(16);
    arguments.stats_starts.address = starts(2);
    std::vector<std::int32_t> lengths(16);
    lengths[0] = 100;
    lengths[1] = 156;
    arguments.lengths.address = gpu.allocate(64);
    gpu.to_device(arguments.lengths.address, lengths.data(), 64);
  }
  // Of 16 rows, in elements of `each` for a token.
  void* starts(std::int32_t each, std::int32_t second = 100, std::int32_t end = 256) const {
    std::vector<std::int32_t> values(17, end * each);
    values[0] = 0;
    values[1] = second * each;
    void* address = gpu.allocate(17 * 4);
    gpu.to_device(address, values.data(), 17 * 4);
    return address;
  }
  void run(std::size_t missing_workspace = 0) {
    std::string reason;
    const std::unique_ptr<Attention> plan = gpu.attention(shape, reason);
    ASSERT_NE(plan, nullptr) << reason;
    void* workspace = gpu.allocate(plan->workspace_bytes() - missing_workspace);
    try {
      plan->run(arguments, workspace);
    } catch (const std::runtime_error&) {
    }
  }

  GpuDevice& gpu;
  AttentionShape shape;
  AttentionArguments arguments;
};

Misuse attention(const char* what, std::function<void(Packed&)> spoil, const char* says,
                 bool backward = false) {
  return {what,
          [spoil = std::move(spoil), backward](GpuDevice& gpu) {
            Packed packed(gpu, backward);
            spoil(packed);
            packed.run();
          },
          says};
}

constexpr const char* kSource =
    "__global__ void __launch_bounds__(256) scale(global<const float> x, float factor,\n"
    "                  global<float> y, long long count) {";
// A launch of it: grid, block and shared memory, and where x and y lie.
struct Launch {
  Grid grid{{4, 1, 1}, {256, 1, 1}, 0};
  std::function<void*(GpuDevice&)> y = [](GpuDevice& gpu) { return memory(gpu, 4096); };
  std::uint32_t declared_shared = 0;

  void run(GpuDevice& gpu) const {
    mlg_cuda_launch launch{};
    launch.function = "scale";
    launch.shared_bytes = declared_shared;
    Function& function = gpu.load({"scale", kSource, &launch});
    DeviceArgument arguments[4];
    arguments[0].value.kind = arguments[2].value.kind = MLG_CUDA_TENSOR;
    arguments[0].address = memory(gpu, 4096);
    arguments[1].value.kind = MLG_CUDA_FLOAT;
    arguments[2].address = y(gpu);
    arguments[3].value.kind = MLG_CUDA_LONG;
    gpu.launch(function, grid, arguments);
  }
};
Misuse launch(const char* what, Launch wrong, const char* says) {
  return {what, [wrong](GpuDevice& gpu) { wrong.run(gpu); }, says};
}
Misuse captured(const char* what, std::function<void(GpuDevice&)> act, const char* says) {
  return {what,
          [act = std::move(act)](GpuDevice& gpu) {
            stub().captures = true;
            gpu.begin_capture();
            act(gpu);
          },
          says};
}

std::vector<Misuse> misuses() {
  static char host[4096];
  std::vector<Misuse> all = {
      // cuBLASLt
      matmul("leading dimension", {.leading_a = 60},
             "cublasLtMatmul: argument Adesc has 64 rows and a leading dimension of 60"),
      matmul("larger leading dimension", {.leading_b = 24},
             "cublasLtMatmul: argument B takes 3040 bytes, 0 bytes into an allocation of 2048"),
      matmul("batch of one operand", {.batch = 2, .batch_b = 1},
             "cublasLtMatmul: argument Bdesc has a batch of 1, and that of A has 2"),
      matmul("stride of the result", {.batch = 2, .stride_c = 1000, .batch_b = 2},
             "cublasLtMatmul: argument Ddesc writes matrices of 2048 elements 1000 elements apart"),
      matmul("inner extents", {.leading_b = 24, .rows_b = 24},
             "cublasLtMatmul: argument Bdesc is [24, 32] where A is [64, 16]"),
      matmul("extents of the result", {.columns_d = 30},
             "cublasLtMatmul: argument Ddesc is [64, 30], and the matmul is [64, 32]"),
      matmul("workspace shorter than said", {.workspace = 4096, .allocated_workspace = 1024},
             "cublasLtMatmul: argument workspace takes 4096 bytes, 0 bytes into an allocation of 1024"),
      matmul("algorithm of another matmul", {.n = 40, .columns_d = 40, .proposed = false},
             "cublasLtMatmul: argument algo was neither proposed nor checked for this matmul"),
      matmul("alignment", {.spoil = [](GpuDevice&, char*& a, char*&, char*&) { a += 4; }},
             "cublasLtMatmul: argument A is not aligned to 16 bytes"),
      matmul("short operand",
             {.spoil = [](GpuDevice& gpu, char*&, char*& b, char*&) { b = memory(gpu, 16); }},
             "cublasLtMatmul: argument B takes 2048 bytes, 0 bytes into an allocation of 16"),
      matmul("freed operand", {.spoil = [](GpuDevice& gpu, char*& a, char*&, char*&) { gpu.free(a); }},
             "cublasLtMatmul: argument A takes 4096 bytes of an allocation of 4112 that was freed"),
      matmul("result beyond its end", {.spoil = [](GpuDevice&, char*&, char*&, char*& d) { d += 64; }},
             "takes 8192 bytes, 64 bytes into an allocation of 8192"),
      matmul("operand of the host", {.spoil = [](GpuDevice&, char*& a, char*&, char*&) { a = host; }},
             "cublasLtMatmul: argument A takes 4096 bytes where nothing was allocated"),
      matmul("no workspace", {.allocated_workspace = 0},
             "cublasLtMatmul: argument workspace takes 1024 bytes where nothing was allocated"),
      // cuDNN
      attention(
          "freed k", [](Packed& p) { p.gpu.free(p.arguments.k.address); },
          "cudnnBackendExecute: argument tensor 2 takes 8192 bytes of an allocation of 8192 that was freed"),
      attention(
          "short o", [](Packed& p) { p.arguments.o.address = memory(p.gpu, 8192); },
          "cudnnBackendExecute: argument tensor 4 takes 16384 bytes, 0 bytes into an allocation of 8192"),
      attention(
          "host memory", [](Packed& p) { p.arguments.v.address = host; },
          "cudnnBackendExecute: argument tensor 3 takes 8192 bytes where nothing was allocated"),
      attention(
          "starts beyond the tokens",
          [](Packed& p) { p.arguments.query_starts.address = p.starts(32, 100, 300); },
          "cudnnBackendExecute: argument tensor 1 takes 19200 bytes, 0 bytes into an allocation of 16384"),
      attention(
          "starts that fall", [](Packed& p) { p.arguments.kv_starts.address = p.starts(16, 300, 256); },
          "row 1 starts at 4800 and the next one at 4096"),
      attention(
          "too few lengths", [](Packed& p) { p.arguments.lengths.address = memory(p.gpu, 60); },
          "takes 64 bytes, 0 bytes into an allocation of 60"),
      attention(
          "unaligned gradient",
          [](Packed& p) { p.arguments.dq.address = static_cast<char*>(p.arguments.dq.address) + 8; },
          "is not aligned to 16 bytes", true),
      {"workspace of a plan", [](GpuDevice& gpu) { Packed(gpu).run(1); },
       "cudnnBackendExecute: argument workspace takes 17408 bytes, 0 bytes into an allocation of 17407"},
      {"workspace of the sums", [](GpuDevice& gpu) { Packed(gpu, true).run(16384); },
       "cudnnBackendExecute: argument"},
      // Driver
      launch("freed argument",
             {.y =
                  [](GpuDevice& gpu) {
                    void* gone = memory(gpu, 512);
                    gpu.free(gone);
                    return gone;
                  }},
             "cuLaunchKernel of scale: argument 2 (global<float> y) "
             "takes 1 bytes of an allocation of 512 that was freed"),
      launch(
          "argument of the host", {.y = [](GpuDevice&) -> void* { return host; }},
          "cuLaunchKernel of scale: argument 2 (global<float> y) takes 1 bytes where nothing was allocated"),
      launch(
          "argument after its allocation",
          {.y = [](GpuDevice& gpu) -> void* { return memory(gpu, 512) + 512; }},
          "cuLaunchKernel of scale: argument 2 (global<float> y) takes 1 bytes where nothing was allocated"),
      launch("empty grid", {.grid = {{0, 1, 1}, {256, 1, 1}, 0}},
             "cuLaunchKernel of scale: argument gridDimX is 0"),
      launch("large grid", {.grid = {{1, 70000, 1}, {256, 1, 1}, 0}},
             "cuLaunchKernel of scale: argument gridDimY is 70000"),
      launch("large block", {.grid = {{1, 1, 1}, {512, 4, 1}, 0}},
             "cuLaunchKernel of scale: argument blockDim makes 2048 threads, and a block has 1024"),
      launch(
          "block beyond the launch bounds", {.grid = {{1, 1, 1}, {512, 1, 1}, 0}},
          "cuLaunchKernel of scale: argument blockDim makes 512 threads, and the function has registers for 256"),
      launch("deep block", {.grid = {{1, 1, 1}, {1, 1, 128}, 0}},
             "cuLaunchKernel of scale: argument blockDimZ is 128"),
      launch("shared memory that was not asked for", {.grid = {{1, 1, 1}, {32, 1, 1}, 65536}},
             "cuLaunchKernel of scale: argument sharedMemBytes is 65536, and 49152 were allowed"),
      launch("more shared memory than there is", {.declared_shared = 300000},
             "cuFuncSetAttribute: argument value of scale asks for "
             "300000 bytes of shared memory, and a block has 232448"),
      captured(
          "allocation in a capture", [](GpuDevice& gpu) { gpu.allocate(16); },
          "cuMemAlloc: within a capture of the stream"),
      captured(
          "waiting in a capture", [](GpuDevice& gpu) { gpu.synchronize(); },
          "cuStreamSynchronize: within a capture of the stream"),
      captured(
          "module in a capture", [](GpuDevice& gpu) { Launch{}.run(gpu); },
          "cuModuleLoadData: within a capture of the stream"),
      {"download in a capture",
       [](GpuDevice& gpu) {
         const char* x = memory(gpu, 16);
         stub().captures = true;
         gpu.begin_capture();
         gpu.from_device(host, x, 16);
       },
       "cuStreamSynchronize: within a capture of the stream"},
      {"freed twice",
       [](GpuDevice& gpu) {
         void* twice = memory(gpu, 16);
         gpu.free(twice);
         gpu.free(twice);
       },
       "cuMemFree: argument address is not an allocation, or was freed"},
      {"copy beyond its source", [](GpuDevice& gpu) { gpu.copy(memory(gpu, 100), memory(gpu, 99), 100); },
       "cuMemcpyDtoDAsync: argument from takes 100 bytes, 0 bytes into an allocation of 99"},
      {"fill beyond its end", [](GpuDevice& gpu) { gpu.fill(memory(gpu, 100) + 1, 0, 100); },
       "cuMemsetD8Async: argument address takes 100 bytes, 1 bytes into an allocation of 100"},
      {"upload beyond its target", [](GpuDevice& gpu) { gpu.to_device(memory(gpu, 100) + 50, host, 51); },
       "cuMemcpyHtoDAsync: argument to takes 51 bytes, 50 bytes into an allocation of 100"},
  };
  return all;
}

class Planted : public StubDevice, public testing::WithParamInterface<Misuse> {};

TEST_P(Planted, IsRefusedByItsArgumentAndStays) {
  GpuDevice gpu = device();
  try {
    GetParam().plant(gpu);
  } catch (const std::runtime_error&) {  // the driver's own error, which says less
  }
  EXPECT_NE(stub().violation.find(GetParam().says), std::string::npos) << stub().violation;
  EXPECT_THROW(gpu.synchronize(), std::runtime_error) << "sticky";
  EXPECT_THROW(gpu.allocate(16), std::runtime_error) << "sticky";
}

INSTANTIATE_TEST_SUITE_P(Misuse, Planted, testing::ValuesIn(misuses()));

// What is right is not refused.
TEST_F(StubDevice, SoundCallsAreNotRefused) {
  GpuDevice gpu = device();
  Matmul{}.run(gpu);
  EXPECT_EQ(stub().violation, "");
  Matmul{.batch = 2, .batch_b = 2}.run(gpu);
  EXPECT_EQ(stub().violation, "");
  for (const bool backward : {false, true}) {
    Packed(gpu, backward).run();
    EXPECT_EQ(stub().violation, "");
  }
  Launch{}.run(gpu);
  EXPECT_EQ(stub().violation, "");
  gpu.synchronize();
}

// The library refuses what its version does not compute, when a plan is asked for.
TEST_F(StubDevice, TheSupportSurfaceIsTheLibrarys) {
  GpuDevice gpu = device();
  Packed wide(gpu), odd(gpu);
  wide.shape.width = 160;
  odd.shape.width = 20;
  std::string reason;
  EXPECT_EQ(gpu.attention(wide.shape, reason), nullptr);
  EXPECT_NE(reason.find("heads of width 160 are not supported"), std::string::npos) << reason;
  EXPECT_EQ(gpu.attention(odd.shape, reason), nullptr);
  EXPECT_NE(reason.find("heads of width 20 are not supported"), std::string::npos) << reason;
}

}  // namespace
}  // namespace mulligan::cuda::misuse_test
