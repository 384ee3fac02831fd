// Plugin tables: keys that a plugin declares at run time, the SDK's view of them, and the refusals.
#include "framework/config/plugin_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "framework/config/toml_document.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_plugin_test {
namespace {

constexpr mlg_key kRows[] = {
    {"beta1", MLG_KEY_FLOAT, "0.9", 0, 1, nullptr, "first moment's decay"},
    {"steps", MLG_KEY_INT, "5", 1, 20, nullptr, "iterations"},
    {"nesterov", MLG_KEY_BOOL, "true", 0, 0, nullptr, "look ahead"},
    {"kind", MLG_KEY_STRING, "\"polar\"", 0, 0, "polar|plain", "coefficients"},
    {"table", MLG_KEY_FLOAT_LIST, "[1, 2.5]", -HUGE_VAL, HUGE_VAL, nullptr, "numbers"},
};

PluginTable read(const std::string& text) {
  const ConfigNode tree = parse_toml(text, "conf/x.toml");
  return read_plugin_table(tree.find("loss"), "loss", "conf/x.toml", "standard");
}

PluginConfig resolve(const std::string& text) {
  return resolve_plugin_keys(read(text), "p", key_specs("p", kRows));
}

TEST(ConfigPlugin, ValuesDefaultsAndOriginsReachTheSdkView) {
  const PluginConfig config = resolve("[loss]\nplugin = 'p'\nbeta1 = 0.95\nkind = 'plain'\n");
  const mlg_config* view = config.view();
  const auto get = [&](const char* name, mlg_key_type type) { return view->get(view->self, name, type); };
  EXPECT_EQ(get("beta1", MLG_KEY_FLOAT).number, 0.95);
  EXPECT_EQ(get("steps", MLG_KEY_INT).integer, 5);
  EXPECT_EQ(get("nesterov", MLG_KEY_BOOL).integer, 1);
  EXPECT_STREQ(get("kind", MLG_KEY_STRING).text, "plain");
  const mlg_setting table = get("table", MLG_KEY_FLOAT_LIST);
  ASSERT_EQ(table.count, 2u);
  EXPECT_EQ(table.list[1], 2.5);
  EXPECT_EQ(config.settings().at("beta1").origin.text(), "conf/x.toml:3");
  EXPECT_EQ(config.settings().at("steps").origin.text(), "default");
}

TEST(ConfigPluginDeathTest, ReadingAnUndeclaredKeyAbortsWithItsName) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const PluginConfig config = resolve("[loss]\nplugin = 'p'\n");
  const mlg_config* view = config.view();
  EXPECT_DEATH(view->get(view->self, "nothing", MLG_KEY_INT),
               "plugin of table 'loss' declares no key 'nothing' of type int");
  EXPECT_DEATH(view->get(view->self, "beta1", MLG_KEY_INT), "declares no key 'beta1' of type int");
}

TEST(ConfigPlugin, ErrorsOfThePluginsKeysReadLikeThoseOfCoreKeys) {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { resolve("[loss]\nplugin = 'p'\n" + text); });
  };
  EXPECT_EQ(refusal("beta_1 = 0.5\n"),
            "conf/x.toml:3: unknown key 'loss.beta_1'; did you mean 'loss.beta1'?");
  EXPECT_EQ(refusal("plugn = 'a'\n"), "conf/x.toml:3: unknown key 'loss.plugn'; did you mean 'loss.plugin'?");
  EXPECT_EQ(refusal("beta1 = 2\n"), "conf/x.toml:3: 'loss.beta1' is 2, but must be 0 to 1.");
  EXPECT_EQ(refusal("[loss.sub]\nk = 1\n"),
            "conf/x.toml:4: unknown key 'loss.sub.k'; see docs/configuration.md or 'mulligan plugins NAME' "
            "for the keys there are.");
}

TEST(ConfigPlugin, TheDefaultPluginStandsWhereNoneIsNamed) {
  EXPECT_EQ(read("").plugin, "standard");
  EXPECT_EQ(read("[loss]\nx = 1\n").plugin, "standard");
  EXPECT_EQ(read("[loss]\nplugin = 'other'\n").plugin, "other");
}

TEST(ConfigPlugin, APathIsTakenFromTheFolderOfItsFileAndStandsForTheName) {
  const PluginTable table = read("[loss]\npath = '../lib/mine.so'\n");
  EXPECT_EQ(table.plugin, "");
  EXPECT_EQ(table.path, (std::filesystem::current_path() / "lib/mine.so").string());
}

TEST(ConfigPlugin, ATableWithoutPluginOrDefaultIsRefused) {
  const ConfigNode tree = parse_toml("\n[o]\nx = 1\n", "x.toml");
  EXPECT_EQ(
      error_of([&] { read_plugin_table(tree.find("o"), "o", "x.toml", ""); }),
      "x.toml:2: the table [o] names no plugin; add plugin = \"NAME\" ('mulligan plugins' lists them).");
}

TEST(ConfigPlugin, SomethingElseThanATableIsRefused) {
  EXPECT_EQ(error_of([&] { read("loss = 'p'\n"); }),
            "conf/x.toml:1: 'loss' must be a table, not \"p\"; write [loss].");
}

TEST(ConfigPlugin, BrokenDeclarationsAreThePluginsMistake) {
  const auto declare = [](mlg_key row) { return error_of([&] { key_specs("p", {&row, 1}); }); };
  EXPECT_TRUE(contains(declare({nullptr, MLG_KEY_INT, "1", 0, 1, nullptr, ""}),
                       "the key '' of type 2, which is not"));
  EXPECT_TRUE(contains(declare({"k", 77, "1", 0, 1, nullptr, ""}), "the key 'k' of type 77, which is not"));
  EXPECT_EQ(declare({"k", MLG_KEY_INT, "9", 0, 1, nullptr, ""}),
            "plugin 'p', default of its key 'k':1: 'k' is 9, but must be 0 to 1.");
  EXPECT_TRUE(
      contains(declare({"k", MLG_KEY_STRING, "polar", 0, 0, nullptr, ""}), "default of its key 'k':1: t"));
  const mlg_key twice[] = {kRows[0], kRows[0]},
                host_key = {"path", MLG_KEY_STRING, "\"\"", 0, 0, nullptr, ""},
                required = {"k", MLG_KEY_INT, nullptr, 0, 9, nullptr, "the number of things"};
  EXPECT_TRUE(contains(error_of([&] { key_specs("p", twice); }), "declares the key 'beta1' twice"));
  const auto resolve_one = [&](const mlg_key& row) {
    return error_of([&] {
      resolve_plugin_keys(read("[loss]\nplugin = 'p'\n"), "p", key_specs("p", {&row, 1}));
    });
  };
  EXPECT_TRUE(
      contains(resolve_one(host_key), "declares the key 'path', which the host itself reads in [loss]"));
  EXPECT_EQ(
      resolve_one(required),
      "conf/x.toml: the required key 'loss.k' is missing (the number of things); set it to an integer.");
}

}  // namespace
}  // namespace mulligan::config_plugin_test
