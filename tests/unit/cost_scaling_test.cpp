// Rings, the two queues of a step, and the micro-batches of each rank, computed on paper.
#include <gtest/gtest.h>

#include "tools/cost/scaling.h"

namespace mulligan::cost_scaling_test {
namespace {

using Kind = StepEvent::Kind;

RehearsedTransfer transfer(Collective kind, std::int64_t bytes) {
  return {kind, bytes};
}

// 100 GB/s within a node, 10 GB/s between nodes, steps of 1 and 5 us.
Interconnect net(int nodes, int ranks_per_node) {
  return {nodes, ranks_per_node, 1, 100e9, 10e9, 1e-6, 5e-6};
}

TEST(Interconnect, ARingMovesEachByteNearlyTwice) {
  EXPECT_EQ(sent_bytes(transfer(Collective::all_reduce, 800), 8), 2 * 800 * 7 / 8.0);
  EXPECT_EQ(sent_bytes(transfer(Collective::reduce_scatter, 100), 8), 700) << "shares of 100 bytes";
  EXPECT_EQ(sent_bytes(transfer(Collective::all_gather, 100), 8), 700);
  EXPECT_EQ(sent_bytes(transfer(Collective::all_to_all, 100), 8), 700);
  EXPECT_EQ(sent_bytes(transfer(Collective::broadcast, 800), 8), 800);
  EXPECT_EQ(sent_bytes(transfer(Collective::reduce, 800), 8), 800);
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                Collective::all_to_all, Collective::broadcast}) {
    EXPECT_EQ(sent_bytes(transfer(kind, 800), 1), 0);
  }
}

TEST(Interconnect, RingsOfNodesFollowThoseWithinThem) {
  const std::vector<RehearsedTransfer> sum = {transfer(Collective::all_reduce, 80'000'000)};
  EXPECT_EQ(batch_seconds(sum, net(1, 1)), 0);
  EXPECT_DOUBLE_EQ(batch_seconds(sum, net(1, 8)), 140e6 / 100e9 + 14 * 1e-6);
  // Half of 80 MB leaves each of two nodes twice: sums, and what they are.
  const double within = 140e6 / 100e9 + 14 * 1e-6, across = 80e6 / 10e9 + 2 * 5e-6;
  EXPECT_DOUBLE_EQ(batch_seconds(sum, net(2, 8)), within + across);
  EXPECT_DOUBLE_EQ(batch_seconds(sum, net(2, 1)), across) << "no links within a node of one";
}

TEST(Interconnect, LinksOfANodeShareWhatLeavesIt) {
  Interconnect one = net(4, 8), four = one;
  four.links_per_node = 4;
  for (const Collective kind : {Collective::reduce_scatter, Collective::all_gather}) {
    const std::vector<RehearsedTransfer> shares = {transfer(kind, 1'000'000)};  // of 32 MB
    const double within = 28e6 / 100e9 + 7 * 1e-6, across = 24e6 / 10e9;
    EXPECT_DOUBLE_EQ(batch_seconds(shares, one), within + across + 3 * 5e-6);
    EXPECT_DOUBLE_EQ(batch_seconds(shares, four), within + across / 4 + 3 * 5e-6);
  }
  const std::vector<RehearsedTransfer> whole = {transfer(Collective::reduce, 32'000'000)};
  EXPECT_DOUBLE_EQ(batch_seconds(whole, four), 32e6 / 100e9 + 7 * 1e-6 + 32e6 / 40e9 + 3 * 5e-6);
}

TEST(Interconnect, AllToAllLeavesANodeFromEachOfItsRanks) {
  const std::vector<RehearsedTransfer> deal = {transfer(Collective::all_to_all, 1'000'000)};
  EXPECT_DOUBLE_EQ(batch_seconds(deal, net(1, 4)), 3e6 / 100e9 + 1e-6);
  // Each of 4 ranks sends 1 MB to each of the 4 of the other node.
  EXPECT_DOUBLE_EQ(batch_seconds(deal, net(2, 4)), 16e6 / 10e9 + 5e-6);
}

TEST(Interconnect, ABatchPaysItsStepsOncePerKind) {
  const RehearsedTransfer sum = transfer(Collective::all_reduce, 8'000),
                          share = transfer(Collective::all_gather, 1'000);
  EXPECT_DOUBLE_EQ(batch_seconds({sum, sum, share}, net(1, 8)), (2 * 14e3 + 7e3) / 100e9 + (14 + 7) * 1e-6);
}

StepEvent event(Kind kind, std::size_t batch = 0) {
  StepEvent made;
  made.kind = kind;
  made.batch = batch;
  return made;
}

TEST(StepTimeline, TransfersHideBehindWorkUntilTheyAreJoined) {
  // Work of 1 s, batch 0 (3 s) begins at 1; work until 3; batch 1 (2 s) waits for the network until 4. Both are joined.
  const std::vector<StepEvent> events = {event(Kind::call),      event(Kind::submit, 0), event(Kind::call),
                                         event(Kind::submit, 1), event(Kind::join, 0),   event(Kind::zero),
                                         event(Kind::join, 1)};
  const StepTimeline seen = step_timeline(events, {1, 0, 2, 0, 0, 0.5, 0}, {3, 2});
  EXPECT_DOUBLE_EQ(seen.compute_seconds, 3.5);
  EXPECT_DOUBLE_EQ(seen.communication_seconds, 5);
  EXPECT_DOUBLE_EQ(seen.exposed_seconds, 1 + 1.5) << "from 3 to 4, and from 4.5 to 6";
  EXPECT_DOUBLE_EQ(seen.step_seconds, 6);
}

TEST(StepTimeline, AStepIsItsWorkAndWhatIsExposed) {
  const std::vector<StepEvent> events = {event(Kind::submit, 0), event(Kind::call), event(Kind::join, 0)};
  const StepTimeline hidden = step_timeline(events, {0, 4, 0}, {3});
  EXPECT_DOUBLE_EQ(hidden.step_seconds, 4);
  EXPECT_DOUBLE_EQ(hidden.exposed_seconds, 0);
  const StepTimeline shown = step_timeline(events, {0, 1, 0}, {3});
  EXPECT_DOUBLE_EQ(shown.step_seconds, shown.compute_seconds + shown.exposed_seconds);
  EXPECT_DOUBLE_EQ(shown.exposed_seconds, 2);
}

TEST(Scaling, EveryRankGetsAsFewMicroBatchesAsItCan) {
  EXPECT_EQ(micro_batches_for(8, 1), 8);
  EXPECT_EQ(micro_batches_for(8, 8), 8);
  EXPECT_EQ(micro_batches_for(8, 16), 16);
  EXPECT_EQ(micro_batches_for(8, 3), 9);
  EXPECT_EQ(micro_batches_for(1, 24), 24);
}

}  // namespace
}  // namespace mulligan::cost_scaling_test
