// The optimiser plugin `normuon`: Muon whose update is evened out over its neurons (normuon_kernels.h).
#include "optimizers/common/directions.h"
#include "optimizers/common/momentum.h"
#include "optimizers/common/named_kernel.h"
#include "optimizers/normuon/normuon_kernels.h"

namespace mulligan::optimizers {
namespace {

struct NormuonConfig : ArenaDirectionConfig {
  double beta2 = 0.95;
  double weight_decay = 0.0;
};

class Normuon : public MatrixOptimizer {
 public:
  static constexpr const char* summary =
      "muon whose rows (of wide matrices, columns) are divided by a running root mean square";
  static constexpr unsigned state_version = 1;
  static inline const sdk::Schema<NormuonConfig> schema = with_direction_keys<NormuonConfig>(
      sdk::key("beta2", &NormuonConfig::beta2,
               "decay per step of the mean square of each row, or column, of the update")
          .range(0.0, 0.999999),
      sdk::key("weight_decay", &NormuonConfig::weight_decay,
               "fraction of a weight taken off per step, times the scheduled learning rate")
          .at_least(0.0));
  static inline const mlg_kernel kernels[] = {cpu_kernel_as<MatrixMomentum>("normuon_momentum"),
                                              sdk::cpu_kernel<NormuonFactors>(),
                                              sdk::cpu_kernel<NormuonApply>(),
                                              kernel_as(matrix_momentum_cuda, "normuon_momentum"),
                                              normuon_factors_cuda,
                                              normuon_apply_cuda};

  explicit Normuon(const NormuonConfig& config) : MatrixOptimizer("normuon", config), config_(config) {}

  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    const std::vector<sdk::Value> directions =
        directions_.record(recorder, parameters, scalars, sdk::absent, true);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Parameter& parameter = parameters[i];
      const mlg_tensor lines = line_shape(recorder.describe(parameter.master));
      const sdk::Value second_moment = recorder.state(std::string(parameter.name) + ".second_moment", lines);
      const sdk::Value factors = recorder.scratch(lines);
      const double scale = tall_scale(recorder, parameter);
      recorder.launch(NormuonFactors::name, {directions[i], second_moment, factors},
                      {{"beta2", config_.beta2}, {"scale", scale}});
      recorder.launch(NormuonApply::name, {directions[i], factors, parameter.master, scalars},
                      {{"lr_multiplier", parameter.lr_multiplier},
                       {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
                       {"scale", scale}});
    }
  }

 private:
  NormuonConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::Normuon, normuon);
