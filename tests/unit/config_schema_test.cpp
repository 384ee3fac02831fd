// The schema engine: binding, checks, and each of its sentences.
#include "framework/config/schema.h"

#include <gtest/gtest.h>

#include "framework/config/toml_document.h"
#include "tests/unit/config_testing.h"

namespace mulligan {
namespace config_schema_test {
namespace {

enum class Color { red, blue };

}  // namespace
}  // namespace config_schema_test

template <>
inline constexpr auto config_words<config_schema_test::Color> = std::array{"red", "blue"};

namespace config_schema_test {
namespace {

struct Inner {
  double rate = 0.5;
};

struct Outer {
  bool flag = true;
  int64_t count = 3;
  std::string name = "n";
  ConfigValue::Reals reals = {1.0};
  ConfigValue::Strings strings;
  Color color = Color::blue;
  int64_t half = 0;
  Inner inner;
};

void declare_keys(Schema<Inner>& s) {
  s.key("rate", &Inner::rate, "a rate").range(0, 1);
}

void declare_keys(Schema<Outer>& s) {
  s.key("flag", &Outer::flag, "a flag");
  s.key("count", &Outer::count, "a count").range(1, 128);
  s.key("name", &Outer::name, "a name");
  s.key("reals", &Outer::reals, "numbers").at_least(0);
  s.key("strings", &Outer::strings, "words");
  s.key("color", &Outer::color, "a color");
  s.key("half", &Outer::half, "half of count").derived("count / 2");
  s.section("inner", &Outer::inner);
}

Outer parse(const std::string& text, Settings* settings = nullptr,
            const std::vector<std::string>& sets = {}) {
  ConfigNode tree = parse_toml(text, "x.toml");
  apply_overrides(tree, sets);
  Outer outer;
  const Settings resolved = read_keys(outer, &tree, "", "x.toml");
  if (settings != nullptr) *settings = resolved;
  return outer;
}

std::string refusal(const std::string& text, const std::vector<std::string>& sets = {}) {
  return error_of([&] { parse(text, nullptr, sets); });
}

TEST(ConfigSchema, EveryTypeIsStoredWithItsOrigin) {
  Settings settings;
  const Outer outer = parse(
      "flag = false\ncount = 7\nname = 'x'\nreals = [1, 2]\nstrings = ['a']\ncolor = 'red'\n[inner]\nrate = "
      "1\n",
      &settings);
  EXPECT_FALSE(outer.flag);
  EXPECT_EQ(outer.count, 7);
  EXPECT_EQ(outer.name, "x");
  EXPECT_EQ(outer.reals, (ConfigValue::Reals{1, 2}));
  EXPECT_EQ(outer.strings, ConfigValue::Strings{"a"});
  EXPECT_EQ(outer.color, Color::red);
  EXPECT_EQ(outer.inner.rate, 1.0);  // an integer where a number is asked for
  EXPECT_EQ(settings.at("inner.rate").origin.text(), "x.toml:8");
  EXPECT_EQ(settings.where("inner.rate"), "'inner.rate' (x.toml:8)");
}

TEST(ConfigSchema, AnEmptyListFitsListsOfNumbersAndOfStrings) {
  EXPECT_TRUE(parse("reals = []\nstrings = []\n").reals.empty());
}

TEST(ConfigSchema, DerivedValuesAreTakenBackWithTheirOrigin) {
  Settings settings;
  Outer outer = parse("count = 8\n", &settings);
  outer.half = outer.count / 2;
  schema_of<Outer>().refresh(outer, settings);
  EXPECT_EQ(settings.at("half").value, ConfigValue(int64_t{4}));
  EXPECT_EQ(settings.at("half").origin.text(), "derived");
  EXPECT_EQ(settings.at("count").origin.text(), "x.toml:1");
}

TEST(ConfigSchema, ADerivedKeyKeepsItsValueUnlessItIsWritten) {
  Outer outer;
  outer.count = outer.half = 5;
  const ConfigNode tree = parse_toml("name = 'x'\n", "x.toml");
  read_keys(outer, &tree, "", "x.toml");
  EXPECT_EQ(outer.half, 5);
  EXPECT_EQ(outer.count, 3) << "a plain key that is not written has its default";
  const ConfigNode written = parse_toml("half = 7\n", "x.toml");
  read_keys(outer, &written, "", "x.toml");
  EXPECT_EQ(outer.half, 7);
}

TEST(ConfigSchema, WrongTypes) {
  EXPECT_EQ(refusal("count = 'a'\n"), "x.toml:1: 'count' must be an integer, not \"a\".");
  EXPECT_EQ(refusal("count = 1.5\n"), "x.toml:1: 'count' must be an integer, not 1.5.");
  EXPECT_EQ(refusal("flag = 1\n"), "x.toml:1: 'flag' must be true or false, not 1.");
  EXPECT_EQ(refusal("name = 3\n"), "x.toml:1: 'name' must be a string, not 3.");
  EXPECT_EQ(refusal("reals = ['a']\n"), "x.toml:1: 'reals' must be a list of numbers, not [\"a\"].");
  EXPECT_EQ(refusal("strings = 'a'\n"), "x.toml:1: 'strings' must be a list of strings, not \"a\".");
  EXPECT_EQ(refusal("[inner]\nrate = true\n"), "x.toml:2: 'inner.rate' must be a number, not true.");
  EXPECT_EQ(refusal("[count]\n"), "x.toml:1: 'count' must be an integer, not a table.");
  EXPECT_EQ(refusal("[[count]]\n"), "x.toml:1: 'count' must be an integer, not a list of tables.");
  EXPECT_EQ(refusal("inner = 3\n"),
            "x.toml:1: 'inner' is a table of keys and cannot be 3; write [inner] instead.");
}

TEST(ConfigSchema, ValuesOutOfRange) {
  EXPECT_EQ(refusal("count = 0\n"), "x.toml:1: 'count' is 0, but must be 1 to 128.");
  EXPECT_EQ(refusal("[inner]\nrate = 1.5\n"), "x.toml:2: 'inner.rate' is 1.5, but must be 0 to 1.");
  EXPECT_EQ(refusal("[inner]\nrate = nan\n"), "x.toml:2: 'inner.rate' is nan, but must be 0 to 1.");
  EXPECT_EQ(refusal("reals = [1, -2]\n"), "x.toml:1: 'reals' is [1.0, -2.0], but must be >= 0.");
  EXPECT_EQ(refusal("reals = [inf]\n"), "x.toml:1: 'reals' is [inf], but must be >= 0.");
  EXPECT_EQ(refusal("color = 'green'\n"), "x.toml:1: 'color' is \"green\", but must be one of: red, blue.");
}

TEST(ConfigSchema, OverridesAreCheckedLikeTheFile) {
  EXPECT_EQ(refusal("", {"count=abc"}), "--set: 'count' must be an integer, not \"abc\".");
  EXPECT_EQ(refusal("", {"count=0"}), "--set: 'count' is 0, but must be 1 to 128.");
  EXPECT_EQ(refusal("", {"inner.rat=1"}), "--set: unknown key 'inner.rat'; did you mean 'inner.rate'?");
  EXPECT_EQ(parse("", nullptr, {"name=42"}).name, "42");
  EXPECT_EQ(parse("", nullptr, {"name=true"}).name, "true");
  EXPECT_EQ(parse("", nullptr, {"name=\"quoted\""}).name, "quoted");
}

TEST(ConfigSchema, MissingRequiredKeysSayWhatTheyAre) {
  KeySpec key;
  key.name = "width";
  key.type = ValueType::integer;
  key.is_required = true;
  key.help = "model width";
  EXPECT_EQ(error_of([&] {
              resolve_keys({&key, 1}, nullptr, "model", "x.toml");
            }),
            "x.toml: the required key 'model.width' is missing (model width); set it to an integer.");
}

TEST(ConfigSchema, NearestNameNeedsAResemblance) {
  const std::vector<std::string> names = {"model.layers", "model.width", "train.steps"};
  EXPECT_EQ(nearest_name("modle.layers", names), "model.layers");
  EXPECT_EQ(nearest_name("layers", names), "model.layers");
  EXPECT_EQ(nearest_name("zzz", names), "");
}

}  // namespace
}  // namespace config_schema_test
}  // namespace mulligan
