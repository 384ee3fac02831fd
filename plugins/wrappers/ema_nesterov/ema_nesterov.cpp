// The wrapper plugin `ema_nesterov`: Nesterov's look ahead along the running mean of the steps of a whole run. With
// W the weights at rest after an update, V those before it:
//   D <- decay D + (1 - decay) (W - V)
//   master <- W + f D, where the next gradient is taken and the next update begins
// f = lookahead times the rate of the update over the configured one, of the optimiser `rate_of`; 0 outside of the
// updates from_step to until_step - 1 (counted from 0, of the gradient that is taken there). D has the master's dtype.
// Formula: the script of result 46 of modded-nanogpt's optimisation benchmark (docs/matrix_optimizers.md).
#include <mulligan/wrapper.hpp>

#include <string>

namespace mulligan::wrappers {
namespace {

struct EmaNesterovConfig {
  double lookahead = 0.3;
  double decay = 0.99;
  std::int64_t from_step = 300;
  std::int64_t until_step = 1950;
  std::string rate_of;
};

class EmaNesterov : public sdk::Wrapper {
 public:
  static constexpr const char* summary = "gradients are taken ahead, along the running mean of the steps";
  static constexpr unsigned state_version = 1;
  static inline const sdk::Schema<EmaNesterovConfig> schema{
      sdk::key("lookahead", &EmaNesterovConfig::lookahead, "how many mean steps ahead a gradient is taken")
          .at_least(0.0),
      sdk::key("decay", &EmaNesterovConfig::decay, "decay per update of the mean of the steps")
          .range(0.0, 1.0),
      sdk::key("from_step", &EmaNesterovConfig::from_step,
               "updates made before the first gradient that is taken ahead")
          .at_least(0),
      sdk::key("until_step", &EmaNesterovConfig::until_step,
               "updates made before the first gradient that is taken at rest again; 0 = never")
          .at_least(0),
      sdk::key("rate_of", &EmaNesterovConfig::rate_of,
               "NAME of the [optimizer.NAME] whose scheduled rate, relative to its configured one, scales "
               "lookahead; empty: the first")};

  explicit EmaNesterov(const EmaNesterovConfig& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return 1; }

  void record(sdk::Recorder& recorder, std::span<const sdk::WrappedParameter> parameters,
              sdk::Value scalars) override {
    for (const sdk::WrappedParameter& p : parameters) {
      const mlg_tensor type = recorder.describe(p.master);
      const mlg_tensor wide = sdk::with_dtype(type, MLG_F32);
      const sdk::Value mean = recorder.state(std::string(p.name) + ".displacement", type);
      const sdk::Value step = recorder.scratch(type), ahead = recorder.scratch(wide);
      recorder.launch("axpby", {p.master, p.rest, step}, {{"alpha", 1}, {"beta", -1}, {"accumulate_y", 0}});
      recorder.launch("cast", {p.master, p.rest});
      recorder.launch("cast", {mean, ahead});
      recorder.launch("lerp_into", {ahead, step}, {{"decay", config_.decay}});
      recorder.launch("cast", {ahead, mean});
      if (type.dtype != MLG_F32) recorder.launch("cast", {mean, ahead});  // as rounded
      recorder.launch("scale_by", {ahead, scalars});
      recorder.launch("axpby", {p.rest, ahead, p.master}, {{"alpha", 1}, {"beta", 1}, {"accumulate_y", 0}});
    }
  }

  void scalars(const sdk::WrapperStep& step, std::span<float> values) const override {
    const sdk::GroupRate& rate = rate_of({step.rates, step.rate_count});
    const bool ahead = step.step >= config_.from_step &&
                       (config_.until_step == 0 || step.step < config_.until_step) && rate.base_lr > 0;
    values[0] = ahead ? static_cast<float>(config_.lookahead * (rate.lr / rate.base_lr)) : 0.0F;
  }

 private:
  const sdk::GroupRate& rate_of(std::span<const sdk::GroupRate> rates) const {
    for (const sdk::GroupRate& rate : rates) {
      if (config_.rate_of.empty() || config_.rate_of == rate.name) return rate;
    }
    throw sdk::Error("rate_of = \"" + config_.rate_of +
                     "\" names no [optimizer.NAME] of the run; correct the name or leave the key out");
  }

  EmaNesterovConfig config_;
};

}  // namespace
}  // namespace mulligan::wrappers

MULLIGAN_EXPORT_WRAPPER(mulligan::wrappers::EmaNesterov, ema_nesterov);
