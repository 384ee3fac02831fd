// attention_stable_fwd: attention_fwd with one more choice per query and block of 64 keys (arXiv 2510.04212):
// where the block's largest score r occurs min_repeats times, counting scores from r - tolerance on, it is
// replaced by
//   r + shift,  shift = (beta - 1) r where r > 0, -r otherwise, halved until it is at most cap
// so that no weight exp(s - m) is exactly 1. The result is the same but for rounding. min_repeats = 0: never.
//
// The cap keeps the weights far from where f32 ends. A shift is halved and not cut to the cap. Otherwise all rows that are cut
// would have one weight, exp(-cap), and its rounding to bf16 would be an error of the same sign in each.
//
// Weights are rounded to A for the matmul with the values. round_normalizer: the sums are divided by the sum
// of the rounded weights; round_sums: they are rounded to A before. lse is of the weights before rounding.
#include "kernels/attention/cpu_fwd_worker.h"

namespace mulligan::cpu::attention_stable_fwd {
namespace {

// Scores, and so tolerance and cap, are in units of log2(e).
struct StableSoftmax {
  static constexpr bool kPlain = false;
  float growth = 0;  // beta - 1
  float tolerance = 0, cap = 1;
  std::int32_t min_repeats = 0;
  bool round_normalizer = false, round_sums = false;

  // What replaces the maxima r [kLanes] of scores * scale; scores [count, kTile]. `any`: r is of a key.
  FloatVector shifted(FloatVector r, FloatVector scale, const float* scores, std::int64_t count,
                      IntVector any) const {
    if (min_repeats == 0) return r;
    const FloatVector least = r - tolerance;
    IntVector repeats{};  // counted down: a comparison that holds is -1
    for (std::int64_t i = 0; i < count; ++i) repeats += load_vector(scores + i * kTile) * scale >= least;
    FloatVector shift = r > 0.0f ? r * growth : -r;
    // 2^n > shift / cap >= 2^(n-1) from the exponent of the float just below; infinities stay what they are.
    const IntVector bits = reinterpret_cast<IntVector>(larger(shift / cap, broadcast(1.0f))) - 1;
    const IntVector exponent = (bits >> 23) - 127;
    const IntVector halvings = exponent > 124 ? IntVector{} + 125 : exponent + 1;
    shift *= reinterpret_cast<FloatVector>((127 - halvings) << 23);
    return (repeats <= -min_repeats) & any ? r + shift : r;
  }
};

struct StableForward : shapes::AttentionStableForward {
  static std::size_t workspace_bytes(const sdk::CallChecks& call) {
    return forward_workspace<StableSoftmax>(call);
  }
  static void run(const Launch& launch) {
    constexpr double log2e = 1.4426950408889634;
    run_forward(launch, StableSoftmax{.growth = static_cast<float>(launch.attribute(beta) - 1),
                                      .tolerance = static_cast<float>(launch.attribute(tolerance) * log2e),
                                      .cap = static_cast<float>(launch.attribute(cap) * log2e),
                                      .min_repeats = static_cast<std::int32_t>(launch.attribute(min_repeats)),
                                      .round_normalizer = launch.flag(round_normalizer),
                                      .round_sums = launch.flag(round_sums)});
  }
};

const Register registered = sdk::cpu_kernel<StableForward>();

}  // namespace
}  // namespace mulligan::cpu::attention_stable_fwd
