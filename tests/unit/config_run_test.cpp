// RunConfig: derived values, plugin tables, the parameter table, every rule between keys with its sentence, and the printed file.
#include "framework/config/run_config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "framework/config/config_report.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_run_test {
namespace {

LoadedConfig load(const std::vector<std::string>& sets = {}, const std::string& more = {}) {
  return parse_run_config(kSmallConfig + more, "conf/small.toml", sets);
}

std::string refusal(const std::vector<std::string>& sets) {
  return error_of([&] { load(sets); });
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

TEST(ConfigRun, DerivedValuesFollowFromOtherKeys) {
  const RunConfig config = load().config;
  EXPECT_EQ(config.run.name, "small");
  EXPECT_EQ(config.run.directory, "runs/small");
  EXPECT_EQ(config.model.kv_heads, 4);
  EXPECT_EQ(config.model.head_width, 8);
  EXPECT_EQ(config.model.mlp_hidden, 128);
  EXPECT_EQ(config.model.rope.dims, 8);
  EXPECT_EQ(config.model.xsa_last_layers, 4);
  EXPECT_EQ(load({"run.name=other"}).config.run.directory, "runs/other");
  EXPECT_EQ(load().core.at("model.head_width").origin.text(), "derived");
  EXPECT_EQ(load({"model.head_width=8"}).core.at("model.head_width").origin.text(), "--set");
}

// A plugin's name replaces the file's table, but no setting of the same command.
TEST(ConfigRun, SettingsOfSeveralOriginsAreOneTable) {
  const std::string file = testing::TempDir() + "settings_of_several_origins.toml";
  std::ofstream(file) << kSmallConfig;
  const std::vector<std::string> set = {"backend.cache=here"};
  const std::vector<SettingsFrom> more = {
      {Origin::command_line("--architecture"), {"backend.architecture=sm_80"}},
      {Origin::command_line("--out"), {"backend.plugin=cuda"}}};
  const ConfigNode keys = load_run_config(file, set, more).config.backend.keys;
  EXPECT_NE(keys.find("architecture"), nullptr);
  EXPECT_NE(keys.find("cache"), nullptr);
}

// The adaptive coder knows rows and roles by itself; orders made for general compressors would be lost on it.
TEST(ConfigRun, StreamsByRoleAreForGeneralCompressors) {
  const std::string quantize = "[quantize]\n[[quantize.tensors]]\nmatch = '*'\nformat = 'fp16'\n";
  const QuantizeOptions plain = load({}, quantize).config.quantize->options;
  EXPECT_EQ(plain.compression, Compression::brotli);
  EXPECT_EQ(plain.streams, CodeStreams::width);
  const QuantizeOptions ordered =
      load({"quantize.streams=role_ordered", "quantize.compression=zlib"}, quantize).config.quantize->options;
  EXPECT_EQ(ordered.streams, CodeStreams::role_ordered);
  EXPECT_EQ(load({"quantize.compression=adaptive"}, quantize).config.quantize->options.compression,
            Compression::adaptive);
  const std::string refused = error_of([&] {
    load({"quantize.compression=adaptive", "quantize.streams=role"}, quantize);
  });
  EXPECT_TRUE(contains(refused, "leave it \"width\""));
}

TEST(ConfigRun, PluginTablesHaveDefaultsAndOptimizersTheirOwnSchedules) {
  const LoadedConfig loaded = load({},
                                   "[optimizer.own]\nplugin = 'muon'\nlr = 0.5\nmomentum = "
                                   "0.9\n[optimizer.own.schedule]\nplugin = 'cosine'\n");
  const RunConfig& config = loaded.config;
  EXPECT_EQ(config.backend.plugin, "cpu");
  EXPECT_EQ(config.loss.plugin, "softcap_ce");
  EXPECT_EQ(config.schedule.plugin, "warmdown");
  ASSERT_EQ(config.optimizers.size(), 2u);
  EXPECT_EQ(config.optimizers[0].lr, 0.01);
  EXPECT_FALSE(config.optimizers[0].schedule.has_value());
  EXPECT_EQ(config.optimizers[1].table.section, "optimizer.own");
  EXPECT_EQ(config.optimizers[1].schedule->plugin, "cosine");
  EXPECT_EQ(plugin_sections(loaded), (std::vector<std::string>{"backend", "loss", "schedule", "optimizer.all",
                                                               "optimizer.own", "optimizer.own.schedule"}));
}

TEST(ConfigRun, ACommunicatorIsThereWhereItIsWritten) {
  EXPECT_FALSE(load().config.communicator.has_value());
  const LoadedConfig loaded = load({}, "[communicator]\nplugin = 'gloo'\ntimeout = 5\n");
  EXPECT_EQ(loaded.config.communicator->plugin, "gloo");
  EXPECT_EQ(plugin_sections(loaded).at(3), "communicator");
  EXPECT_TRUE(contains(refusal({"communicator.timeout=5"}), "names no plugin"));
}

TEST(ConfigRun, ResolvePluginsAsksOncePerTableAndKeepsTheValues) {
  LoadedConfig loaded = load({"optimizer.all.beta=0.5"});
  resolve(loaded);
  EXPECT_EQ(loaded.plugin("optimizer.all").settings().at("beta").value, ConfigValue(0.5));
  EXPECT_EQ(loaded.plugin("loss").plugin(), "softcap_ce");
  EXPECT_THROW(loaded.plugin("optimizer.none"), std::logic_error);
  LoadedConfig wrong = load({"loss.block=1"});
  EXPECT_EQ(error_of([&] {
              resolve_plugins(wrong, [](mlg_kind, const PluginTable& table) {
                return PluginKeys{table.plugin, {}};
              });
            }),
            "--set: unknown key 'loss.block'; see docs/configuration.md or 'mulligan plugins NAME' for the "
            "keys there are.");
}

TEST(ConfigRun, ParameterRowsKeepTheirOrderAndOrigin) {
  const LoadedConfig loaded = load({"parameters.0.match=tok*"},
                                   "[[parameters]]\nmatch = '*'\noptimizer = 'all'\nmaster_dtype = 'bf16'\n"
                                   "communication = 'sharded'\nlr_multiplier = 2\n");
  ASSERT_EQ(loaded.config.parameters.size(), 2u);
  EXPECT_EQ(loaded.config.parameters[0].match, "tok*");
  EXPECT_EQ(loaded.config.parameters[1].master_dtype, MLG_BF16);
  EXPECT_EQ(loaded.config.parameters[1].communication, Communication::sharded);
  EXPECT_EQ(loaded.config.parameters[1].lr_multiplier, 2.0);
  EXPECT_EQ(loaded.config.parameters[1].origin.text(), "conf/small.toml:19");
}

TEST(ConfigRun, UnknownKeysAreFoundInEveryKindOfTable) {
  for (
      const auto& [more, said] : std::vector<std::pair<std::string, std::string>>{
          {"[modle]\nlayers = 1\n",
           "conf/small.toml:20: unknown key 'modle.layers'; did you mean 'model.layers'?"},
          {"[optimiser.x]\nlr = 1\n", "unknown key 'optimiser.x.lr'; did you mean 'optimizer'?"},
          {"[model.loop]\nfrist = 1\n", "unknown key 'model.loop.frist'; did you mean 'model.loop.first'?"},
          {"[[parameters]]\nmatch = 'x'\noptimizr = 'all'\n", "did you mean 'parameters.optimizer'?"},
          {"[[parameters]]\nmatch = 'x'\n",
           "conf/small.toml:19: the required key 'parameters.optimizer' is missing (NAME of the [optimizer.NAME]"}})
    EXPECT_TRUE(contains(error_of([&] { load({}, more); }), said));
}

// Settings that break a rule between keys, and what is said of it.
TEST(ConfigRun, RulesBetweenKeys) {
  using Rule = std::pair<std::vector<std::string>, std::string>;
  for (
      const auto& [sets, said] : std::vector<Rule>{
          {{"optimizer.lr=1"},
           "'optimizer.lr' stands directly in [optimizer]; put it into a table [optimizer.NAME]."},
          {{"optimizer=adamw"}, "--set: 'optimizer' must be written as tables [optimizer.NAME]."},
          {{"parameters=1"}, "--set: 'parameters' must be written as rows [[parameters]]."},
          {{"optimizer.all.schedule=cosine"}, "'optimizer.all.schedule' must be a table, not \"cosine\""},
          {{"optimizer.b.plugin=sgd"}, "conf/small.toml: the required key 'optimizer.b.lr' is missing"},
          {{"parameters.0.optimizer=nobody"}, "\"nobody\" names no [optimizer.NAME] table; there are: all;"},
          {{"model.heads=5"},
           "'model.width' (conf/small.toml:8) is 32, but 'model.heads' (--set) times 'model.head_width' (derived) is "
           "30; choose a width that is heads * head_width."},
          {{"model.kv_heads=3"}, "is 4, which 'model.kv_heads' (--set) = 3 does not divide"},
          {{"model.width=12"}, "'model.head_width' (derived) is 3, but must be even"},
          {{"model.rope.dims=3"}, "is 3, but must be even and at most 'model.head_width' (derived) = 8."},
          {{"model.rope.dims=10"}, "is 10, but must be even and at most 'model.head_width' (derived) = 8."},
          {{"model.xsa_last_layers=5"},
           "is 5, but there are only 'model.layers' (conf/small.toml:7) = 4 layers"},
          {{"model.loop.extra_passes=1", "model.loop.first=2", "model.loop.last=4"},
           "(--set) = 2 to 'model.loop.last' (--set) = 4 does not lie in the layers 0 to 3"},
          {{"model.loop.extra_passes=1", "model.loop.first=2"}, "the loop"},
          {{"model.lanes.parallel_start=4"},
           "is 4, but the last layer of 'model.layers' (conf/small.toml:7) is 3"},
          {{"model.skip_weights=false"},
           "'model.skip_gates' (default) is on, but 'model.skip_weights' (--set) is off"},
          {{"train.micro_batches=3"}, "is 256, which 'train.micro_batches' (--set) = 3 does not divide"},
          {{"train.tokens_per_step=4294967296", "train.micro_batches=2"},
           "rows of more than 16777216 tokens each"},
          {{"train.steps=0"}, "'train.budget_seconds' (default) and 'train.steps' (--set) are both 0"},
          {{"train.budget_seconds=2", "train.reserve_seconds=2"},
           "must be less than 'train.budget_seconds' (--set) = 2."},
          {{"eval.mode=sliding", "eval.sequence_length=32"},
           "'eval.stride' (default) is 64, but a window has only"},
          {{"eval.shares=8", "eval.mode=sliding"}, "windows are not cut into shares; leave it out."},
          {{"eval.shares=8", "eval.drop_remainder=true"}, "which cuts the text by the number of ranks"},
          {{"ema.from_step=3"}, "but 'ema.decay' (default) is 0, so there is none; set it."},
          {{"ema.decay=0.9", "ema.from_step=3", "ema.until_step=3"},
           "begins after update 'ema.from_step' (--set) = 3"}})
    EXPECT_TRUE(contains(refusal(sets), said));
}

TEST(ConfigRun, AnAverageMayBegin) {
  const std::string emptied = "\n[[phase]]\nuntil_steps = 2\n[[phase]]\nreset_optimizer = true\n";
  EXPECT_TRUE(contains(error_of([&] {
                         load({"ema.decay=0.75", "ema.from_step=3"}, emptied);
                       }),
                       "resets the optimisers"));
  const LoadedConfig late = load({"ema.decay=0.75", "ema.from_step=3"});
  EXPECT_TRUE(blends_scores(late.config));
  EXPECT_FALSE(scores_averages(late.config));
  EXPECT_TRUE(scores_averages(load({"ema.decay=0.9"}).config));
}

TEST(ConfigRun, MicroBatchesOfRanksAreNotBlamedOnTheUser) {
  const ScratchFolder place;
  const std::string file = place.write("run.toml", kSmallConfig);
  const std::string sentence = error_of([&] { load_run_config(file, {}, std::vector{for_ranks(7)}); });
  EXPECT_TRUE(contains(sentence, "'train.micro_batches' (derived from the number of ranks)"));
  const LoadedConfig loaded = load_run_config(file, {}, std::vector{for_ranks(1)});
  EXPECT_EQ(loaded.config.train.micro_batches, 1);
}

TEST(ConfigRun, AWrapperIsAPluginTable) {
  EXPECT_FALSE(load().config.wrapper);
  const RunConfig config = load({"wrapper.plugin=ema_nesterov"}).config;
  EXPECT_TRUE(blends_scores(config));
  EXPECT_EQ(plugin_tables(config).back().table->section, "wrapper");
  EXPECT_TRUE(contains(refusal({"wrapper.lookahead=0.3"}), "[wrapper] names no plugin"));
}

TEST(ConfigRun, ARunNeedsAnOptimizerAndAParameterRow) {
  const std::string text = kSmallConfig;
  for (const auto& [table, said] : {std::pair{"[[parameters]]", "there is no [[parameters]] row; add one"},
                                    {"[optimizer.all]", "there is no [optimizer.NAME] table; add one"}})
    EXPECT_TRUE(
        contains(error_of([&] { parse_run_config(text.substr(0, text.find(table)), "x.toml"); }), said));
}

TEST(ConfigReport, EveryKeyIsPrintedWithItsOrigin) {
  LoadedConfig loaded = load({"train.steps=20"});
  EXPECT_FALSE(contains(print_resolved(loaded), "beta = 0.9"));
  resolve(loaded);
  EXPECT_TRUE(contains(print_resolved(loaded), "\n[model]\nfamily = \"record\"", "\n[model.rope]\ndims = 8",
                       "\n[optimizer.all]\nplugin = \"adamw\"", "\n[[parameters]]\nmatch = \"*\"",
                       "# conf/small.toml:7\n", "# --set\n", "# default\n", "# derived\n", "beta = 0.9"));
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

const std::vector<std::string> kNames = {"tok_emb.weight", "qo_bank", "kv_bank", "blocks.0.attn_scale",
                                         "blocks.10.attn.q_gain"};

std::vector<ParameterRow> rows(const std::vector<std::string>& patterns) {
  std::vector<ParameterRow> result;
  for (const std::string& pattern : patterns) {
    ParameterRow row;
    row.match = pattern;
    row.origin = {Origin::Kind::file, "x.toml", static_cast<int>(result.size()) + 1};
    result.push_back(row);
  }
  return result;
}

TEST(ConfigParameterTable, TheFirstMatchingRowTakesAParameter) {
  EXPECT_EQ(resolve_parameter_table(kNames, rows({"tok_emb*", "*_bank", "blocks.*.q_gain", "*"})),
            (std::vector<size_t>{0, 1, 1, 3, 2}));
  EXPECT_EQ(resolve_parameter_table(kNames, rows({"[qk]?_bank", "*"})), (std::vector<size_t>{1, 0, 0, 1, 1}));
}

TEST(ConfigParameterTable, RowsThatTakeNothingAndParametersWithoutARowAreRefused) {
  const auto refused = [](const std::vector<std::string>& patterns) {
    return error_of([&] { resolve_parameter_table(kNames, rows(patterns)); });
  };
  EXPECT_TRUE(
      contains(refused({"tok_embedding", "*"}), "x.toml:1:", "\"tok_embedding\" matches no parameter"));
  EXPECT_TRUE(contains(refused({"*", "*_bank"}),
                       "x.toml:2:", "since the row \"*\" (x.toml:1) before it takes 'qo_bank'"));
  EXPECT_TRUE(contains(refused({"tok_emb*", "*_bank"}),
                       "'blocks.0.attn_scale' is matched by no row of [[parameters]]"));
}

}  // namespace
}  // namespace mulligan::config_run_test
