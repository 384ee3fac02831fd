#include "framework/data/masking.h"

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// Rows draw from ranges of their own: a row is shorter than 2^30 tokens (Loader), and each needs two numbers.
constexpr int row_bits = 31;

}  // namespace

std::int64_t chosen_tokens(double share, std::int64_t tokens) {
  const auto wanted = static_cast<std::int64_t>(std::round(share * static_cast<double>(tokens)));
  return std::min(std::max<std::int64_t>(wanted, 1), tokens);
}

Masking::Masking(const MaskingOptions& options, std::string_view purpose)
    : options_(options), draws_(options.seed, fmt::format("masking/{}", purpose)) {}

std::int64_t Masking::apply(std::uint64_t row, std::span<std::int32_t> tokens,
                            std::span<std::int32_t> targets) {
  candidates_.clear();
  candidates_.reserve(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (tokens[t] == options_.token) {
      throw data_error(
          "the text has token {}, which is the mask token; choose one that does not occur in it "
          "(model.masking.token)",
          options_.token);
    }
    if (tokens[t] != options_.bos_id) candidates_.push_back(static_cast<std::int32_t>(t));
  }
  std::ranges::fill(targets, -1);
  const auto count = static_cast<std::int64_t>(candidates_.size());
  const std::int64_t chosen =
      std::min(chosen_tokens(options_.share, static_cast<std::int64_t>(tokens.size())), count);
  const std::uint64_t first = row << row_bits;
  const auto number = [&](std::int64_t i) { return draws_.uniform(first + static_cast<std::uint64_t>(i)); };
  const auto below = [](double uniform, std::int64_t bound) {
    return std::min(static_cast<std::int64_t>(uniform * static_cast<double>(bound)), bound - 1);
  };
  for (std::int64_t i = 0; i < chosen; ++i) {  // the first steps of a Fisher-Yates shuffle
    const std::int64_t other = i + below(number(2 * i), count - i);
    std::swap(candidates_[static_cast<std::size_t>(i)], candidates_[static_cast<std::size_t>(other)]);
    const auto at = static_cast<std::size_t>(candidates_[static_cast<std::size_t>(i)]);
    targets[at] = tokens[at];
    const double fate = number(2 * i + 1);
    if (fate < options_.mask_share) {
      tokens[at] = options_.token;
    } else if (fate < options_.mask_share + options_.random_share) {
      // What is left of the number is uniform again.
      const double rest = (fate - options_.mask_share) / options_.random_share;
      tokens[at] = static_cast<std::int32_t>(below(rest, options_.vocabulary));
    }
  }
  return chosen;
}

}  // namespace mulligan
