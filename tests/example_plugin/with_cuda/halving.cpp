// An optimiser whose only kernel runs on the cuda backend: what docs/cuda.md says of plugins out of tree.
#include <mulligan/cuda/element_plan.hpp>
#include <mulligan/optimizer.hpp>

namespace mulligan::halving {
namespace {

#include "halving.cu.inc"

struct Step {
  static constexpr const char* name = "halving_step";
  static constexpr const char* signature = "inout master, in scalars";
  enum Argument : std::uint32_t { master, scalars };
  static void plan(sdk::CudaCall& call) {
    sdk::dispatch_elements<float>(call, {master}, [&]<int N>(const sdk::ElementPlan& elements) {
      call.launch(MLG_INSTANCE(halving_step, N), elements.grid(), elements.block(), call.tensor(master),
                  call.tensor(scalars), elements.count);
    });
  }
};

class Halving : public sdk::Optimizer {
 public:
  static constexpr const char* summary = "shrinks every weight";
  static inline const mlg_kernel kernels[] = {sdk::cuda_kernel<Step>(kSource)};

  std::uint32_t scalar_count() const override { return 1; }
  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    for (const sdk::Parameter& parameter : parameters)
      recorder.launch(Step::name, {parameter.master, scalars});
  }
  void scalars(const sdk::Step& step, std::span<float> values) const override {
    values[0] = static_cast<float>(step.lr);
  }
};

}  // namespace
}  // namespace mulligan::halving

MULLIGAN_EXPORT_OPTIMIZER(mulligan::halving::Halving, halving);
