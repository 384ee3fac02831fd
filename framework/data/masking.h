// Masked language modelling: which tokens of a row are hidden, and what a model sees in their place.
//
// Of the n tokens of a row exactly max(1, round(share n)) are chosen, uniformly and without replacement, as BERT's
// data preparation does (Devlin et al., arXiv 1810.04805, A.1), so that every row weighs the same. The tokens with
// which documents begin are never chosen. A chosen token becomes the mask token with probability mask_share, any
// token of the vocabulary with random_share, and stays otherwise; its target is what it was. All others have the
// target -1, which costs no loss (<mulligan/loss.hpp>).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/core/philox.h"

namespace mulligan {

struct MaskingOptions {
  double share = 0.15;  // in (0, 1]
  double mask_share = 0.8, random_share = 0.1;
  std::int32_t token = 0;  // the mask token
  std::int32_t vocabulary = 0;
  std::int32_t bos_id = 1;  // never chosen
  std::uint64_t seed = 0;
};

// How many of a row's tokens are chosen, at least 1 where there is any.
std::int64_t chosen_tokens(double share, std::int64_t tokens);

class Masking {
 public:
  // `purpose` names the stream of random numbers: "train" and "validation" choose independently.
  Masking(const MaskingOptions& options, std::string_view purpose);

  // Hides tokens of a row in place and overwrites all of its targets. What is chosen depends on the seed, the
  // purpose, `row` and the row's length alone. A row with fewer tokens that can be chosen than chosen_tokens()
  // has all of them chosen. Returns how many were. Allocates only for rows longer than any before. Throws
  // data_error where the row has the mask token.
  std::int64_t apply(std::uint64_t row, std::span<std::int32_t> tokens, std::span<std::int32_t> targets);

 private:
  MaskingOptions options_;
  PhiloxStream draws_;
  std::vector<std::int32_t> candidates_;  // positions
};

}  // namespace mulligan
