// The parameter table applied to the model: every parameter in exactly one group, with its precision and its slice.
#include "framework/run/parameter_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan::run_parameter_plan_test {
namespace {

constexpr const char* two_optimizers =
    "[optimizer.a]\nplugin = 'adamw'\nlr = 0.1\n[optimizer.b]\nplugin = 'sgd'\nlr = 0.2\n";

std::string row(const std::string& match, const std::string& optimizer, const std::string& more = "") {
  return "[[parameters]]\nmatch = '" + match + "'\noptimizer = '" + optimizer + "'\n" + more;
}

std::vector<PlannedParameter> plan(const std::string& rest) {
  const std::vector<std::string> sets = {"model.layers=3"};
  return plan_parameters(parse_run_config(std::string(kSmallRun) + rest, "plan.toml", sets).config);
}

std::string refusal(const std::string& rest) {
  return refusal_of(ExitCode::bad_configuration, [&] { plan(rest); });
}

TEST(ParameterPlan, FirstMatchingRowTakesAParameter) {
  const auto parameters = plan(
      two_optimizers +
      row("*_bank", "b", "lr_multiplier = 0.5\nweight_decay_multiplier = 0.0\ncommunication = 'sharded'\n") +
      row("tok_emb*", "a", "master_dtype = 'bf16'\n") + row("*", "a"));
  int banks = 0;
  for (const PlannedParameter& parameter : parameters) {
    SCOPED_TRACE(parameter.name());
    const bool bank = parameter.name().ends_with("_bank");
    banks += bank;
    EXPECT_EQ(parameter.optimizer, bank ? 1u : 0u);
    EXPECT_EQ(parameter.lr_multiplier, bank ? 0.5 : 1.0);
    EXPECT_EQ(parameter.weight_decay_multiplier, bank ? 0.0 : 1.0);
    EXPECT_EQ(parameter.communication, bank ? Communication::sharded : Communication::replicated);
    EXPECT_EQ(parameter.layout.master, parameter.name() == "tok_emb.weight" ? MLG_BF16 : MLG_F32);
    if (bank) {
      const std::int64_t entries = parameter.layout.spec.type.dims[0];
      EXPECT_EQ(parameter.updated_type(1), parameter.layout.spec.type);
      EXPECT_EQ(parameter.updated_type(4).dims[0], (entries + 3) / 4);
      EXPECT_EQ(parameter.updated_master(1), master_name(parameter.name()));
      EXPECT_NE(parameter.updated_master(4), master_name(parameter.name()));
    } else {
      EXPECT_EQ(parameter.updated_type(4), parameter.layout.spec.type);
      EXPECT_EQ(parameter.updated_gradient(4), gradient_name(parameter.name()));
    }
  }
  EXPECT_EQ(banks, 4);
  EXPECT_EQ(layouts_of(parameters).size(), parameters.size());
}

// The largest first, to and fro: with two ranks the largest and the smallest of four go to one of them.
TEST(ParameterPlan, WholeParametersAreDealtToRanksByTheirSize) {
  auto parameters = plan(two_optimizers + row("*_bank", "b", "communication = 'owner'\n") + row("*", "a"));
  std::erase_if(parameters, [](const PlannedParameter& p) { return !p.name().ends_with("_bank"); });
  ASSERT_EQ(parameters.size(), 4U);
  std::ranges::sort(parameters, {}, &PlannedParameter::turn);
  std::vector<int> two, three;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const PlannedParameter& parameter = parameters[i];
    if (i > 0) {
      EXPECT_LE(parameter.layout.spec.type.elements(), parameters[i - 1].layout.spec.type.elements());
    }
    two.push_back(parameter.owner(2));
    three.push_back(parameter.owner(3));
    EXPECT_EQ(parameter.owner(1), PlannedParameter::everybody);
    EXPECT_FALSE(parameter.is_gathered(1));
    EXPECT_TRUE(parameter.is_gathered(2) && !parameter.is_cut(2));
    EXPECT_EQ(parameter.updated_type(2), parameter.layout.spec.type);
    EXPECT_TRUE(parameter.is_updated_by(two.back(), 2));
    EXPECT_FALSE(parameter.is_updated_by(1 - two.back(), 2));
  }
  EXPECT_EQ(two, (std::vector{0, 1, 1, 0}));
  EXPECT_EQ(three, (std::vector{0, 1, 2, 2}));
}

TEST(ParameterPlan, UnderDdpEveryRankUpdatesEverything) {
  const std::string rows = two_optimizers +
                           row("*_bank", "a", "communication = 'sharded'\ncommunication_dtype = 'bf16'\n") +
                           row("*", "b");
  int cut = 0;
  for (const PlannedParameter& parameter : plan(rows)) cut += parameter.is_cut(2) ? 1 : 0;
  EXPECT_GT(cut, 0);
  for (const PlannedParameter& parameter : plan(rows + "[parallel]\nstrategy = \"ddp\"\n")) {
    EXPECT_FALSE(parameter.is_cut(2)) << parameter.name();
    EXPECT_EQ(parameter.communication_dtype, MLG_F32) << parameter.name();
    EXPECT_EQ(parameter.updated_type(2), parameter.layout.spec.type) << parameter.name();
  }
}

// A row may say that nothing updates its parameters: no optimiser and no slice, in any communication dtype.
TEST(ParameterPlan, NoneIsSaidInPlaceOfAnOptimizer) {
  const auto parameters = plan(two_optimizers + row("skip_*", "none", "communication = 'sharded'\n") +
                               row("*_bank", "b") + row("*", "a"));
  int kept = 0;
  for (const PlannedParameter& parameter : parameters) {
    const bool none = parameter.name().starts_with("skip_");
    EXPECT_EQ(parameter.trained(), !none) << parameter.name();
    EXPECT_TRUE(!none || !parameter.is_cut(2)) << parameter.name();
    kept += none ? 1 : 0;
  }
  EXPECT_EQ(kept, 2);
  EXPECT_TRUE(contains(refusal("[optimizer.none]\nplugin = 'adamw'\nlr = 0.1\n" + row("*", "none")),
                       "give the table another name"));
  // An optimiser that is left with nothing to do is named.
  EXPECT_TRUE(contains(refusal(two_optimizers + row("skip_*", "none") + row("*", "b")), "[optimizer.a]"));
}

// Nothing gives the asymmetric caps a gradient: an optimiser would only decay them.
TEST(ParameterPlan, WhatNoLossDependsOnCanOnlyHaveNone) {
  const std::string caps = "[model.asymmetric_softcap]\nenabled = true\n",
                    rows = "[optimizer.a]\nplugin = 'adamw'\nlr = 0.1\n" + row("*", "a");
  EXPECT_TRUE(contains(refusal(caps + rows), "'softcap_pos'", "no loss of training depends on it"));
  EXPECT_EQ(refusal(caps + row("softcap_*", "none") + rows), "");
}

}  // namespace
}  // namespace mulligan::run_parameter_plan_test
