// The members of an ensemble, made one after the other in place of one model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/config/run_config.h"
#include "framework/plugin/ensemble.h"
#include "framework/run/loaded_model.h"
#include "lab/calibration/calibration.h"

namespace mulligan::ensemble {

// The size of the members of an ensemble, if they were stored.
struct MemberBytes {
  std::int64_t changed_weights = 0;  // elements that differ between members
  std::uint64_t member = 0;          // bytes of one member's changed weights, by the plugin
  std::uint64_t kept = 0;            // bytes of the others, once for all members, f32
  std::uint64_t all(std::int64_t members) const {
    return kept + static_cast<std::uint64_t>(members) * member;
  }
};

// The weights that members change: those of two dimensions or more that enter matmuls, except the token embedding (which is
// also the head if the head is tied). Norms, gains and mixes stay.
bool changes(const ParameterSpec& spec, const ModelConfig& model);

// Computed from shapes alone. Throws run_error if the plugin gives no number of bytes.
MemberBytes member_bytes(const Ensemble& plugin, const std::vector<ParameterLayout>& layouts,
                         const ModelConfig& model);

class Members {
 public:
  // Keeps a copy of the changed weights of `model` on the host, in f32. `model` is loaded and is the centre. References must
  // outlive this object. Throws run_error if a weight is not finite.
  Members(LoadedModel& model, const ModelConfig& config, const Ensemble& plugin, std::uint64_t seed,
          int threads);

  // Each turns the model into the named one, including copies in the compute dtype; `member` may be MLG_ENSEMBLE_REFERENCE.
  // Throws run_error if the plugin writes a value that is not finite.
  void make_centre();
  void make(std::int64_t member);

 private:
  struct Weight {
    const ParameterLayout* layout;
    std::vector<float> centre;
  };
  LoadedModel& model_;
  const Ensemble& plugin_;
  std::uint64_t seed_;
  int threads_;
  std::vector<Weight> weights_;
  std::vector<float> made_;
};

// The average of several models' probabilities, and the gain of averaging.

// Sums over tokens. With p_k the probability of the right token by member k of M: a member's loss is
// -ln p_k, the ensemble's -ln (1/M sum p_k).
struct AverageSums {
  struct Member {
    double loss_nats = 0;
    std::size_t right = 0;  // tokens that it predicts
  };
  std::vector<Member> members;
  std::vector<calibration::Prediction> predictions;  // of the ensemble, by token
  double loss_nats = 0;                              // of the ensemble
  double mean_loss_nats = 0;                         // mean over members
  // mean_loss_nats - loss_nats, summed token by token. It is never negative, and 0 only if all members agree about the right
  // token's probability (Jensen's inequality).
  double ambiguity_nats = 0;
  // Number of pairs of a token and a member that predicts another token than the ensemble.
  std::size_t disagreements = 0;
};

// A stretch of tokens that all members score one after the other, since one member is in memory at a time.
class ProbabilityAverage {
 public:
  // Precondition: all above 0.
  ProbabilityAverage(std::size_t tokens, std::size_t vocabulary, std::size_t members);

  // Adds the prediction of `member` for `token` (both from 0, each pair once): the softmax of its logits [vocabulary], in fp64.
  // Threads may add different tokens. Throws std::invalid_argument for logits that are not finite.
  void add(std::size_t member, std::size_t token, std::span<const float> logits, std::size_t answer);

  // Adds the first `tokens` tokens, which all members have scored, to `sums`, and clears all tokens.
  void take(std::size_t tokens, AverageSums& sums);

  // Bytes of memory per token.
  static std::size_t bytes_per_token(std::size_t vocabulary, std::size_t members);

 private:
  std::size_t vocabulary_, members_;
  std::vector<float> probabilities_;  // [tokens, vocabulary]: sum over members
  std::vector<double> losses_;        // [tokens, members]: -ln p of the answer
  std::vector<int> choices_;          // [tokens, members]
  std::vector<int> answers_;          // [tokens]
};

// -ln of the mean of exp(-losses), and its distance below the mean of the losses; exact if all are equal.
struct AveragedLoss {
  double loss_nats = 0, mean_nats = 0, ambiguity_nats = 0;
};
AveragedLoss averaged_loss(std::span<const double> losses);

}  // namespace mulligan::ensemble
