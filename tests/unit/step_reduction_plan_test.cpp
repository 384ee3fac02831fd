// In which parts gradients are summed over ranks, and when in a backward pass each is complete.
#include "framework/step/update_units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace mulligan::step_reduction_plan_test {
namespace {

PlannedParameter planned(const std::string& name, const TensorType& type) {
  PlannedParameter parameter;
  parameter.layout.spec.name = name;
  parameter.layout.spec.type = type;
  return parameter;
}

// A bank of 22 matrices, which are cut over ranks where `sharded`, a table, and two vectors that are joined.
UpdateUnits units(bool sharded) {
  std::vector<PlannedParameter> all = {
      planned("bank", TensorType(MLG_F32, {22, 8, 4})), planned("table", TensorType(MLG_F32, {10, 3})),
      planned("a", TensorType(MLG_F32, {5})), planned("b", TensorType(MLG_F32, {7}))};
  if (sharded) all[0].communication = all[1].communication = Communication::sharded;
  all[0].optimizer = all[1].optimizer = 1;
  return UpdateUnits(all, {"vectors", "matrices"}, [](std::size_t optimizer) { return optimizer == 0; });
}

TEST(ReductionPlan, PartsAreEachElementOnceForTheRankThatUpdatesIt) {
  for (const int ranks : {1, 2, 3, 8, 64}) {
    for (const bool sharded : {false, true}) {
      SCOPED_TRACE(ranks * 10 + sharded);
      const UpdateUnits all = units(sharded);
      std::vector<std::int64_t> next(all.parameters().size(), 0);
      for (const GradientPart& part : gradient_parts(all.parameters(), ranks)) {
        const PlannedParameter& unit = all.parameters()[part.unit];
        EXPECT_EQ(part.offset, std::exchange(next[part.unit], part.offset + part.elements));
        if (!unit.is_cut(ranks)) {
          EXPECT_EQ(part.owner, PlannedParameter::everybody);
          continue;
        }
        const std::int64_t share = unit.updated_type(ranks).elements();
        EXPECT_EQ(part.owner, part.offset / share);
        EXPECT_EQ(part.owner, (part.offset + part.elements - 1) / share) << "within one rank's slice";
      }
      for (std::size_t i = 0; i < next.size(); ++i) {
        EXPECT_EQ(next[i], all.parameters()[i].layout.spec.type.elements()) << "no padding";
      }
    }
  }
}

TEST(ReductionPlan, APartIsCompleteAfterTheLastCallThatNamesIt) {
  const UpdateUnits all = units(false);
  const std::vector<GradientPart> parts = gradient_parts(all.parameters(), 2);
  ASSERT_EQ(parts.size(), 24u);  // 22 matrices, the table, the joined vectors
  Graph graph;
  const Value bank = graph.external("gradient/bank", TensorType(MLG_F32, {22, 8, 4}));
  const Value b = graph.external("gradient/b", TensorType(MLG_F32, {7}));
  const Value other = graph.external("compute/bank", TensorType(MLG_F32, {22, 8, 4}));
  graph.call("cast", {graph.slice(bank, 3), other});
  graph.call("cast", {b, Value{}});
  graph.call("cast", {graph.view(bank, 2 * 32, TensorType(MLG_F32, {2, 8, 4}))});  // matrices 2 and 3
  graph.call("cast", {graph.slice(bank, 21)});
  std::vector<std::size_t> expected(24, 0);
  expected[2] = expected[3] = 3;
  expected[21] = 4;
  expected[23] = 2;
  EXPECT_EQ(complete_after(graph, all, parts), expected);
}

TEST(ReductionPlan, StagesFollowTheBackwardPassAndAreWorthATransfer) {
  constexpr std::int64_t megabyte = 1 << 20;
  // Ten parts, complete in falling order, as layers are; one that nothing mentions.
  std::vector<std::size_t> complete(11, 0);
  for (std::size_t i = 0; i < 10; ++i) complete[i] = 100 - 10 * i;
  const std::vector<ReductionStage> stages =
      reduction_stages(complete, std::vector<std::int64_t>(11, megabyte), 100);
  EXPECT_GT(stages.size(), 4u);
  EXPECT_LE(stages.size(), 9u);
  EXPECT_EQ(stages.back().calls, 100u);
  std::vector<std::size_t> seen;
  std::size_t calls = 0;
  for (const ReductionStage& stage : stages) {
    EXPECT_GT(stage.calls, calls);
    calls = stage.calls;
    for (const std::size_t part : stage.parts) {
      EXPECT_LE(complete[part], stage.calls) << "sent before it is complete";
      seen.push_back(part);
    }
  }
  EXPECT_EQ(stages.back().parts.back(), 10u);
  std::ranges::sort(seen);
  std::vector<std::size_t> every(11);
  std::iota(every.begin(), every.end(), std::size_t{0});
  EXPECT_EQ(seen, every);
  EXPECT_EQ(reduction_stages(complete, std::vector<std::int64_t>(11, 100), 100).size(), 1u) << "too little";
}

}  // namespace
}  // namespace mulligan::step_reduction_plan_test
