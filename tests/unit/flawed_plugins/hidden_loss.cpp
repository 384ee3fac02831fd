// Cross entropy plus a penalty on the final hidden state: weight * (mean of the even features)^2 for each
// token with a target. (The mean square is no use: after the final norm it is 1.) A `gradient_factor` other
// than 1 makes the hidden state's gradient wrong.
#include <mulligan/loss.hpp>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  double weight = 0.1;
  double gradient_factor = 1.0;
};

// The mean of a token's even features, each odd one counting as 0.
template <typename T>
double probe(const T* hidden, std::int64_t width) {
  double sum = 0;
  for (std::int64_t d = 0; d < width; d += 2) sum += static_cast<double>(static_cast<float>(hidden[d]));
  return sum / static_cast<double>(width);
}

struct Penalty {
  static constexpr const char* name = "hidden_penalty_fwd";
  static constexpr const char* signature = "in hidden, in targets, inout token_loss; weight";
  static void check(const sdk::CallChecks& call) { call.compute_dtype(0); }
  static void run(const sdk::Launch& call) {
    const std::int64_t width = call.dim(0, 1);
    sdk::dispatch_compute(call.dtype(0), [&]<typename T>() {
      for (std::int64_t t = 0; t < call.dim(0, 0); ++t) {
        if (call.data<const std::int32_t>(1)[t] < 0) continue;
        const double value = probe(call.data<const T>(0) + t * width, width);
        call.data<float>(2)[t] += static_cast<float>(call.attribute(0) * value * value);
      }
    });
  }
};

struct PenaltyGradient {
  static constexpr const char* name = "hidden_penalty_bwd";
  static constexpr const char* signature =
      "in hidden, in targets, in upstream, inout gradient; weight accumulate";
  static void check(const sdk::CallChecks& call) { call.like(3, 0); }
  static void run(const sdk::Launch& call) {
    const std::int64_t width = call.dim(0, 1);
    const bool add = call.attribute(1) != 0;
    sdk::dispatch_compute(call.dtype(0), [&]<typename T>() {
      for (std::int64_t t = 0; t < call.dim(0, 0); ++t) {
        const double value = probe(call.data<const T>(0) + t * width, width);
        const double slope = call.data<const std::int32_t>(1)[t] < 0
                                 ? 0.0
                                 : 2 * call.attribute(0) * value / static_cast<double>(width) *
                                       static_cast<double>(call.data<const float>(2)[t]);
        for (std::int64_t d = 0; d < width; ++d) {
          T& gradient = call.data<T>(3)[t * width + d];
          const float before = add ? static_cast<float>(gradient) : 0.0f;
          gradient = T(before + (d % 2 == 0 ? static_cast<float>(slope) : 0.0f));
        }
      }
    });
  }
};

class HiddenPenalty : public sdk::Loss {
 public:
  static constexpr bool reads_hidden = true;
  static constexpr const char* summary = "cross entropy and a penalty on the final hidden state";
  static inline const sdk::Schema<Config> schema{
      sdk::key("weight", &Config::weight, "of the penalty, nats"),
      sdk::key("gradient_factor", &Config::gradient_factor, "1: right")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<Penalty>(), sdk::cpu_kernel<PenaltyGradient>()};

  explicit HiddenPenalty(const Config& config) : config_(config) {}

  void record_forward(sdk::Recorder& recorder, sdk::LossForward& forward) override {
    forward.saved[0] = recorder.scratch(recorder.describe(forward.token_loss));
    recorder.launch("cross_entropy_fwd",
                    {forward.logits, forward.targets, forward.token_loss, forward.saved[0]});
    recorder.launch(Penalty::name, {forward.hidden, forward.targets, forward.token_loss},
                    {{"weight", config_.weight}});
  }
  void record_backward(sdk::Recorder& recorder, const sdk::LossBackward& backward) override {
    const sdk::LossForward& forward = backward.forward;
    recorder.launch("cross_entropy_bwd", {forward.logits, forward.targets, forward.saved[0],
                                          backward.upstream, backward.logits_gradient});
    if (backward.hidden_gradient == sdk::absent) return;
    recorder.launch(
        PenaltyGradient::name, {forward.hidden, forward.targets, backward.upstream, backward.hidden_gradient},
        {{"weight", config_.weight * config_.gradient_factor}, {"accumulate", backward.accumulate}});
  }

 private:
  Config config_;
};

}  // namespace

MULLIGAN_EXPORT_LOSS(HiddenPenalty, hidden_loss);
