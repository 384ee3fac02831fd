// Which tokens of a sequence are hidden (framework/data/masking.h).
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "framework/core/error.h"
#include "framework/data/loader.h"
#include "framework/data/masking.h"
#include "framework/model/elements/masking/config.h"
#include "tests/unit/data_support.h"
#include "tools/doctor/model_checks.h"
#include "tools/doctor/probe.h"

namespace mulligan::data_masking_test {
namespace {

using Ints = std::vector<std::int32_t>;

MaskingOptions options_of(double share) {
  MaskingOptions options;
  options.share = share;
  options.token = 0;
  options.vocabulary = 1000;
  options.bos_id = 1;
  options.seed = 7;
  return options;
}

// Tokens from 2 on with a document start every `document` tokens.
Ints text(std::int64_t tokens, std::int64_t document) {
  Ints row;
  for (std::int64_t t = 0; t < tokens; ++t)
    row.push_back(t % document == 0 ? 1 : static_cast<std::int32_t>(2 + t % 900));
  return row;
}

struct Hidden {
  Ints tokens, targets;
  std::int64_t chosen = 0;
};
Hidden hide(Masking& masking, std::uint64_t row, const Ints& tokens) {
  Hidden hidden{tokens, Ints(tokens.size(), 99), 0};
  hidden.chosen = masking.apply(row, hidden.tokens, hidden.targets);
  return hidden;
}

TEST(Masking, ChoosesExactlyItsShareAndNoStartOfADocument) {
  for (const double share : {0.001, 0.15, 0.5, 0.8}) {
    for (const std::int64_t tokens : {2, 3, 17, 64, 1000}) {
      Masking masking(options_of(share), "train");
      const Ints original = text(tokens, 50);
      const std::int64_t starts = (tokens + 49) / 50;
      const Hidden hidden = hide(masking, 3, original);
      const std::int64_t wanted =
          std::max<std::int64_t>(std::llround(share * static_cast<double>(tokens)), 1);
      EXPECT_EQ(hidden.chosen, std::min(wanted, tokens - starts)) << share << " of " << tokens;
      std::int64_t targets = 0;
      for (std::size_t t = 0; t < original.size(); ++t) {
        if (hidden.targets[t] < 0) {
          EXPECT_EQ(hidden.targets[t], -1);
          EXPECT_EQ(hidden.tokens[t], original[t]);
          continue;
        }
        ++targets;
        EXPECT_NE(original[t], 1);
        EXPECT_EQ(hidden.targets[t], original[t]);
      }
      EXPECT_EQ(targets, hidden.chosen);
    }
  }
}

// 80 % the mask token, 10 % any token, 10 % as they are; each place alike. Within five standard deviations.
TEST(Masking, FatesAndPlacesHaveTheirShares) {
  constexpr std::int64_t tokens = 101, rows = 4000, chosen = 15;
  Masking masking(options_of(0.15), "train");
  const Ints original = text(tokens, tokens);
  std::map<std::size_t, int> by_place;
  double masked = 0, same = 0, drawn = 0, sum_drawn = 0;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const Hidden hidden = hide(masking, row, original);
    ASSERT_EQ(hidden.chosen, chosen);
    for (std::size_t t = 0; t < original.size(); ++t) {
      if (hidden.targets[t] < 0) continue;
      ++by_place[t];
      if (hidden.tokens[t] == 0) {
        ++masked;
      } else if (hidden.tokens[t] == original[t]) {
        ++same;
      } else {
        ++drawn;
        sum_drawn += hidden.tokens[t];
      }
    }
  }
  constexpr double all = rows * chosen;
  const auto near = [](double count, double share, double of) {
    EXPECT_NEAR(count / of, share, 5 * std::sqrt(share * (1 - share) / of)) << count << " of " << of;
  };
  // A thousandth of what is drawn at random is the mask token or the token itself.
  near(masked, 0.8 + 0.1 / 1000, all);
  near(same, 0.1 + 0.1 / 1000, all);
  near(drawn, 0.1 * 0.998, all);
  EXPECT_NEAR(sum_drawn / drawn, 499.5, 5 * 1000 / std::sqrt(12 * drawn));
  EXPECT_EQ(by_place.size(), static_cast<std::size_t>(tokens - 1));
  for (const auto& [place, count] : by_place) near(count, 0.15 * 1.0, rows);
}

TEST(Masking, IsAFunctionOfSeedPurposeAndRow) {
  Masking first(options_of(0.3), "train"), again(options_of(0.3), "train"),
      other(options_of(0.3), "validation");
  MaskingOptions seeded = options_of(0.3);
  seeded.seed = 8;
  Masking reseeded(seeded, "train");
  const Ints original = text(60, 60);
  const Hidden hidden = hide(first, 5, original);
  static_cast<void>(hide(again, 4, text(500, 9)));  // whatever was hidden before
  EXPECT_EQ(hide(again, 5, original).tokens, hidden.tokens);
  EXPECT_NE(hide(again, 6, original).targets, hidden.targets);
  EXPECT_NE(hide(other, 5, original).targets, hidden.targets);
  EXPECT_NE(hide(reseeded, 5, original).targets, hidden.targets);
}

TEST(Masking, OddRows) {
  Masking masking(options_of(0.15), "train");
  const Hidden starts = hide(masking, 0, Ints(5, 1));
  EXPECT_EQ(starts.chosen, 0);
  EXPECT_EQ(starts.targets, Ints(5, -1));
  EXPECT_EQ(hide(masking, 0, {4}).chosen, 1);
  EXPECT_EQ(hide(masking, 0, {}).chosen, 0);
  EXPECT_TRUE(refuses(
      [&] {
        static_cast<void>(hide(masking, 0, {1, 5, 0, 7}));
      },
      ExitCode::bad_data, "model.masking.token"))
      << "the mask token in the text was not noticed";
}

// A row that is read again hides other tokens. Ranks and restored loaders: data_loader_test.cpp.
TEST(Masking, LoaderHidesOtherTokensInTheNextPass) {
  std::vector<std::uint16_t> tokens;
  for (int t = 0; t < 205; ++t) tokens.push_back(t % 20 == 0 ? 1 : static_cast<std::uint16_t>(2 + t));
  LoaderOptions options;
  options.shards = fresh_shards("masking_loader", {tokens});
  options.row_tokens = 16;
  options.group_spans = 4;
  options.masking = options_of(0.3);
  Loader loader(options);
  std::vector<Batch> rows(24);  // two passes
  for (Batch& row : rows) {
    loader.next(row);
    EXPECT_EQ(row.target_count(), 5);
  }
  const auto original = [](Batch hidden) {
    for (std::size_t t = 0; t < hidden.tokens.size(); ++t)
      if (hidden.targets[t] >= 0) hidden.tokens[t] = hidden.targets[t];
    return hidden.tokens;
  };
  EXPECT_EQ(original(rows[12]), original(rows[0])) << "the second pass begins here";
  EXPECT_NE(rows[12].targets, rows[0].targets);
}

// The mean loss of a step is over a fixed number of tokens: a row with fewer would make it too low in silence.
TEST(Masking, LoaderRefusesRowsThatCannotHideAsManyAsSaid) {
  std::vector<std::uint16_t> tokens;
  for (int t = 0; t < 65; ++t) tokens.push_back(t % 4 == 0 ? 1 : static_cast<std::uint16_t>(2 + t));
  LoaderOptions options;
  options.shards = fresh_shards("masking_short", {tokens});
  options.row_tokens = 16;  // 4 of them begin documents
  options.masking = options_of(0.75);
  Batch row;
  Loader(options).next(row);
  EXPECT_EQ(row.target_count(), 12);
  for (const double share : {0.8, 1.0}) {
    options.masking = options_of(share);
    Loader loader(options);
    EXPECT_TRUE(refuses([&] { loader.next(row); }, ExitCode::bad_data, "lower model.masking.share"));
  }
}

// What no model of the next token reaches, one that reads both sides may.
TEST(Masking, TheDoctorsFloorIsOfTheNextToken) {
  ModelConfig model;
  EXPECT_EQ(doctor::loss_floor(model, 2), 0.3 * 2);
  model.elements["masking.share"] = ConfigValue(0.15);
  EXPECT_EQ(doctor::loss_floor(model, 2), 0);
}

// The doctor looks at the first tokens of a sequence. Few or none of them may be hidden.
TEST(Masking, ACutRowHasTargets) {
  const Ints original = text(256, 300);
  Batch row;
  row.reserve(256);
  row.tokens = original;
  build_segments(std::array{0}, 256, 0, row);
  for (const std::int32_t at : {10, 200}) {
    row.tokens = original;
    row.targets.assign(256, -1);
    row.targets[static_cast<std::size_t>(at)] = original[static_cast<std::size_t>(at)];
    row.tokens[static_cast<std::size_t>(at)] = 0;
    const Batch cut = doctor::cut_row(row, 64, options_of(0.001));
    ASSERT_EQ(cut.tokens.size(), 64U);
    EXPECT_EQ(cut.target_count(), 10);  // 0.15 of 64
    for (std::size_t t = 0; t < 64; ++t) {
      if (cut.targets[t] >= 0) {
        EXPECT_EQ(cut.targets[t], original[t]);
      } else {
        EXPECT_EQ(cut.tokens[t], original[t]);
      }
    }
    EXPECT_EQ(doctor::cut_row(row, 64, std::nullopt).target_count(), at < 64 ? 1 : 0);
  }
}

}  // namespace
}  // namespace mulligan::data_masking_test
