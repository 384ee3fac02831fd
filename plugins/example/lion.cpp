// A complete optimiser plugin in one file, built outside of mulligan's source tree: Lion (Chen et
// al., "Symbolic Discovery of Optimization Algorithms", 2023). Per element, with g the gradient and
// m the momentum:
//   c = beta1 * m + (1 - beta1) * g
//   p = p * (1 - lr * weight_decay) - lr * sign(c)
//   m = beta2 * m + (1 - beta2) * g
#include <mulligan/optimizer.hpp>

namespace {

namespace sdk = mulligan::sdk;

// 1. The device function that it brings. Arguments and attributes are numbered in the order of the signature.
struct LionStep {
  static constexpr const char* name = "lion_step";
  static constexpr const char* signature =
      "in gradient, inout master, inout momentum, in scalars; lr_multiplier weight_decay beta1 beta2";
  enum Argument : unsigned { gradient, master, momentum, scalars };
  enum Attribute : unsigned { lr_multiplier, weight_decay, beta1, beta2 };

  // Once per recorded call, with shapes only; may throw.
  static void check(const sdk::CallChecks& call) {
    call.dtype(gradient, {MLG_F32});
    call.master_dtype(master);  // f32 or bf16
    call.same_shape(master, gradient);
    call.like(momentum, gradient);
    call.scalars(scalars, 1);
  }

  // At every step; neither allocates nor throws. Elements are independent, so the pieces may run at once.
  static void run(const sdk::Launch& call) {
    const float lr = call.data<float>(scalars)[0] * call.number(lr_multiplier);
    const float keep = 1.0f - lr * call.number(weight_decay);
    const auto b1 = call.number(beta1), b2 = call.number(beta2);
    sdk::dispatch_master(call.dtype(master), [&]<typename Master>() {
      const float* g = call.data<const float>(gradient);
      float* m = call.data<float>(momentum);
      Master* p = call.data<Master>(master);
      call.parallel_for(call.size(gradient), 16384, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const float c = b1 * m[i] + (1.0f - b1) * g[i];
          const float direction = static_cast<float>(c > 0.0f) - static_cast<float>(c < 0.0f);
          p[i] = Master(static_cast<float>(p[i]) * keep - lr * direction);
          m[i] = b2 * m[i] + (1.0f - b2) * g[i];
        }
      });
    });
  }
};

// 2. Its keys: the defaults are these initialisers.
struct Config {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
};

// 3. The optimiser: records one call per parameter; what changes from step to step goes through the scalars.
class Lion final : public sdk::Optimizer {
 public:
  static constexpr const char* summary = "sign of an interpolated momentum, with decoupled weight decay";
  static constexpr unsigned state_version = 1;
  static constexpr bool elementwise = true;  // no element of master or momentum depends on another
  static inline const sdk::Schema<Config> schema{
      sdk::key("beta1", &Config::beta1, "weight of the momentum in the direction of the step").range(0, 1),
      sdk::key("beta2", &Config::beta2, "decay of the momentum per step").range(0, 1),
      sdk::key("weight_decay", &Config::weight_decay, "decoupled weight decay, in units of 1 / learning rate")
          .at_least(0)};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<LionStep>()};

  explicit Lion(const Config& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return 1; }

  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    for (const sdk::Parameter& parameter : parameters) {
      const mlg_tensor shape = recorder.describe(parameter.gradient);
      const sdk::Value momentum =
          recorder.state(parameter.name + std::string(".momentum"), shape, {.survives_warmup = true});
      recorder.launch(LionStep::name, {parameter.gradient, parameter.master, momentum, scalars},
                      {{"lr_multiplier", parameter.lr_multiplier},
                       {"weight_decay", config_.weight_decay * parameter.weight_decay_multiplier},
                       {"beta1", config_.beta1},
                       {"beta2", config_.beta2}});
    }
  }

  void scalars(const sdk::Step& step, std::span<float> values) const override {
    values[0] = static_cast<float>(step.lr);
  }

 private:
  Config config_;
};

}  // namespace

// 4. The one exported table.
MULLIGAN_EXPORT_OPTIMIZER(Lion, lion);
