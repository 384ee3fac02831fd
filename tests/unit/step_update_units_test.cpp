// Parameters of equal treatment lie one after another and are updated as one; all other code knows them by their own
// names.
#include "framework/step/update_units.h"

#include <gtest/gtest.h>

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

TEST(UpdateUnits, JoinWhatIsTreatedAlike) {
  const UpdateUnits units(model(), {"first", "second"}, [](std::size_t optimizer) { return optimizer == 0; });
  EXPECT_EQ(names(units.parameters()),
            (std::vector<std::string>{"bank", "joined/first/0", "gate", "fast", "other", "another"}));
  const PlannedParameter& joined = units.parameters()[1];
  EXPECT_EQ(joined.layout.spec.type, TensorType(MLG_F32, {128 + 256 + 128}));  // a, b, c
  const auto none = [](std::size_t) { return false; };
  EXPECT_EQ(names(UpdateUnits(model(), {"first", "second"}, none).parameters()), names(model()));
}

TEST(UpdateUnits, PartsBearTheNamesOfTheParameters) {
  const UpdateUnits units(model(), {"first", "second"}, [](std::size_t optimizer) { return optimizer == 0; });
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
  const UpdateUnits units(model(), {"first", "second"}, [](std::size_t optimizer) { return optimizer == 0; });
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

}  // namespace
}  // namespace mulligan::step_update_units_test
