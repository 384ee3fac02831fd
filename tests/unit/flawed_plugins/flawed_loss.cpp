// Cross entropy that breaks its contract in the way that `how` says.
#include <mulligan/loss.hpp>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

enum Flaw : int {
  sound,
  no_token_loss,
  half_gradient,
  wrong_gradient,
  negative_target,
  order_of_threads,
  allocates,
  throws,
  bits,  // loss and gradient agree with one another, in another unit
  differs_in_one
};
constexpr const char* kFlaws =
    "not_at_all|no_token_loss|half_gradient|wrong_gradient|negative_target|order_of_threads|allocates|throws|bits|differs_in_one";

struct Config {
  std::string how = "not_at_all";
};

// log sum exp of a row.
template <typename T>
float row_lse(const T* row, std::int64_t count) {
  float most = static_cast<float>(row[0]), sum = 0;
  for (std::int64_t i = 1; i < count; ++i) most = std::max(most, static_cast<float>(row[i]));
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<float>(row[i]) - most);
  return most + std::log(sum);
}

struct Forward {
  static constexpr const char* name = "flawed_loss_fwd";
  static constexpr const char* signature = "in logits, in targets, out token_loss, out lse; flaw";
  static void check(const sdk::CallChecks& call) { call.compute_dtype(0); }
  static void run(const sdk::Launch& call) {
    const int flaw = static_cast<int>(call.attribute(0));
    const std::int64_t columns = call.dim(0, 1);
    if (flaw == throws) throw sdk::Error("the kernel's own sentence");
    if (flaw == allocates)
      call.data<float>(3)[0] =
          static_cast<float>(std::vector<float>(static_cast<std::size_t>(columns)).size());
    sdk::dispatch_compute(call.dtype(0), [&]<typename T>() {
      for (std::int64_t t = 0; t < call.dim(0, 0); ++t) {
        const T* row = call.data<const T>(0) + t * columns;
        const std::int32_t target = call.data<const std::int32_t>(1)[t];
        const float lse = row_lse(row, columns);
        call.data<float>(3)[t] = lse;
        if (flaw == no_token_loss) continue;
        if (flaw == negative_target && target < 0) {
          call.data<float>(2)[t] = lse;
          continue;
        }
        const float unit = flaw == bits ? std::numbers::log2e_v<float> : 1.0f;
        call.data<float>(2)[t] = target < 0 ? 0.0f : unit * (lse - static_cast<float>(row[target]));
      }
    });
    if (flaw == order_of_threads) {
      // What is added depends on how the range is cut.
      call.parallel_for(call.dim(0, 0), 1, [&](std::int64_t begin, std::int64_t end) {
        if (call.data<const std::int32_t>(1)[begin] >= 0)
          call.data<float>(2)[begin] += 1e-3f * static_cast<float>(end - begin);
      });
    }
  }
};

struct Backward {
  static constexpr const char* name = "flawed_loss_bwd";
  static constexpr const char* signature = "in logits, in targets, in lse, in upstream, out gradient; flaw";
  static void check(const sdk::CallChecks& call) { call.like(4, 0); }
  static void run(const sdk::Launch& call) {
    const int flaw = static_cast<int>(call.attribute(0));
    const std::int64_t columns = call.dim(0, 1), rows = call.dim(0, 0);
    sdk::dispatch_compute(call.dtype(0), [&]<typename T>() {
      for (std::int64_t t = 0; t < rows; ++t) {
        const T* row = call.data<const T>(0) + t * columns;
        T* gradient = call.data<T>(4) + t * columns;
        const std::int32_t target = call.data<const std::int32_t>(1)[t];
        const bool wrong = flaw == wrong_gradient || flaw == differs_in_one;
        const float upstream = call.data<const float>(3)[t] * (wrong ? 1.1f : 1.0f) *
                               (flaw == bits ? std::numbers::log2e_v<float> : 1.0f);
        for (std::int64_t i = 0; i < columns; ++i) {
          if (flaw == half_gradient && 2 * t >= rows) break;
          const float p = std::exp(static_cast<float>(row[i]) - call.data<const float>(2)[t]);
          gradient[i] =
              T(target < 0 && flaw != negative_target ? 0.0f : upstream * (p - (i == target ? 1.0f : 0.0f)));
        }
      }
    });
  }
};

class Flawed : public sdk::Loss {
 public:
  static constexpr const char* summary = "breaks its contract";
  static constexpr bool forward_backward = true;
  static inline const sdk::Schema<Config> schema{sdk::key("how", &Config::how, "the flaw").choices(kFlaws)};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

  explicit Flawed(const Config& config) {
    const std::string flaws = kFlaws;
    const std::size_t at = ("|" + flaws + "|").find("|" + config.how + "|");
    for (std::size_t i = 0; i < at; ++i) flaw_ += flaws[i] == '|';
  }

  void record_forward(sdk::Recorder& recorder, sdk::LossForward& forward) override {
    forward.saved[0] = recorder.scratch(recorder.describe(forward.token_loss));
    recorder.launch(Forward::name, {forward.logits, forward.targets, forward.token_loss, forward.saved[0]},
                    {{"flaw", flaw_}});
  }
  void record_backward(sdk::Recorder& recorder, const sdk::LossBackward& backward) override {
    record_gradient(recorder, backward, flaw_ == differs_in_one ? int{sound} : flaw_);
  }
  void record_forward_backward(sdk::Recorder& recorder, const sdk::LossBackward& both) override {
    sdk::LossBackward apart = both;
    record_forward(recorder, apart.forward);
    record_gradient(recorder, apart, flaw_);
  }

 private:
  static void record_gradient(sdk::Recorder& recorder, const sdk::LossBackward& backward, int flaw) {
    const sdk::LossForward& forward = backward.forward;
    recorder.launch(
        Backward::name,
        {forward.logits, forward.targets, forward.saved[0], backward.upstream, backward.logits_gradient},
        {{"flaw", flaw}});
  }
  int flaw_ = 0;
};

}  // namespace

MULLIGAN_EXPORT_LOSS(Flawed, flawed_loss);
