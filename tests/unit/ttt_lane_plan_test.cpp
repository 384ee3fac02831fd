// Which lane scores which batch, and when all meet: the record's pauses, one lane's, and the numbers of draws.
#include "framework/ttt/document_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace mulligan::ttt_lane_plan_test {
namespace {

// The longest 3,088 of 50,000 documents whose lengths are spread like those of web text: log-normal, 811 tokens on average, the
// longest 89,000. (With the longest below 60,000 the remainder batch is done sooner, and the first pause is one batch later.)
// 3,088 leaves the remainder of 16 that 50,000 leave.
DocumentPlan plan_like_the_record(const TttConfig& config) {
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 3088; ++i) {
    const double tail = (i + 0.5) / 50000;  // of documents that are longer
    const double t = std::sqrt(-2 * std::log(tail));
    // Abramowitz and Stegun 26.2.22, within 3e-3.
    const double z = t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t);
    const auto length = static_cast<std::size_t>(std::exp(std::log(811) - 1.3 * 1.3 / 2 + 1.3 * z));
    tokens.push_back(1);
    tokens.insert(tokens.end(), length, 2);
  }
  return plan_documents(tokens, 1, config);
}

TttConfig record_config() {
  TttConfig config;
  config.batch_documents = 64;
  config.prefix_documents = 2000;
  config.phases = 3;
  return config;
}

std::vector<std::int64_t> documents_before_pauses(const DocumentPlan& plan, const LanePlan& lanes) {
  std::vector<std::int64_t> counts;
  std::int64_t documents = 0;
  for (const LanePlan::Stretch& stretch : lanes.stretches) {
    for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue)
      documents += static_cast<std::int64_t>(plan.queue[static_cast<std::size_t>(queue)].documents.size());
    if (stretch.boundary) counts.push_back(documents);
  }
  return counts;
}

LanePlan lanes_of(const DocumentPlan& plan, const TttConfig& config, std::int64_t lanes) {
  return plan_lanes(plan, config.context_tokens, phase_boundaries(config, 50000), lanes);
}

// What the record's log reports of eight ranks, and what one rank does.
TEST(LanePlan, EightLanesPauseWhereTheRecordsRanksDid) {
  const TttConfig config = record_config();
  const DocumentPlan plan = plan_like_the_record(config);
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(documents_before_pauses(plan, lanes_of(plan, config, 8)), (Counts{1104, 1808, 2448}));
  EXPECT_EQ(documents_before_pauses(plan, lanes_of(plan, config, 1)), (Counts{720, 1360, 2000}));
}

TEST(LanePlan, TheBaseModelIsTrainedOnTheSameCounts) {
  const TttConfig config = record_config();
  const DocumentPlan plan = plan_like_the_record(config);
  for (const std::int64_t lanes : {1, 3, 8, 16}) {
    std::vector<std::int64_t> boundaries;
    for (const LanePlan::Stretch& stretch : lanes_of(plan, config, lanes).stretches) {
      if (stretch.boundary) boundaries.push_back(*stretch.boundary);
    }
    EXPECT_EQ(boundaries, (std::vector<std::int64_t>{666, 1333, 2000})) << lanes;
  }
}

TEST(LanePlan, EveryBatchHasOneLaneAndOnePlaceInTheOrder) {
  const TttConfig config = record_config();
  const DocumentPlan plan = plan_like_the_record(config);
  for (const std::int64_t lanes : {1, 2, 5, 8, 200}) {
    const LanePlan dealt = lanes_of(plan, config, lanes);
    ASSERT_EQ(dealt.lanes.size(), plan.queue.size());
    EXPECT_GE(*std::ranges::min_element(dealt.lanes), 0);
    EXPECT_LT(*std::ranges::max_element(dealt.lanes), lanes);
    const std::vector<std::int64_t> order = dealt.order();
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), plan.queue.size());
    // Stretch by stretch; in it lane by lane; in that along the queue.
    std::size_t place = 0;
    for (const LanePlan::Stretch& stretch : dealt.stretches) {
      EXPECT_LT(stretch.first, stretch.end);
      for (std::int64_t i = stretch.first; i < stretch.end; ++i, ++place) {
        EXPECT_GE(order[place], stretch.first);
        EXPECT_LT(order[place], stretch.end);
        if (i == stretch.first) continue;
        const auto lane = [&](std::size_t p) { return dealt.lanes[static_cast<std::size_t>(order[p])]; };
        EXPECT_TRUE(lane(place - 1) < lane(place) ||
                    (lane(place - 1) == lane(place) && order[place - 1] < order[place]));
      }
    }
    EXPECT_EQ(place, order.size());
  }
}

TEST(LanePlan, WithoutTrainingOfTheBaseModelThereIsOneStretch) {
  const TttConfig config = record_config();
  const DocumentPlan plan = plan_like_the_record(config);
  const LanePlan lanes = plan_lanes(plan, config.context_tokens, {}, 8);
  ASSERT_EQ(lanes.stretches.size(), 1u);
  EXPECT_FALSE(lanes.stretches[0].boundary);
  EXPECT_EQ(lanes.stretches[0].end, static_cast<std::int64_t>(plan.queue.size()));
}

// Two batches cannot reach three boundaries: one training follows one batch at most.
TEST(LanePlan, AtMostOneTrainingFollowsABatch) {
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 6; ++i) tokens.insert(tokens.end(), {1, 2, 3, 4});
  TttConfig config;
  config.batch_documents = 3;
  config.prefix_documents = 6;
  config.phases = 3;
  const DocumentPlan plan = plan_documents(tokens, 1, config);
  const LanePlan lanes = plan_lanes(plan, config.context_tokens, phase_boundaries(config, 6), 1);
  ASSERT_EQ(lanes.stretches.size(), 2u);
  EXPECT_EQ(lanes.stretches[0].boundary, 2);
  EXPECT_EQ(lanes.stretches[1].boundary, 4);
}

// Counted on paper: a creation for each stretch, one for a batch of another size, one for each batch where those draw.
TEST(LanePlan, DrawsAreNumberedAlongTheQueue) {
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 7; ++i) {
    tokens.push_back(1);
    tokens.insert(tokens.end(), static_cast<std::size_t>(4 + i), 2);
  }
  TttConfig config;
  config.batch_documents = 3;
  config.prefix_documents = 4;
  const DocumentPlan plan = plan_documents(tokens, 1, config);  // 1, 3, 3 documents
  const LanePlan lanes = plan_lanes(plan, config.context_tokens, phase_boundaries(config, 7), 1);
  ASSERT_EQ(lanes.stretches.size(), 2u);
  using Numbers = std::vector<std::int64_t>;
  const auto other_size = [&](std::int64_t queue) {
    return plan.queue[static_cast<std::size_t>(queue)].documents.size() != 3;
  };
  const DrawNumbers warm = number_draws(lanes, other_size);
  const DrawNumbers fresh = number_draws(lanes, [](std::int64_t) { return true; });
  EXPECT_EQ(warm.stretches, (Numbers{0, 2}));
  EXPECT_EQ(warm.batches[0], 1);
  EXPECT_EQ(fresh.stretches, (Numbers{0, 3}));
  EXPECT_EQ(fresh.batches, (Numbers{1, 2, 4}));
}

}  // namespace
}  // namespace mulligan::ttt_lane_plan_test
