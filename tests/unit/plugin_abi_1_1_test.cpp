// Plugins built with the headers of ABI 1.1 go on working: the host neither reads nor expects what
// they cannot know.
#include <gtest/gtest.h>

#include "framework/check/plugin_check.h"
#include "framework/plugin/loss.h"
#include "framework/plugin/optimizer.h"
#include "framework/plugin/schedule.h"
#include "tests/support/plugins.h"

namespace mulligan {
namespace {

PluginHandle old_plugin(PluginKind kind, const std::string& name) {
  return test_plugin_host().load(
      kind, name, std::filesystem::path(MULLIGAN_OLD_PLUGIN_DIRECTORY) / ("mulligan_" + name + ".so"));
}

TEST(PluginAbi11, AScheduleChangesNothingButTheRate) {
  const PluginHandle plugin = old_plugin(PluginKind::schedule, "old_schedule");
  EXPECT_EQ(plugin->abi(), "1.1");
  const Schedule schedule(plugin, test_plugin_config(plugin));
  for (const std::int64_t step : {0, 5}) {
    const mlg_rate rate = schedule.rate({step, 10, 0, 0}, 0.4);
    EXPECT_EQ(rate.lr, step < 2 ? 0.4 : 0.2);
    EXPECT_EQ(rate.momentum_factor, 1);
    EXPECT_EQ(rate.weight_decay_factor, 1);
    EXPECT_EQ(rate.batch_factor, 1);
  }
}

TEST(PluginAbi11, AnOptimizerHasNoEvaluationWeightsAndALossReadsNoHiddenState) {
  const PluginHandle optimizer = old_plugin(PluginKind::optimizer, "old_optimizer");
  EXPECT_FALSE(Optimizer(optimizer, test_plugin_config(optimizer)).has_evaluation_weights());
  const PluginHandle loss = old_plugin(PluginKind::loss, "old_loss");
  EXPECT_FALSE(Loss(loss, test_plugin_config(loss)).reads_hidden());
}

TEST(PluginAbi11, AllPassTheirChecks) {
  for (const auto& [kind, name] :
       {std::pair{PluginKind::schedule, "old_schedule"}, std::pair{PluginKind::optimizer, "old_optimizer"},
        std::pair{PluginKind::loss, "old_loss"}}) {
    const CheckList list = check_plugin(test_plugin_host(), old_plugin(kind, name));
    for (const CheckLine& line : list.lines()) {
      EXPECT_EQ(line.problem, "") << name << ": " << line.what;
    }
  }
}

}  // namespace
}  // namespace mulligan
