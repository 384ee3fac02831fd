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

// body(t, logits of t, target of t) for every token, whose targets are below the number of logits.
template <typename T, typename Body>
void for_tokens(const Launch& launch, Body&& body) {
  using Shape = shapes::CrossEntropyForward;
  const std::int64_t columns = launch.dim(Shape::logits, 1);
  const auto* targets = launch.data<const std::int32_t>(Shape::targets);
  std::atomic<bool> refused{false};
  for_rows(launch, launch.dim(Shape::logits, 0), columns, [&](std::int64_t t) {
    if (targets[t] < columns) return body(t, launch.data<const T>(Shape::logits) + t * columns, targets[t]);
    refused.store(true, std::memory_order_relaxed);
  });
  if (refused) {
    throw std::runtime_error(
        "a target is not below the number of logits; the data do not belong to this vocabulary");
  }
}

struct Forward : shapes::CrossEntropyForward {
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t columns = launch.dim(logits, 1);
    for_tokens<T>(launch, [&](std::int64_t t, const T* row, std::int32_t target) {
      const float sum = log_sum_exp(row, columns);
      launch.data<float>(lse)[t] = sum;
      launch.data<float>(token_loss)[t] = target < 0 ? 0.0f : sum - float(row[target]);
    });
  }
};

struct Backward : shapes::CrossEntropyBackward {
  template <typename T>
  static void run(const Launch& launch) {
    const std::int64_t columns = launch.dim(logits, 1);
    for_tokens<T>(launch, [&](std::int64_t t, const T* row, std::int32_t target) {
      T* gradients = launch.data<T>(dlogits) + t * columns;
      if (target < 0) {
        std::fill_n(gradients, columns, T(0.0f));
        return;
      }
      const float sum = launch.data<const float>(lse)[t], weight = launch.data<const float>(upstream)[t];
      const float at_target = weight * (sdk::fast_exp_nonpositive(float(row[target]) - sum) - 1.0f);
      write_row(gradients, columns, false,
                [=](std::int64_t j) { return weight * sdk::fast_exp_nonpositive(float(row[j]) - sum); });
      gradients[target] = T(at_target);
    });
  }
};

const Register registered[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

}  // namespace
}  // namespace mulligan::cpu::cross_entropy
