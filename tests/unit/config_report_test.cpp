// The resolved file reads back to the same configuration; differences and origins are shown.
#include "framework/config/config_report.h"

#include <gtest/gtest.h>

#include "tests/unit/config_testing.h"

namespace mulligan::config_report_test {
namespace {

LoadedConfig load(const std::vector<std::string>& sets = {}) {
  return parse_run_config(kSmallConfig, "small.toml", sets);
}

// A source that declares one key for every optimiser.
void resolve(LoadedConfig& loaded) {
  resolve_plugins(loaded, [](mlg_kind kind, const PluginTable& table) {
    PluginKeys found{table.plugin, {}};
    KeySpec beta;
    beta.name = "beta";
    beta.type = ValueType::real;
    beta.default_value = ConfigValue(0.9);
    if (kind == MLG_OPTIMIZER) found.keys.push_back(beta);
    return found;
  });
}

TEST(ConfigReport, EveryKeyIsPrintedWithItsOrigin) {
  LoadedConfig loaded = load({"train.steps=20"});
  const std::string before = print_resolved(loaded);
  EXPECT_FALSE(contains(before, "beta = 0.9"));
  resolve(loaded);
  const std::string text = print_resolved(loaded);
  for (const char* part : {"\n[model]\nfamily = \"record\"", "\n[model.rope]\ndims = 8",
                           "\n[optimizer.all]\nplugin = \"adamw\"", "\n[[parameters]]\nmatch = \"*\"",
                           "# small.toml:7\n", "# --set\n", "# default\n", "# derived\n", "beta = 0.9"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\nin\n" << text;
  }
}

TEST(ConfigReport, TheResolvedFileReadsBackToTheSameConfiguration) {
  LoadedConfig first = load(
      {"loss.path=libs/mine.so", "data.train=a \"quoted\" path", "optimizer.all.schedule.plugin=cosine"});
  resolve(first);
  LoadedConfig second = parse_run_config(print_resolved(first), "elsewhere/resolved.toml");
  resolve(second);
  EXPECT_EQ(format_differences(diff_configs(first, second)), "");
  EXPECT_EQ(second.config.loss.path, first.config.loss.path);
}

TEST(ConfigReport, DifferencesNameKeyAndBothSides) {
  LoadedConfig left = load();
  LoadedConfig right = load({"model.layers=6", "optimizer.all.beta=0.5", "optimizer.b.plugin=sgd",
                             "optimizer.b.lr=1", "parameters.0.lr_multiplier=2"});
  resolve(left);
  resolve(right);
  EXPECT_EQ(format_differences(diff_configs(left, right)),
            "model.layers: 4 -> 6\n"
            "model.xsa_last_layers: 4 -> 6\n"
            "optimizer.all.beta: 0.9 -> 0.5\n"
            "optimizer.b.beta: (none) -> 0.9\n"
            "optimizer.b.lr: (none) -> 1.0\n"
            "optimizer.b.plugin: (none) -> \"sgd\"\n"
            "parameters.0.lr_multiplier: 1.0 -> 2.0\n");
  EXPECT_TRUE(diff_configs(left, left).empty());
}

}  // namespace
}  // namespace mulligan::config_report_test
