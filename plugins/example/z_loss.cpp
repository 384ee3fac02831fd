// A loss plugin with kernels of its own for both backends, built outside of mulligan's source tree: the
// formula is in z_loss.h, the kernels of the cuda backend are in z_loss.cu.
#include "z_loss.h"

#include <mulligan/lane_sum.hpp>
#include <mulligan/loss.hpp>
#include <mulligan/vector_math.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace z_loss {
namespace {

void check_rows(const sdk::CallChecks& call, std::initializer_list<unsigned> per_row) {
  call.matrix(Forward::logits);
  call.require(call.dim(Forward::logits, 1) > 0, Forward::logits, "must have a vocabulary of at least one");
  call.attribute_range(Forward::weight, 0, 1e6);
  call.i32(Forward::targets, {call.dim(Forward::logits, 0)});
  for (const unsigned argument : per_row) call.f32(argument, {call.dim(Forward::logits, 0)});
}

// body.operator()<T>(row) for each row of the logits; rows are independent, so several may run at once.
template <typename Body>
void for_rows(const sdk::Launch& call, Body&& body) {
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / call.dim(Forward::logits, 1));
  sdk::dispatch_compute(call.dtype(Forward::logits), [&]<typename T>() {
    call.parallel_for(call.dim(Forward::logits, 0), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) body.template operator()<T>(row);
    });
  });
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace

void Forward::check(const sdk::CallChecks& call) {
  check_rows(call, {token_loss, lse});
}

void Forward::run(const sdk::Launch& call) {
  const std::int64_t vocabulary = call.dim(logits, 1);
  const auto weight = call.number(Forward::weight);
  for_rows(call, [&]<typename T>(std::int64_t row) {
    const T* x = call.data<const T>(logits) + row * vocabulary;
    const std::int64_t target = call.data<const std::int32_t>(targets)[row];
    float loss = 0, logsum = 0;
    if (target >= 0) {
      float maximum = std::numeric_limits<float>::lowest();
      for (std::int64_t j = 0; j < vocabulary; ++j) maximum = std::max(maximum, static_cast<float>(x[j]));
      const float sum = sdk::lane_sum(vocabulary, [x, maximum](std::int64_t j) {
        return sdk::fast_exp_nonpositive(static_cast<float>(x[j]) - maximum);
      });
      logsum = maximum + std::log(sum);
      loss = target < vocabulary ? logsum - static_cast<float>(x[target]) + weight * logsum * logsum : kNaN;
    }
    call.data<float>(token_loss)[row] = loss;
    call.data<float>(lse)[row] = logsum;
  });
}

void Backward::check(const sdk::CallChecks& call) {
  check_rows(call, {lse, upstream});
  call.like(dlogits, logits);
}

void Backward::run(const sdk::Launch& call) {
  const std::int64_t vocabulary = call.dim(logits, 1);
  const auto weight = call.number(Backward::weight);
  for_rows(call, [&]<typename T>(std::int64_t row) {
    const T* x = call.data<const T>(logits) + row * vocabulary;
    T* dx = call.data<T>(dlogits) + row * vocabulary;
    const std::int64_t target = call.data<const std::int32_t>(targets)[row];
    const float factor = target < 0            ? 0.0f
                         : target < vocabulary ? call.data<const float>(upstream)[row]
                                               : kNaN;
    const float logsum = call.data<const float>(lse)[row];
    const float scale = 1.0f + 2.0f * weight * logsum;
    for (std::int64_t j = 0; j < vocabulary; ++j) {
      const float probability = sdk::fast_exp(static_cast<float>(x[j]) - logsum);
      const float slope = probability * scale - (j == target ? 1.0f : 0.0f);
      dx[j] = T(factor == 0.0f ? 0.0f : factor * slope);
    }
  });
}

struct Config {
  double weight = 1e-4;
};

class ZLoss final : public sdk::Loss {
 public:
  static constexpr const char* summary = "cross entropy with a penalty on the logits' scale";
  static inline const sdk::Schema<Config> schema{
      sdk::key("weight", &Config::weight, "weight of the squared log-sum-exp, in nats").range(0, 1e6)};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>(),
                                              forward_cuda, backward_cuda};

  explicit ZLoss(const Config& config) : config_(config) {}

  void record_forward(sdk::Recorder& recorder, sdk::LossForward& f) override {
    f.saved[0] = recorder.scratch(recorder.describe(f.token_loss));  // lse
    recorder.launch(Forward::name, {f.logits, f.targets, f.token_loss, f.saved[0]},
                    {{"weight", config_.weight}});
  }
  void record_backward(sdk::Recorder& recorder, const sdk::LossBackward& b) override {
    recorder.launch(Backward::name,
                    {b.forward.logits, b.forward.targets, b.forward.saved[0], b.upstream, b.logits_gradient},
                    {{"weight", config_.weight}});
  }

 private:
  Config config_;
};

}  // namespace z_loss

MULLIGAN_EXPORT_LOSS(z_loss::ZLoss, z_loss);
