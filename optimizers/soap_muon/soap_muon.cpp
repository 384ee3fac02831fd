// The optimiser plugin `soap_muon`: the momentum of each matrix is whitened in the bases of its gradients' second
// moments (SOAP), then orthogonalised (Muon), and the step minds the weights' norm. As in the modded-nanogpt arena's
// record of 2026-06-19; formulas in whitening.h, basis.h, orthogonal.h and common/radius_step.h.
//
// With momentum u, gradient g and bases Q, R (rows; whitening.h, basis.h):
//   p = Q u R^T;  z = Q^T white(p) R, scaled to the Schatten-4 norm of u; with trust: blended with u, and scaled again
//   O = sqrt(max(1, r/c)) NS(z / |z|_4);  W by radius_step.h;  then moments and bases
#include "optimizers/common/directions.h"
#include "optimizers/common/momentum.h"
#include "optimizers/common/named_kernel.h"
#include "optimizers/common/radius_step.h"
#include "optimizers/common/schatten.h"
#include "optimizers/soap_muon/basis.h"
#include "optimizers/soap_muon/orthogonal.h"
#include "optimizers/soap_muon/whitening.h"

#include <optional>

namespace mulligan::optimizers {
namespace {

struct SoapMuonConfig : ArenaDirectionConfig {
  SoapMuonConfig() { norm = "schatten4"; }
  bool precondition = true;
  double beta2 = 0.9;
  bool trust = false;
  double trust_agreement = 0.2;
  double trust_floor = 0.45;
  double trust_cap = 0.85;
  std::int64_t trust_floor_until = 1375;
  std::int64_t trust_fade_until = 1625;
  std::string floor = "row";
  double floor_ratio = 0.3825;
  double outward = 0.5;
  bool pin_radius = true;
  double cautious_decay = 0.025;
};

class SoapMuon : public MatrixOptimizer {
 public:
  static constexpr const char* summary =
      "muon of momentum that is whitened in the gradients' bases, with steps that mind the weights' norm";
  static constexpr unsigned state_version = 1;
  static inline const sdk::Schema<SoapMuonConfig> schema = with_direction_keys<SoapMuonConfig>(
      sdk::key(
          "precondition", &SoapMuonConfig::precondition,
          "whiten the momentum in the bases of the gradients; false: everything else, of the momentum as it is"),
      sdk::key("beta2", &SoapMuonConfig::beta2,
               "decay per step of the second moments: of the momentum in the bases, and of the gradients")
          .range(0.0, 0.999999),
      sdk::key("trust", &SoapMuonConfig::trust,
               "blend whitened and plain momentum by how far they agree with each other and the gradient"),
      sdk::key("trust_agreement", &SoapMuonConfig::trust_agreement,
               "cosine of the two up to which the whitened one is not trusted at all")
          .range(0.0, 0.999),
      sdk::key("trust_floor", &SoapMuonConfig::trust_floor, "least share of the whitened momentum at first")
          .range(0.0, 1.0),
      sdk::key("trust_cap", &SoapMuonConfig::trust_cap, "largest share of it before trust_fade_until")
          .range(0.0, 1.0),
      sdk::key("trust_floor_until", &SoapMuonConfig::trust_floor_until,
               "step, counted from 0, from which on the least share falls")
          .at_least(0),
      sdk::key("trust_fade_until", &SoapMuonConfig::trust_fade_until,
               "step, counted from 0, at which it has fallen to 0")
          .at_least(0),
      sdk::key(
          "floor", &SoapMuonConfig::floor,
          "what must be at least floor_ratio times the weights' norm: the update of the matrix, that of each "
          "row, or nothing")
          .choices("off|matrix|row"),
      sdk::key("floor_ratio", &SoapMuonConfig::floor_ratio,
               "least size of the update relative to the weights'")
          .range(0.0, 100.0),
      sdk::key("outward", &SoapMuonConfig::outward,
               "share that is left of the update along the weights where it makes them larger")
          .range(0.0, 1.0),
      sdk::key("pin_radius", &SoapMuonConfig::pin_radius,
               "give each matrix the norm that the step has to first order"),
      sdk::key(
          "cautious_decay", &SoapMuonConfig::cautious_decay,
          "fraction taken off per step, times the scheduled learning rate, of weights that the step makes "
          "smaller anyway")
          .range(0.0, 10.0));
  static inline const mlg_kernel kernels[] = {cpu_kernel_as<MatrixMomentum>("soap_muon_momentum"),
                                              kernel_as(matrix_momentum_cuda, "soap_muon_momentum"),
                                              cpu_kernel_as<GramNorm>("soap_muon_gram_norm"),
                                              kernel_as(gram_norm_cuda, "soap_muon_gram_norm"),
                                              cpu_kernel_as<DivideByNorm>("soap_muon_divide_by_norm"),
                                              kernel_as(divide_by_norm_cuda, "soap_muon_divide_by_norm"),
                                              cpu_kernel_as<RadiusStep>("soap_muon_step"),
                                              kernel_as(radius_step_cuda, "soap_muon_step"),
                                              sdk::cpu_kernel<SoapWhiten>(),
                                              soap_whiten_cuda,
                                              sdk::cpu_kernel<SoapKeepNorm>(),
                                              soap_keep_norm_cuda,
                                              sdk::cpu_kernel<SoapTrust>(),
                                              soap_trust_cuda,
                                              sdk::cpu_kernel<SoapSort>(),
                                              soap_sort_cuda,
                                              sdk::cpu_kernel<SoapPermute>(),
                                              soap_permute_cuda,
                                              sdk::cpu_kernel<SoapEigenvectors>(),
                                              soap_eigenvectors_cuda,
                                              sdk::cpu_kernel<SoapFirstRows>(),
                                              soap_first_rows_cuda,
                                              sdk::cpu_kernel<SoapReflect>(),
                                              soap_reflect_cuda,
                                              sdk::cpu_kernel<SoapIdentity>(),
                                              soap_identity_cuda};

  explicit SoapMuon(const SoapMuonConfig& config) : MatrixOptimizer("soap_muon", config), config_(config) {
    if (config.trust_fade_until < config.trust_floor_until) {
      throw sdk::Error(
          "optimizer soap_muon: trust_fade_until lies before trust_floor_until; raise it, or lower the other");
    }
  }

  std::uint32_t scalar_count() const override { return soap_scalar_count; }

  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    for (const sdk::Parameter& parameter : parameters) record_matrix(recorder, parameter, scalars);
  }

  void scalars(const sdk::Step& step, std::span<float> values) const override {
    MatrixOptimizer::scalars(step, values);
    const std::int64_t done = step.step - 1;
    values[soap_first] = done == 0 ? 1.0f : 0.0f;
    values[soap_trust_floor] = static_cast<float>(trust_floor(done));
    values[soap_trust_cap] = static_cast<float>(done < config_.trust_fade_until ? config_.trust_cap : 1.0);
  }

 private:
  double trust_floor(std::int64_t done) const {
    if (done < config_.trust_floor_until) return config_.trust_floor;
    if (done >= config_.trust_fade_until) return 0.0;
    return config_.trust_floor * static_cast<double>(config_.trust_fade_until - done) /
           static_cast<double>(config_.trust_fade_until - config_.trust_floor_until);
  }

  void record_matrix(sdk::Recorder& recorder, const sdk::Parameter& parameter, sdk::Value scalars) const {
    const mlg_tensor iterated = directions_.compute_shape(recorder, parameter);
    const mlg_tensor shape = sdk::with_dtype(iterated, MLG_F32);
    if (shape.rank != 2) {
      throw sdk::Error(std::string("optimizer soap_muon: parameter ") + parameter.name +
                       " is a bank of matrices, which would share their bases; give it to muon or normuon");
    }
    const std::optional<SoapBases> bases =
        config_.precondition ? std::optional(states(recorder, parameter, shape)) : std::nullopt;
    const sdk::Value raw = recorder.scratch(shape);
    directions_.record_momentum(recorder, parameter, scalars, sdk::absent, raw, false);
    const sdk::Value whitened = bases ? record_whitened(recorder, raw, *bases, scalars) : raw;
    sdk::Value x = whitened;
    if (iterated.dtype != MLG_F32) {
      x = recorder.scratch(iterated);
      recorder.launch("cast", {whitened, x});
    }
    record_radius_step(recorder, "soap_muon", parameter, directions_.orthogonalise(recorder, x), scalars,
                       {.outward = config_.outward,
                        .floor = config_.floor == "row"      ? UpdateFloor::row
                                 : config_.floor == "matrix" ? UpdateFloor::matrix
                                                             : UpdateFloor::off,
                        .floor_ratio = config_.floor_ratio,
                        .pin = config_.pin_radius ? RadiusPin::first_order : RadiusPin::off,
                        .cautious_decay = config_.cautious_decay * parameter.weight_decay_multiplier});
    if (bases) record_bases(recorder, *bases, config_.beta2, scalars);
  }

  static SoapBases states(sdk::Recorder& recorder, const sdk::Parameter& parameter, const mlg_tensor& shape) {
    const std::int64_t rows = shape.shape[0], columns = shape.shape[1];
    const auto state = [&](const char* what, std::int64_t r, std::int64_t c) {
      return recorder.state(std::string(parameter.name) + what, sdk::shape(MLG_F32, {r, c}));
    };
    return {.gradient = parameter.gradient,
            .second_moment = state(".second_moment", rows, columns),
            .row_gram = state(".row_gram", rows, rows),
            .column_gram = state(".column_gram", columns, columns),
            .row_basis = state(".row_basis", rows, rows),
            .column_basis = state(".column_basis", columns, columns)};
  }

  // The whitened momentum, blended with the raw one where it is to be trusted only so far.
  sdk::Value record_whitened(sdk::Recorder& recorder, sdk::Value raw, const SoapBases& bases,
                             sdk::Value scalars) const {
    const mlg_tensor shape = recorder.describe(raw);
    const auto product = [&](sdk::Value a, bool transpose_a, sdk::Value b, bool transpose_b) {
      const sdk::Value c = recorder.scratch(shape);
      record_matmul(recorder, a, transpose_a, b, transpose_b, c, 1.0, 0.0);
      return c;
    };
    const sdk::Value projected =
        product(product(bases.row_basis, false, raw, false), false, bases.column_basis, true);
    const sdk::Value white = recorder.scratch(shape);
    recorder.launch(SoapWhiten::name, {projected, bases.second_moment, white}, {{"beta2", config_.beta2}});
    const sdk::Value raw_norm = record_schatten4(recorder, "soap_muon", raw);
    const auto with_norm_of_raw = [&](sdk::Value x) {
      const sdk::Value result = recorder.scratch(shape);
      recorder.launch(SoapKeepNorm::name,
                      {raw, raw_norm, x, record_schatten4(recorder, "soap_muon", x), scalars, result});
      return result;
    };
    const sdk::Value whitened = with_norm_of_raw(
        product(product(bases.row_basis, true, white, false), false, bases.column_basis, false));
    if (!config_.trust) return whitened;
    const sdk::Value blended = recorder.scratch(shape), gate = recorder.scratch(sdk::shape(MLG_F32, {2}));
    recorder.launch(SoapTrust::name, {raw, whitened, bases.gradient, scalars, blended, gate},
                    {{"agreement", config_.trust_agreement}});
    return with_norm_of_raw(blended);
  }

  SoapMuonConfig config_;
};

}  // namespace
}  // namespace mulligan::optimizers

MULLIGAN_EXPORT_OPTIMIZER(mulligan::optimizers::SoapMuon, soap_muon);
