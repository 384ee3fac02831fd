// The optimiser plugin `muon_h`: Muon on the sphere. Every step is a fraction of the weights' norm, which never
// changes: Y = W - lr O |W| / |O|, W <- Y |W| / |Y| with O the orthogonalised momentum (radius_step.h).
#include "optimizers/common/directions.h"
#include "optimizers/common/momentum.h"
#include "optimizers/common/named_kernel.h"
#include "optimizers/common/radius_step.h"

namespace mulligan::optimizers {
namespace {

class MuonH : public MatrixOptimizer {
 public:
  static constexpr const char* summary =
      "muon whose steps leave the norm of each matrix as it is; weights of zero stay zero";
  static constexpr unsigned state_version = 1;
  static inline const sdk::Schema<ArenaDirectionConfig> schema = with_direction_keys<ArenaDirectionConfig>();
  static inline const mlg_kernel kernels[] = {
      cpu_kernel_as<MatrixMomentum>("muon_h_momentum"), cpu_kernel_as<RadiusStep>("muon_h_step"),
      kernel_as(matrix_momentum_cuda, "muon_h_momentum"), kernel_as(radius_step_cuda, "muon_h_step")};

  explicit MuonH(const ArenaDirectionConfig& config) : MatrixOptimizer("muon_h", config) {}

  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    const std::vector<sdk::Value> directions =
        directions_.record(recorder, parameters, scalars, sdk::absent, true);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      record_radius_step(recorder, "muon_h", parameters[i], directions[i], scalars,
                         {.floor = UpdateFloor::equal, .pin = RadiusPin::fixed, .eps = 1e-10});
    }
  }
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::MuonH, muon_h);
