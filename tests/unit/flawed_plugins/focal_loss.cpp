// The focal loss -(1 - p)^2 log p of the target's probability p: sound, but no cross entropy in nats. Built twice:
// as focal_loss, which declares this, and as undeclared_loss, which does not.
#include <mulligan/loss.hpp>

#include <cmath>

namespace {

namespace sdk = mulligan::sdk;

struct Config {};

// log sum exp of a row, and the log of the target's probability.
template <typename T>
double log_sum(const T* row, std::int64_t count) {
  double most = static_cast<double>(static_cast<float>(row[0])), sum = 0;
  for (std::int64_t i = 1; i < count; ++i)
    most = std::max(most, static_cast<double>(static_cast<float>(row[i])));
  for (std::int64_t i = 0; i < count; ++i)
    sum += std::exp(static_cast<double>(static_cast<float>(row[i])) - most);
  return most + std::log(sum);
}

struct Forward {
  static constexpr const char* name = "focal_fwd";
  static constexpr const char* signature = "in logits, in targets, out token_loss";
  static void check(const sdk::CallChecks& call) { call.compute_dtype(0); }
  static void run(const sdk::Launch& call) {
    const std::int64_t columns = call.dim(0, 1);
    sdk::dispatch_compute(call.dtype(0), [&]<typename T>() {
      for (std::int64_t t = 0; t < call.dim(0, 0); ++t) {
        const T* row = call.data<const T>(0) + t * columns;
        const std::int32_t target = call.data<const std::int32_t>(1)[t];
        const double log_p =
            target < 0 ? 0 : static_cast<double>(static_cast<float>(row[target])) - log_sum(row, columns);
        const double miss = -std::expm1(log_p);
        call.data<float>(2)[t] = static_cast<float>(-miss * miss * log_p);
      }
    });
  }
};

struct Backward {
  static constexpr const char* name = "focal_bwd";
  static constexpr const char* signature = "in logits, in targets, in upstream, out gradient";
  static void check(const sdk::CallChecks& call) { call.like(3, 0); }
  static void run(const sdk::Launch& call) {
    const std::int64_t columns = call.dim(0, 1);
    sdk::dispatch_compute(call.dtype(0), [&]<typename T>() {
      for (std::int64_t t = 0; t < call.dim(0, 0); ++t) {
        const T* row = call.data<const T>(0) + t * columns;
        T* gradient = call.data<T>(3) + t * columns;
        const std::int32_t target = call.data<const std::int32_t>(1)[t];
        const double lse = log_sum(row, columns);
        const double log_p = target < 0 ? 0 : static_cast<double>(static_cast<float>(row[target])) - lse;
        const double p = std::exp(log_p), miss = -std::expm1(log_p);
        // d loss / d log p; d log p / d logit i is [i = target] - p_i.
        const double slope =
            static_cast<double>(call.data<const float>(2)[t]) * (2 * miss * p * log_p - miss * miss);
        for (std::int64_t i = 0; i < columns; ++i) {
          const double of_i = std::exp(static_cast<double>(static_cast<float>(row[i])) - lse);
          gradient[i] = T(target < 0 ? 0.0f : static_cast<float>(slope * ((i == target ? 1.0 : 0.0) - of_i)));
        }
      }
    });
  }
};

class Focal : public sdk::Loss {
 public:
  static constexpr const char* summary = "focal loss, gamma = 2";
#ifndef UNDECLARED
  static constexpr bool cross_entropy = false;
#endif
  static inline const sdk::Schema<Config> schema{};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

  explicit Focal(const Config&) {}

  void record_forward(sdk::Recorder& recorder, sdk::LossForward& forward) override {
    recorder.launch(Forward::name, {forward.logits, forward.targets, forward.token_loss});
  }
  void record_backward(sdk::Recorder& recorder, const sdk::LossBackward& backward) override {
    recorder.launch(Backward::name, {backward.forward.logits, backward.forward.targets, backward.upstream,
                                     backward.logits_gradient});
  }
};

}  // namespace

#ifdef UNDECLARED
MULLIGAN_EXPORT_LOSS(Focal, undeclared_loss);
#else
MULLIGAN_EXPORT_LOSS(Focal, focal_loss);
#endif
