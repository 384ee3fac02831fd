// The evaluation that drops nothing, as shares of several ranks, against the public reference: rows,
// segments, sums of losses, tokens and side-table bytes. The model is the fixture's table of bigram logits.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "framework/data/eval_rows.h"
#include "framework/data/side_table.h"
#include "tests/golden/golden_fixture.h"

namespace mulligan::eval_tail_golden_test {
namespace {

class EvalTailGolden : public testing::Test {
 protected:
  EvalTailGolden()
      : fixture_("eval_tail"),
        config_(fixture_.manifest().at("config")),
        logits_(fixture_.doubles("bigram_logits")),
        vocabulary_(static_cast<std::size_t>(fixture_.shape("bigram_logits").at(1))),
        table_(values("val_bytes")),
        tokens_(values("val_tokens")) {}

  std::vector<std::uint16_t> values(const char* name) const {
    std::vector<std::uint16_t> result;
    for (const std::int32_t value : fixture_.ints(name)) result.push_back(static_cast<std::uint16_t>(value));
    return result;
  }

  double loss(std::size_t context, std::size_t target) const {
    const std::span<const double> row(&logits_[context * vocabulary_], vocabulary_);
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit);
    return std::log(sum) - row[target];
  }

  // The rows of one of `shares` ranks, as a process of `world_size` of them scores them.
  std::vector<EvalSpan> rows(int shares, int world_size, int rank) const {
    EvalConfig eval;
    eval.sequence_length = config_.at("eval_seq_len");
    eval.packed_sequences = config_.at("seqs_per_batch");
    eval.shares = shares;
    return eval_rows(std::ssize(tokens_), eval, world_size, rank);
  }

  // The world sizes of the fixture with the number of ranks.
  std::map<std::string, int> worlds() const {
    std::map<std::string, int> worlds;
    for (const auto& [name, result] : fixture_.manifest().at("results").items())
      worlds[name] = std::stoi(name.substr(2));
    return worlds;
  }

  GoldenFixture fixture_;
  nlohmann::json config_;
  std::vector<double> logits_;
  std::size_t vocabulary_;
  SideTable table_;
  std::vector<std::uint16_t> tokens_;
};

TEST_F(EvalTailGolden, RowsSegmentsAndSums) {
  ASSERT_FALSE(worlds().empty());
  for (const auto& [name, world_size] : worlds()) {
    double whole_loss = 0, whole_tokens = 0, whole_bytes = 0;
    for (int rank = 0; rank < world_size; ++rank) {
      const std::string prefix = fmt::format("{}.rank{}", name, rank);
      SCOPED_TRACE(prefix);
      const std::vector<std::int32_t> sizes = fixture_.ints(prefix + ".batch_sizes"),
                                      cu_sizes = fixture_.ints(prefix + ".cu_sizes");
      std::vector<std::int32_t> inputs, cu_seqlens;
      double sum = 0, bytes = 0, count = 0;
      const std::vector<EvalSpan> made = rows(world_size, world_size, rank);
      ASSERT_EQ(made.size(), sizes.size());
      for (std::size_t i = 0; i < made.size(); ++i) {
        EXPECT_EQ(made[i].length, sizes[i]);
        EXPECT_EQ(made[i].score_begin, 0);
        Batch batch;
        fill_eval_row(tokens_, made[i], made[i].length, 1, config_.at("eval_seq_len"), batch);
        inputs.insert(inputs.end(), batch.tokens.begin(), batch.tokens.end());
        EXPECT_EQ(static_cast<std::int32_t>(batch.cu_seqlens.size()), cu_sizes[i]);
        cu_seqlens.insert(cu_seqlens.end(), batch.cu_seqlens.begin(), batch.cu_seqlens.end());
        for (std::int64_t at = made[i].start; at < made[i].start + made[i].length; ++at) {
          const auto position = static_cast<std::size_t>(at);
          sum += loss(tokens_[position], tokens_[position + 1]);
          bytes += table_.bytes_at(tokens_, position + 1);
          ++count;
        }
      }
      EXPECT_EQ(inputs, fixture_.ints(prefix + ".inputs"));
      EXPECT_EQ(cu_seqlens, fixture_.ints(prefix + ".cu_seqlens"));
      const std::vector<double> expected = fixture_.doubles(prefix + ".loss_tokens_bytes");
      EXPECT_NEAR(sum, expected[0], 1e-5 * expected[0]);
      EXPECT_EQ(count, expected[1]);
      EXPECT_EQ(bytes, expected[2]);
      whole_loss += sum, whole_tokens += count, whole_bytes += bytes;
    }
    const nlohmann::json& result = fixture_.manifest().at("results").at(name);
    EXPECT_NEAR(whole_loss, result.at("loss_sum").get<double>(), 1e-5 * whole_loss);
    EXPECT_EQ(whole_tokens, result.at("tokens").get<double>());
    EXPECT_EQ(whole_bytes, result.at("bytes").get<double>());
    EXPECT_EQ(whole_bytes, static_cast<double>(table_.count(tokens_)));
  }
}

// One process replays the shares of several: what is scored does not depend on how many there are.
TEST_F(EvalTailGolden, AnyNumberOfRanksScoresTheSameRows) {
  for (const auto& [name, shares] : worlds()) {
    const std::vector<EvalSpan> alone = rows(shares, 1, 0);
    for (const int world_size : {1, 2, 3, 8}) {
      std::vector<EvalSpan> together;
      for (int rank = 0; rank < world_size; ++rank) {
        const std::vector<EvalSpan> own = rows(shares, world_size, rank);
        together.insert(together.end(), own.begin(), own.end());
      }
      EXPECT_EQ(together, alone) << shares << " shares on " << world_size << " ranks";
    }
  }
}

}  // namespace
}  // namespace mulligan::eval_tail_golden_test
