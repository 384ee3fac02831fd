// cross_entropy on logits [T,V], targets [T]:  lse = log sum exp(logits),  token_loss = lse - logits[target]
//   dlogits = upstream (exp(logits - lse) - onehot(target))
// A negative target stands for "no target": loss and gradient are 0 (lse is still computed). Targets from V
// on are refused when the kernel runs. dlogits may be the memory of logits.
//
// Each row is read from memory once: blocks of it stay in the first-level cache, with a running maximum and
// sum. Determinism: rows are independent; blocks and lanes are fixed.
#include <mulligan/vector_math.hpp>

#include <atomic>
#include <limits>
#include <stdexcept>

#include "kernels/cross_entropy/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::cross_entropy {
namespace {

constexpr std::int64_t kBlock = 4096;

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
      sum *= sdk::fast_exp_nonpositive(maximum - block_maximum);
      maximum = block_maximum;
    }
    sum += lane_sum(length,
                    [=](std::int64_t j) { return sdk::fast_exp_nonpositive(float(block[j]) - maximum); });
  }
  return maximum + std::log(sum);
}

[[noreturn]] void refuse_target() {
  throw std::runtime_error(
      "a target is not below the number of logits; the data do not belong to this vocabulary");
}

struct Forward : shapes::CrossEntropyForward {
  static void run(const Launch& launch) {
    const std::int64_t columns = launch.dim(Forward::logits, 1);
    const auto* targets = launch.data<const std::int32_t>(Forward::targets);
    std::atomic<bool> refused{false};
    dispatch_compute(launch.dtype(Forward::logits), [&]<typename T>() {
      launch.parallel_for(launch.dim(Forward::logits, 0), row_grain(columns),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t t = begin; t < end; ++t) {
                              if (targets[t] >= columns) {
                                refused.store(true, std::memory_order_relaxed);
                                return;
                              }
                              const T* row = launch.data<const T>(Forward::logits) + t * columns;
                              const float lse = log_sum_exp(row, columns);
                              launch.data<float>(Forward::lse)[t] = lse;
                              launch.data<float>(Forward::token_loss)[t] =
                                  targets[t] < 0 ? 0.0f : lse - float(row[targets[t]]);
                            }
                          });
    });
    if (refused) refuse_target();
  }
};

struct Backward : shapes::CrossEntropyBackward {
  static void run(const Launch& launch) {
    const std::int64_t columns = launch.dim(Backward::logits, 1);
    const auto* targets = launch.data<const std::int32_t>(Backward::targets);
    std::atomic<bool> refused{false};
    dispatch_compute(launch.dtype(Backward::logits), [&]<typename T>() {
      launch.parallel_for(
          launch.dim(Backward::logits, 0), row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t t = begin; t < end; ++t) {
              if (targets[t] >= columns) {
                refused.store(true, std::memory_order_relaxed);
                return;
              }
              const T* logits = launch.data<const T>(Backward::logits) + t * columns;
              T* dlogits = launch.data<T>(Backward::dlogits) + t * columns;
              if (targets[t] < 0) {
                std::fill_n(dlogits, columns, T(0.0f));
                continue;
              }
              const float lse = launch.data<const float>(Backward::lse)[t],
                          upstream = launch.data<const float>(Backward::upstream)[t];
              const float at_target =
                  upstream * (sdk::fast_exp_nonpositive(float(logits[targets[t]]) - lse) - 1.0f);
              write_row(dlogits, columns, false, [=](std::int64_t j) {
                return upstream * sdk::fast_exp_nonpositive(float(logits[j]) - lse);
              });
              dlogits[targets[t]] = T(at_target);
            }
          });
    });
    if (refused) refuse_target();
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::cross_entropy
