// The [ttt] section: optional, with its plugin tables, and the rules between its keys.
#include "framework/config/ttt_config.h"

#include <gtest/gtest.h>

#include "framework/config/run_config.h"
#include "tests/unit/config_testing.h"

namespace mulligan::ttt_config_test {
namespace {

constexpr const char* kOptimizer = "[ttt.optimizer]\nlr = 1e-4\n";
const std::string kTable = std::string("[ttt]\n") + kOptimizer;

LoadedConfig load(const std::string& more, const std::vector<std::string>& sets = {}) {
  return parse_run_config(kSmallConfig + more, "conf/small.toml", sets);
}

std::string refusal(const std::string& more, const std::vector<std::string>& sets = {}) {
  return error_of([&] { load(more, sets); });
}

TEST(TttConfig, TablesHaveDefaultsAndComeAfterTheOptimizers) {
  const LoadedConfig loaded =
      load(std::string("[ttt]\nprefix_documents = 20\n") + kOptimizer + "[ttt.base]\nlr = 2e-3\n");
  const TttSection& ttt = *loaded.config.ttt;
  EXPECT_EQ(ttt.config.chunk_tokens, 48);
  EXPECT_EQ(ttt.config.prefix_documents, 20);
  EXPECT_EQ(ttt.adapters.plugin, "doc_lora");
  EXPECT_EQ(ttt.optimizer.plugin, "adamw");
  EXPECT_EQ(ttt.lr, 1e-4);
  ASSERT_TRUE(ttt.base.has_value());
  EXPECT_EQ(ttt.base->plugin, "global_sgd");
  EXPECT_EQ(ttt.base_optimizer->plugin, "sgd");
  EXPECT_EQ(plugin_sections(loaded),
            (std::vector<std::string>{"backend", "loss", "schedule", "optimizer.all", "ttt.adapters",
                                      "ttt.optimizer", "ttt.base", "ttt.base.optimizer"}));
}

TEST(TttConfig, AScoreTransformHasAnOrder) {
  EXPECT_FALSE(load(kTable).config.ttt->transform.has_value());
  const LoadedConfig plain = load(kTable + "[ttt.transform]\n");
  EXPECT_EQ(plain.config.ttt->transform->plugin, "ngram_tilt");
  EXPECT_EQ(plain.config.ttt->transform_order, TransformOrder::queue);
  EXPECT_EQ(plugin_sections(plain).back(), "ttt.transform");
  for (const TransformOrder order : {TransformOrder::queue, TransformOrder::document, TransformOrder::file}) {
    const std::string word = word_of(order);
    EXPECT_EQ(load(kTable + "[ttt.transform]\ntext_order = '" + word + "'\n").config.ttt->transform_order,
              order);
  }
  EXPECT_TRUE(contains(refusal(kTable + "[ttt.transform]\ntext_order = 'random'\n"), "text_order"));
}

TEST(TttConfig, TheRateHasAFactor) {
  EXPECT_EQ(load(kTable).config.ttt->lr, 1e-4);
  EXPECT_DOUBLE_EQ(load(kTable + "lr_multiplier = 0.75\n").config.ttt->lr, 0.75e-4);
  EXPECT_TRUE(contains(refusal(kTable + "lr_multiplier = -1.0\n"), "lr_multiplier"));
}

// The momentum of the base model's optimiser has one place, [ttt.base]: resolved keys and listings have no other.
TEST(TttConfig, TheBaseOptimizerLeavesTheMomentumToTheBase) {
  const std::string table = kTable + "[ttt.base]\n[ttt.base.optimizer]\nplugin = 'p'\n";
  const mlg_key rows[] = {{"momentum", MLG_KEY_FLOAT, "0.9", 0, 1, nullptr, "of the buffer"},
                          {"decay", MLG_KEY_FLOAT, "0.1", 0, 1, nullptr, "of the weights"}};
  const auto resolve = [&](LoadedConfig loaded) {
    resolve_plugins(loaded, [&](mlg_kind, const PluginTable& plugin) -> std::optional<PluginKeys> {
      if (plugin.section != "ttt.base.optimizer") return std::nullopt;
      return PluginKeys{"p", key_specs("p", rows)};
    });
    return loaded;
  };
  const LoadedConfig resolved = resolve(load(table + "decay = 0.5\n"));
  const Settings& settings = resolved.plugin("ttt.base.optimizer").settings();
  EXPECT_EQ(settings.at("decay").value.as<double>(), 0.5);
  EXPECT_EQ(settings.find("momentum"), nullptr);
  const std::string sentence = sentence_of([&] { resolve(load(table + "momentum = 0.5\n")); });
  EXPECT_TRUE(contains(sentence, "ttt.base.optimizer.momentum is what [ttt.base] says"));
}

TEST(TttConfig, RefusesWhatContradicts) {
  EXPECT_TRUE(contains(refusal("[ttt]\n"), "ttt.optimizer.lr"));
  EXPECT_TRUE(contains(refusal(kTable, {"ttt.prefix_documents=5"}), "[ttt.base]"));
  EXPECT_TRUE(contains(refusal(kTable, {"ttt.chunk_limits=[10, 20]", "ttt.chunk_sizes=[4]"}), "2 entries"));
  EXPECT_TRUE(
      contains(refusal(kTable, {"ttt.chunk_limits=[20, 10]", "ttt.chunk_sizes=[4, 8]"}), "does not ascend"));
  EXPECT_TRUE(contains(refusal(kTable, {"ttt.chunk_limits=[20]", "ttt.chunk_sizes=[4.5]"}), "whole number"));
  EXPECT_TRUE(contains(refusal(kTable, {"ttt.context_tokens=40"}), "hold a whole chunk"));
  EXPECT_TRUE(contains(refusal(kTable, {"ttt.audit='../a.jsonl'"}), "bare file name"));
  EXPECT_TRUE(contains(refusal(kTable, {"ttt.chunk_token=3"}), "chunk_tokens"));
}

}  // namespace
}  // namespace mulligan::ttt_config_test
