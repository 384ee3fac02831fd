// The average of several models' probabilities, and what averaging them is worth.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lab/calibration/calibration.h"

namespace mulligan::ensemble {

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
  // mean_loss_nats - loss_nats, added up token by token: never negative, and 0 only where all members agree
  // about the right token's probability (Jensen's inequality).
  double ambiguity_nats = 0;
  // Pairs of a token and a member that predicts another token than the ensemble.
  std::size_t disagreements = 0;
};

// A stretch of tokens that all members score one after the other, since one member is in memory at a time.
class ProbabilityAverage {
 public:
  // Precondition: all above 0.
  ProbabilityAverage(std::size_t tokens, std::size_t vocabulary, std::size_t members);

  // Adds what `member` makes of `token` (both from 0, each pair once): the softmax of its logits [vocabulary],
  // in fp64. Different tokens may be added at once. Throws std::invalid_argument for logits that are not
  // finite.
  void add(std::size_t member, std::size_t token, std::span<const float> logits, std::size_t answer);

  // Adds the first `tokens` tokens, which all members have scored, to `sums`, and forgets them all.
  void take(std::size_t tokens, AverageSums& sums);

  // Bytes of memory a token takes.
  static std::size_t bytes_per_token(std::size_t vocabulary, std::size_t members);

 private:
  std::size_t vocabulary_, members_;
  std::vector<float> probabilities_;  // [tokens, vocabulary]: sum over members
  std::vector<double> losses_;        // [tokens, members]: -ln p of the answer
  std::vector<int> choices_;          // [tokens, members]
  std::vector<int> answers_;          // [tokens]
};

// -ln of the mean of exp(-losses), and how much it lies below their mean; exact where all are equal.
struct AveragedLoss {
  double loss_nats = 0, mean_nats = 0, ambiguity_nats = 0;
};
AveragedLoss averaged_loss(std::span<const double> losses);

}  // namespace mulligan::ensemble
