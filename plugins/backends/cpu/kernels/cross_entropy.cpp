// cross_entropy on logits [T,V], targets [T]:  lse = log sum exp(logits),  token_loss = lse - logits[target]
//   dlogits = upstream (exp(logits - lse) - onehot(target))
// A negative target stands for "no target": loss and gradient are 0 (lse is still computed). Targets from V
// on are refused when the kernel runs. dlogits may be the memory of logits.
//
// Each row is read from memory once: blocks of it stay in the first-level cache, with a running maximum and
// sum. Determinism: rows are independent; blocks and lanes are fixed.
#include <atomic>
#include <limits>
#include <stdexcept>

#include "plugins/backends/cpu/kernels/row_math.h"
#include "plugins/backends/cpu/vector_math.h"

namespace mulligan::cpu {
namespace {

constexpr std::int64_t kBlock = 4096;

void check_inputs(Checker& check) {
  check.compute_dtype(0);
  check.rank(0, 2, 2);
  check.require(check.dim(0, 1) > 0, 0, "must have at least one column");
  check.dtype(1, {MLG_I32});
  check.shape(1, {check.dim(0, 0)});
}

void check_per_token(Checker& check, std::uint32_t argument) {
  check.dtype(argument, {MLG_F32});
  check.shape(argument, {check.dim(0, 0)});
}

void check_forward(Checker& check) {
  check_inputs(check);
  check_per_token(check, 2);
  check_per_token(check, 3);
}

template <typename T>
float row_maximum(const T* row, std::int64_t count) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, lowest);
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float value = row[j + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  float maximum = lowest;
  for (; j < count; ++j) maximum = std::max(maximum, float(row[j]));
  for (const float lane : lanes) maximum = std::max(maximum, lane);
  return maximum;
}

template <typename T>
float log_sum_exp(const T* row, std::int64_t count) {
  float maximum = -std::numeric_limits<float>::infinity(), sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const T* block = row + begin;
    const std::int64_t length = std::min(kBlock, count - begin);
    const float block_maximum = row_maximum(block, length);
    if (block_maximum > maximum) {
      sum *= fast_exp_nonpositive(maximum - block_maximum);
      maximum = block_maximum;
    }
    sum += lane_sum(length, [=](std::int64_t j) { return fast_exp_nonpositive(float(block[j]) - maximum); });
  }
  return maximum + std::log(sum);
}

[[noreturn]] void refuse_target() {
  throw std::runtime_error(
      "a target is not below the number of logits; the data do not belong to this vocabulary");
}

void run_forward(const Launch& launch) {
  const std::int64_t columns = launch.dim(0, 1);
  const auto* targets = launch.data<const std::int32_t>(1);
  std::atomic<bool> refused{false};
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    launch.parallel_for(launch.dim(0, 0), row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        if (targets[t] >= columns) {
          refused.store(true, std::memory_order_relaxed);
          return;
        }
        const T* row = launch.data<const T>(0) + t * columns;
        const float lse = log_sum_exp(row, columns);
        launch.data<float>(3)[t] = lse;
        launch.data<float>(2)[t] = targets[t] < 0 ? 0.0f : lse - float(row[targets[t]]);
      }
    });
  });
  if (refused) refuse_target();
}

void check_backward(Checker& check) {
  check_inputs(check);
  check_per_token(check, 2);
  check_per_token(check, 3);
  check.like(4, 0);
}

void run_backward(const Launch& launch) {
  const std::int64_t columns = launch.dim(0, 1);
  const auto* targets = launch.data<const std::int32_t>(1);
  std::atomic<bool> refused{false};
  dispatch_compute(launch.dtype(0), [&]<typename T>() {
    launch.parallel_for(launch.dim(0, 0), row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        if (targets[t] >= columns) {
          refused.store(true, std::memory_order_relaxed);
          return;
        }
        const T* logits = launch.data<const T>(0) + t * columns;
        T* dlogits = launch.data<T>(4) + t * columns;
        if (targets[t] < 0) {
          std::fill_n(dlogits, columns, T(0.0f));
          continue;
        }
        const float lse = launch.data<const float>(2)[t], upstream = launch.data<const float>(3)[t];
        const float at_target = upstream * (fast_exp_nonpositive(float(logits[targets[t]]) - lse) - 1.0f);
        write_row(dlogits, columns, false,
                  [=](std::int64_t j) { return upstream * fast_exp_nonpositive(float(logits[j]) - lse); });
        dlogits[targets[t]] = T(at_target);
      }
    });
  });
  if (refused) refuse_target();
}

MULLIGAN_CPU_KERNEL(cross_entropy_fwd, "in logits, in targets, out token_loss, out lse", check_forward,
                    run_forward)
MULLIGAN_CPU_KERNEL(cross_entropy_bwd, "in logits, in targets, in lse, in upstream, out dlogits",
                    check_backward, run_backward)

}  // namespace
}  // namespace mulligan::cpu
