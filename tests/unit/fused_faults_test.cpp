// Each result of each fused kernel is spoiled in turn: the model must then differ by more than graph_fuse_residuals_test allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/graph/call_access.h"
#include "framework/graph/row_rules.h"
#include "tests/support/fused_model.h"

namespace mulligan::fused_faults_test {
namespace {

// The kernel that is spoiled now, and which argument of it.
struct Fault {
  const mlg_kernel* kernel = nullptr;
  std::uint32_t argument = 0;
  int runs = 0;  // calls that had the argument
} fault;

// What the kernel computes, but for one element in the middle, which is off by half of the result's size.
mlg_error run_with_fault(const mlg_launch* launch) {
  if (mlg_error error = fault.kernel->run(launch)) return error;
  const mlg_tensor& result = launch->arguments[fault.argument];
  if (result.dtype != MLG_F32) return nullptr;  // absent: the models here compute in f32
  ++fault.runs;
  std::int64_t count = 1;
  for (int axis = 0; axis < MLG_MAX_RANK; ++axis) count *= result.shape[axis];
  auto* values = static_cast<float*>(result.data);
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) squares += double{values[i]} * values[i];
  values[count / 2] += 0.5F * static_cast<float>(std::sqrt(squares / static_cast<double>(count)));
  return nullptr;
}

class FaultyBackend : public Backend {
 public:
  using Backend::Backend;
  void plant(const mlg_kernel& kernel) {
    mlg_kernel spoiled = kernel;
    spoiled.run = run_with_fault;
    check(table().add_kernels(instance(), &spoiled, 1, 1));
  }
};

// Of the kernel's arguments, were all of them there.
std::vector<Access> accesses_of(const Backend& backend, const mlg_kernel& kernel) {
  const std::string_view signature = kernel.signature, arguments = signature.substr(0, signature.find(';'));
  const auto count = static_cast<std::size_t>(std::ranges::count(arguments, ',')) + 1;
  return CallAccess(backend).of({kernel.name, std::vector<Value>(count, Value{1}), {}});
}

const mlg_kernel* kernel_of(const Backend& backend, std::string_view name) {
  for (std::uint32_t i = 0; const mlg_kernel* kernel = backend.kernel_at(i); ++i) {
    if (kernel->name == name) return kernel;
  }
  return nullptr;
}

// The largest difference of any result, as graph_fuse_residuals_test sees it.
float largest_difference(const ModelResult& a, const ModelResult& b) {
  float largest = difference(a.logits, b.logits);
  for (const auto& [name, gradient] : b.gradients)
    largest = std::max(largest, difference(a.gradients.at(name), gradient));
  return largest;
}

TEST(FusedKernels, AFaultInAnyResultIsSeen) {
  const PluginHandle plugin = test_plugin_host().load(MLG_BACKEND, "cpu");
  const PluginConfig config = test_plugin_config(plugin, "threads = 2");
  const std::unique_ptr<Backend> unfused = make_cpu_backend(2);
  unfused->set_fused_kernels(false);
  const ModelResult plain = run_model(*unfused, fused_test_model(), LayerOrderKind::looped, MLG_F32);
  int planted = 0;
  for (const KernelRows& row : kernel_rows()) {
    const std::string_view name = row.kernel;
    if (!row.fused || name == "symmetric_matmul" || name == "matmul_add") continue;  // these of optimisers
    SCOPED_TRACE(name);
    const std::unique_ptr<Backend> sound = make_cpu_backend(1);
    const mlg_kernel* kernel = kernel_of(*sound, name);
    ASSERT_TRUE(kernel);
    const std::vector<Access> accesses = accesses_of(*sound, *kernel);
    int runs = 0;
    for (std::uint32_t argument = 0; argument < accesses.size(); ++argument) {
      if (!accesses[argument].written) continue;
      fault = {kernel, argument, 0};
      FaultyBackend backend(plugin, config);
      backend.plant(*kernel);
      const ModelResult seen = run_model(backend, fused_test_model(), LayerOrderKind::looped, MLG_F32);
      runs += fault.runs;
      if (fault.runs == 0) continue;  // no call of the model has it
      ++planted;
      EXPECT_GT(largest_difference(seen, plain), 1e-4F) << "argument " << argument;
    }
    EXPECT_GT(runs, 0) << "the model calls it";
  }
  EXPECT_GE(planted, 50);
}

}  // namespace
}  // namespace mulligan::fused_faults_test
