// What an update joins, and when the parts of gradients are reduced.
#include "framework/step/update_units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/support/plugins.h"

namespace mulligan::step_update_units_test {
namespace {

PlannedParameter planned(const std::string& name, const TensorType& type, std::size_t optimizer = 0) {
  PlannedParameter parameter;
  parameter.layout.spec.name = name;
  parameter.layout.spec.type = type;
  parameter.optimizer = optimizer;
  return parameter;
}

std::vector<PlannedParameter> model() {
  std::vector<PlannedParameter> all = {
      planned("bank", TensorType(MLG_F32, {3, 40})),   planned("a", TensorType(MLG_F32, {5})),
      planned("gate", TensorType(MLG_F32, {2, 70})),   planned("b", TensorType(MLG_F32, {2, 100})),
      planned("fast", TensorType(MLG_F32, {5})),       planned("other", TensorType(MLG_F32, {5}), 1),
      planned("another", TensorType(MLG_F32, {5}), 1), planned("c", TensorType(MLG_F32, {1}))};
  all[0].communication = Communication::sharded;
  all[2].layout.spec.matrix = true;
  all[4].lr_multiplier = 2;
  return all;
}

std::vector<std::string> names(const std::vector<PlannedParameter>& parameters) {
  std::vector<std::string> names;
  for (const PlannedParameter& parameter : parameters) names.push_back(parameter.name());
  return names;
}

UpdateUnits joined_units() {
  return UpdateUnits(model(), {"first", "second"}, [](std::size_t optimizer) { return optimizer == 0; });
}

TEST(UpdateUnits, JoinWhatIsTreatedAlike) {
  const UpdateUnits units = joined_units();
  EXPECT_EQ(names(units.parameters()),
            (std::vector<std::string>{"bank", "joined/first/0", "gate", "fast", "other", "another"}));
  const PlannedParameter& joined = units.parameters()[1];
  EXPECT_EQ(joined.layout.spec.type, TensorType(MLG_F32, {128 + 256 + 128}));  // a, b, c
  const auto none = [](std::size_t) { return false; };
  EXPECT_EQ(names(UpdateUnits(model(), {"first", "second"}, none).parameters()), names(model()));
}

TEST(UpdateUnits, PartsBearTheNamesOfTheParameters) {
  const UpdateUnits units = joined_units();
  const TensorType flat(MLG_BF16, {512}), one(MLG_F32, {1});
  const std::vector<UpdateUnits::Part> parts = units.parts("optimizer/first/joined/first/0.mean", flat);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].name, "optimizer/first/b.mean");
  EXPECT_EQ(parts[1].type, TensorType(MLG_BF16, {2, 100}));
  EXPECT_EQ(parts[1].offset, 128);
  EXPECT_EQ(parts[2].offset, 384);
  // What a group has but once is the first parameter's.
  const std::vector<UpdateUnits::Part> sum = units.parts("optimizer/first/joined/first/0.weight_sum", one);
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_EQ(sum[0].name, "optimizer/first/a.weight_sum");
  EXPECT_TRUE(units.parts("master/bank", TensorType(MLG_F32, {3, 40})).empty());
  EXPECT_TRUE(units.parts("master/joined/first/01", flat).empty());
}

TEST(UpdateUnits, PartsShareTheMemoryOfTheWhole) {
  const UpdateUnits units = joined_units();
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  TensorStore store(*backend);
  store.create("master/b", TensorType(MLG_F32, {2, 100}));  // declared by a graph before
  units.place(store, "master/joined/first/0", TensorType(MLG_F32, {512}));
  EXPECT_EQ(store.total_bytes(), 512 * 4);
  EXPECT_EQ(store.names(), std::vector<std::string>{"master/joined/first/0"});
  std::vector<float> values(512, 0.0f);
  for (std::size_t i = 0; i < 200; ++i) values[128 + i] = static_cast<float>(i);
  store.upload("master/joined/first/0", values);
  EXPECT_EQ(store.download_as<float>("master/b"),
            std::vector<float>(values.begin() + 128, values.begin() + 328));
  store.zero("master/b");
  store.upload("master/c", std::vector<float>{7});
  std::vector<float> expected(512, 0.0f);
  expected[384] = 7;
  EXPECT_EQ(store.download_as<float>("master/joined/first/0"), expected);
}

TEST(TensorStore, APartThatDoesNotFitIsRefused) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  TensorStore store(*backend);
  store.create("whole", TensorType(MLG_F32, {8}));
  const TensorType four(MLG_F32, {4});
  store.create_part("part", four, "whole", 4);
  store.create_part("part", four, "whole", 4);  // the same again
  EXPECT_THROW(store.create_part("part", four, "whole", 0), std::logic_error);
  EXPECT_THROW(store.create_part("late", four, "whole", 5), std::logic_error);
  EXPECT_THROW(store.create_part("wide", four.as(MLG_BF16), "whole", 0), std::logic_error);
  EXPECT_THROW(store.create_part("nested", TensorType(MLG_F32, {2}), "part", 0), std::logic_error);
  EXPECT_THROW(store.reserve("part", 32), std::logic_error);
  store.create("used", four);
  store.zero("used");
  EXPECT_THROW(store.create_part("used", four, "whole", 0), std::logic_error);
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
}  // namespace mulligan::step_update_units_test
