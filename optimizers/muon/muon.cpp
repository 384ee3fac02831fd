// The optimiser plugin `muon`: momentum whose update is orthogonalised, for matrices and banks of matrices.
#include <mulligan/optimizer.hpp>

#include "optimizers/common/directions.h"
#include "optimizers/common/momentum.h"
#include "optimizers/common/named_kernel.h"
#include "optimizers/common/schatten.h"
#include "optimizers/muon/muon_kernels.h"

namespace mulligan::optimizers {
namespace {

struct MuonConfig : DirectionConfig {
  double weight_decay = 0.0;
};

class Muon : public MatrixOptimizer {
 public:
  static constexpr const char* summary =
      "momentum with orthogonalised updates, for matrices and banks of them";
  static constexpr unsigned state_version = 1;
  static constexpr bool fused_update = true;
  static inline const sdk::Schema<MuonConfig> schema = with_direction_keys<MuonConfig>(
      sdk::key("weight_decay", &MuonConfig::weight_decay,
               "fraction of a weight taken off per step, times the scheduled learning rate")
          .at_least(0.0),
      sdk::key<MuonConfig, std::string>(
          "iteration_form", &MuonConfig::iteration_form,
          "direct: each iteration from its own Gram matrix; gram: in fp32, three from one where a "
          "matrix is at least twice as long as wide, which is less work and equal but for rounding")
          .choices("direct|gram"),
      sdk::key<MuonConfig, std::string>(
          "norm", &MuonConfig::norm,
          "by what a matrix is divided before the iteration: its Frobenius norm, or "
          "its Schatten-4 norm, |X X^T|^(1/2), nearer to the largest singular value")
          .choices("frobenius|schatten4"),
      sdk::key<MuonConfig, bool>("row_normalize", &MuonConfig::row_normalize,
                                 "scale each row to length 1 before orthogonalising"));
  static inline const mlg_kernel kernels[] = {
      cpu_kernel_as<MatrixMomentum>("muon_momentum"),        cpu_kernel_as<GramNorm>("muon_gram_norm"),
      cpu_kernel_as<DivideByNorm>("muon_divide_by_norm"),    sdk::cpu_kernel<MuonUpdate>(),
      kernel_as(matrix_momentum_cuda, "muon_momentum"),      kernel_as(gram_norm_cuda, "muon_gram_norm"),
      kernel_as(divide_by_norm_cuda, "muon_divide_by_norm"), muon_update_cuda};

  explicit Muon(const MuonConfig& config) : MatrixOptimizer("muon", config), config_(config) {}

  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    record_joined(recorder, parameters, scalars, {}, false);
  }

  void record_update(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update) override {
    record_joined(recorder, parameters, scalars, update, true);
  }

 private:
  // `join`: see Directions::record().
  void record_joined(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update, bool join) {
    const std::vector<sdk::Value> directions =
        directions_.record(recorder, parameters, scalars, update.gradient_scale, join);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Parameter& parameter = parameters[i];
      recorder.launch(
          MuonUpdate::name,
          {directions[i], parameter.master, scalars, sdk::average_of(update, i), sdk::copy_of(update, i)},
          {{"lr_multiplier", parameter.lr_multiplier},
           {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
           {"scale", tall_scale(recorder, parameter)},
           {"average_decay", update.average_decay}});
    }
  }

  MuonConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::Muon, muon);
