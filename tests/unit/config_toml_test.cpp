// Reading TOML: origins, extends, merging, overrides, and every sentence about a broken file.
#include <gtest/gtest.h>

#include "framework/config/stored_paths.h"
#include "framework/config/toml_document.h"
#include "tests/support/long_tests.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_toml_test {
namespace {

TEST(ConfigToml, EveryLeafKnowsItsFileAndLine) {
  const ConfigNode tree =
      parse_toml("a = 1\n[b]\nc = true\nd = [1, 2.5]\ne = [\n 'x']\n[b.f]\ng = 'h'\n", "x.toml");
  EXPECT_EQ(tree.find_path("a")->origin.text(), "x.toml:1");
  EXPECT_EQ(tree.find_path("b.c")->origin.text(), "x.toml:3");
  EXPECT_EQ(tree.find_path("b.e")->origin.text(), "x.toml:5");
  EXPECT_EQ(tree.find_path("b.f.g")->origin.text(), "x.toml:8");
  EXPECT_EQ(tree.find_path("a")->value, ConfigValue(int64_t{1}));
  EXPECT_EQ(tree.find_path("b.d")->value, ConfigValue(ConfigValue::Reals{1.0, 2.5}));
  EXPECT_EQ(tree.find_path("b.nothing"), nullptr);
}

TEST(ConfigToml, ExtendsChainsMergeTablesAndReplaceListsWithOriginsKept) {
  const test_support::ScratchFolder folder;
  folder.write("bases/root.toml", "[m]\na = 1\nb = 2\nlist = ['x', 'y']\n[[rows]]\nk = 1\n[[rows]]\nk = 2\n");
  folder.write("middle.toml", "extends = 'bases/root.toml'\n[m]\nb = 3\n");
  const ConfigNode tree = read_toml(
      folder.write("leaf.toml", "extends = 'middle.toml'\n[m]\nlist = ['z']\nc = 4\n[[rows]]\nk = 9\n"));
  EXPECT_EQ(tree.find("extends"), nullptr);
  EXPECT_EQ(tree.find_path("m.a")->value, ConfigValue(int64_t{1}));
  EXPECT_EQ(tree.find_path("m.a")->origin.text(), folder.path("bases/root.toml") + ":2");
  EXPECT_EQ(tree.find_path("m.b")->value, ConfigValue(int64_t{3}));
  EXPECT_EQ(tree.find_path("m.b")->origin.text(), folder.path("middle.toml") + ":3");
  EXPECT_EQ(tree.find_path("m.list")->value, ConfigValue(ConfigValue::Strings{"z"}));
  EXPECT_EQ(tree.find_path("m.c")->origin.text(), folder.path("leaf.toml") + ":4");
  ASSERT_EQ(tree.find("rows")->rows.size(), 1u);
  EXPECT_EQ(tree.find("rows")->rows[0].find("k")->value, ConfigValue(int64_t{9}));
}

// Or a variant would train into its base's directory.
TEST(ConfigToml, WhereTheBasesRunLiesIsNotInherited) {
  const test_support::ScratchFolder folder;
  folder.write("root.toml",
               "[run]\nname = 'root'\nseed = 3\ndirectory = 'far/root'\n[checkpoint]\ndirectory = 'c'\n");
  folder.write("middle.toml", "extends = 'root.toml'\n[run]\nname = 'middle'\n");
  const ConfigNode middle = read_toml(folder.path("middle.toml"));
  EXPECT_EQ(middle.find_path("run.name")->value, ConfigValue("middle"));
  EXPECT_EQ(middle.find_path("run.directory"), nullptr);
  const ConfigNode leaf = read_toml(folder.write("leaf.toml", "extends = 'middle.toml'\n"));
  EXPECT_EQ(leaf.find_path("run.name"), nullptr);
  EXPECT_EQ(leaf.find_path("checkpoint.directory"), nullptr);
  EXPECT_EQ(leaf.find_path("run.seed")->value, ConfigValue(int64_t{3}));
  EXPECT_EQ(read_toml(folder.path("root.toml")).find_path("run.directory")->value, ConfigValue("far/root"));
}

TEST(ConfigToml, NamingAnotherPluginDropsTheOldPluginsKeys) {
  const test_support::ScratchFolder folder;
  folder.write("base.toml", "[loss]\nplugin = 'a'\nold = 1\n[schedule]\nplugin = 's'\nkept = 2\n");
  const ConfigNode tree = read_toml(folder.write(
      "child.toml", "extends = 'base.toml'\n[loss]\nplugin = 'b'\n[schedule]\nplugin = 's'\nmore = 3\n"));
  EXPECT_EQ(tree.find_path("loss.old"), nullptr);
  EXPECT_EQ(tree.find_path("schedule.kept")->value, ConfigValue(int64_t{2}));
  EXPECT_EQ(tree.find_path("schedule.more")->value, ConfigValue(int64_t{3}));
}

// Rows such as [[quantize.tensors]] are the host's, not the old plugin's.
TEST(ConfigToml, AnOverrideOfThePluginDropsTheOldKeysButKeepsOtherOverridesAndRows) {
  ConfigNode tree = parse_toml("[q]\nplugin = 'a'\nold = 1\n[[q.rows]]\nx = 1\n", "x.toml");
  apply_overrides(tree, std::vector<std::string>{"q.new=2", "q.plugin=b", "q.rows.0.x=2"});
  EXPECT_EQ(tree.find_path("q.old"), nullptr);
  EXPECT_EQ(tree.find_path("q.new")->value, ConfigValue(int64_t{2}));
  const ConfigNode* rows = tree.find_path("q.rows");
  ASSERT_NE(rows, nullptr);
  ASSERT_EQ(rows->rows.size(), 1U);
  EXPECT_EQ(rows->rows[0].find("x")->value, ConfigValue(int64_t{2}));
}

// What comes inside a data file is read alone.
TEST(ConfigToml, StoredTextNeitherExtendsNorNamesLibraries) {
  EXPECT_NE(parse_stored_toml("[loss]\nplugin = 'a'\n", "x").find("loss"), nullptr);
  EXPECT_THROW(parse_stored_toml("extends = 'y.toml'\n", "x"), Error);
  EXPECT_THROW(parse_stored_toml("\"\\u0065xtends\" = 'y.toml'\n", "x"), Error);
  EXPECT_THROW(parse_stored_toml("[loss]\nplugin = '../z'\n", "x"), Error);
}

// Paths of code and of output are marked; what a user says on top counts again.
TEST(ConfigToml, StoredPathsAreMarkedUntilAnOverrideReplacesThem) {
  ConfigNode tree = parse_stored_toml(
      "[loss]\nplugin = 'a'\npath = '/z.so'\nown = 3\nword = 'x'\nfile = '../y'\n"
      "[backend]\ncache = 'c'\n[[backend.kernels]]\nmatch = 'k'\npath = 'k.ptx'\n"
      "[ttt]\naudit = 'weights.safetensors'\n[data]\ntrain = 'a/b.bin'\n",
      "x.toml");
  const auto stored = [&](const char* key) {
    return tree.find_path(key)->origin.kind == Origin::Kind::stored;
  };
  for (const char* key : {"loss.path", "loss.file", "backend.cache", "ttt.audit"})
    EXPECT_TRUE(stored(key)) << key;
  for (const char* key : {"loss.plugin", "loss.own", "loss.word", "data.train"})
    EXPECT_FALSE(stored(key)) << key;
  // The path of the same plugin: its keys stay.
  apply_overrides(tree, std::vector<std::string>{"loss.path=/mine.so", "backend.cache=here"});
  EXPECT_FALSE(stored("loss.path"));
  EXPECT_EQ(tree.find_path("loss.own")->value, ConfigValue(int64_t{3}));
  const std::vector<std::string> notes = drop_stored_paths(tree);
  EXPECT_EQ(notes.size(), 2U);  // the kernel and the audit log
  EXPECT_EQ(tree.find("backend")->find("kernels"), nullptr);
  EXPECT_EQ(tree.find_path("backend.cache")->value, ConfigValue("here"));
  EXPECT_EQ(tree.find("ttt")->find("audit"), nullptr);
}

// A run's own file may name its audit log, if by a name that no other kind of file has.
TEST(ConfigToml, ARunsOwnAuditLogIsItsOwn) {
  for (const auto& [name, kept] : std::vector<std::pair<std::string, bool>>{
           {"order.jsonl", true}, {"weights.safetensors", false}, {"../order.jsonl", false}}) {
    ConfigNode tree = parse_stored_toml("[ttt]\naudit = '" + name + "'\n", "run/config.toml");
    allow_audit_log(tree);
    EXPECT_EQ(drop_stored_paths(tree).empty(), kept) << name;
    EXPECT_EQ(tree.find("ttt")->find("audit") != nullptr, kept) << name;
  }
}

TEST(ConfigToml, OverridesAreTypedAndBareWordsAreStrings) {
  ConfigNode tree = parse_toml("[a]\ni = 1\n", "x.toml");
  apply_overrides(
      tree, std::vector<std::string>{"a.i=2", "a.r=0.5", "a.b=true", "a.q=\"text\"", "a.w=data/x y*.bin",
                                     "a.l=[1, 2]", "a.s=a=b", "new.deep.k=1"});
  EXPECT_EQ(tree.find_path("a.i")->value, ConfigValue(int64_t{2}));
  EXPECT_EQ(tree.find_path("a.i")->origin.text(), "--set");
  EXPECT_EQ(tree.find_path("a.r")->value, ConfigValue(0.5));
  EXPECT_EQ(tree.find_path("a.b")->value, ConfigValue(true));
  EXPECT_EQ(tree.find_path("a.q")->value, ConfigValue("text"));
  EXPECT_EQ(tree.find_path("a.w")->value, ConfigValue("data/x y*.bin"));
  EXPECT_EQ(tree.find_path("a.l")->value, ConfigValue(ConfigValue::Reals{1, 2}));
  EXPECT_EQ(tree.find_path("a.s")->value, ConfigValue("a=b"));
  EXPECT_EQ(tree.find_path("new.deep.k")->value, ConfigValue(int64_t{1}));
}

TEST(ConfigToml, AnOverrideReachesARowOfAList) {
  ConfigNode tree = parse_toml("[[rows]]\nk = 1\n[[rows]]\nk = 2\n", "x.toml");
  apply_overrides(tree, std::vector<std::string>{"rows.1.k=7"});
  EXPECT_EQ(tree.find("rows")->rows[0].find("k")->value, ConfigValue(int64_t{1}));
  EXPECT_EQ(tree.find("rows")->rows[1].find("k")->value, ConfigValue(int64_t{7}));
  const auto set = [&](const char* text) {
    return error_of([&] { apply_overrides(tree, std::vector<std::string>{text}); });
  };
  EXPECT_EQ(set("rows.2.k=7"), "--set: 'rows' has no row '2'; its rows are 0 to 1.");
  EXPECT_EQ(set("rows.x.k=7"), "--set: 'rows' has no row 'x'; its rows are 0 to 1.");
}

TEST(ConfigToml, AMalformedOverrideIsRefused) {
  ConfigNode tree = parse_toml("", "x.toml");
  for (const std::string text : {"a.b", "=1", ".a=1", "a.=1", "a..b=1"}) {
    EXPECT_EQ(error_of([&] { apply_overrides(tree, std::vector<std::string>{text}); }),
              "--set " + text + ": an override has the form section.key=value.");
  }
}

TEST(ConfigToml, SentencesAboutBrokenFilesNameFileAndLine) {
  const auto parse = [](const std::string& text) { return error_of([&] { parse_toml(text, "x.toml"); }); };
  EXPECT_EQ(parse("a = 1\nb = = 2\n").substr(0, 42), "x.toml:2: the file is not valid TOML: Erro");
  EXPECT_EQ(parse("a = 1\na = 2\n").substr(0, 38), "x.toml:2: the file is not valid TOML: ");
  // toml++ itself meets these with undefined behaviour.
  for (const char* line : {"[.b]", "[[,]]", "[=]", "b = \u00e9", "b = 8\u049d"})
    EXPECT_TRUE(contains(parse("a = 1\n" + std::string(line) + "\n"), ": the file is not valid TOML: "));
  EXPECT_EQ(parse("\nd = 1979-05-27\n"),
            "x.toml:2: 'd' is a date or time, which no key takes; write it as a string.");
  EXPECT_EQ(parse("l = [1, 'x']\n"),
            "x.toml:1: the list 'l' must hold only numbers, only strings, or only tables.");
  EXPECT_EQ(parse("l = [[1], [2]]\n"),
            "x.toml:1: the list 'l' must hold only numbers, only strings, or only tables.");
  EXPECT_EQ(parse("[t]\n\"a.b\" = 1\n"),
            "x.toml:2: the quoted key \"a.b\" is empty or contains a dot; write tables as [a.b] instead.");
  EXPECT_EQ(parse("extends = 3\n"), "x.toml:1: 'extends' must be the path of one TOML file, as a string.");
}

TEST(ConfigToml, SentencesAboutMissingFilesAndCircles) {
  const test_support::ScratchFolder folder;
  const auto read = [](const std::string& path) { return error_of([&] { read_toml(path); }); };
  const std::string missing = folder.path("no.toml");
  EXPECT_EQ(read(missing), "no configuration file '" + missing + "'; give the path of a TOML file.");
  const std::string child = folder.write("child.toml", "\nextends = 'no.toml'\n");
  EXPECT_EQ(read(child),
            child + ":2: no configuration file '" + missing + "'; give the path of a TOML file.");
  const std::string a = folder.write("a.toml", "extends = 'b.toml'\n");
  const std::string b = folder.write("b.toml", "extends = 'sub/../a.toml'\n");
  EXPECT_EQ(read(a), b + ":1: '" + a + "' extends itself through a circle of 'extends'; remove one of them.");
}

TEST(ConfigToml, AChainOfExtendsIsNotEndless) {
  const test_support::ScratchFolder folder;
  const auto last_of = [&](int files) {
    std::string last = folder.write("0.toml", "a = 1\n");
    for (int i = 1; i < files; ++i) {
      last = folder.write(fmt::format("{}.toml", i), fmt::format("extends = '{}.toml'\n", i - 1));
    }
    return last;
  };
  EXPECT_NO_THROW(read_toml(last_of(32)));
  // A reader that followed it to its end would find nothing wrong; the long one would take the stack as well.
  const int files = long_tests() ? 20'000 : 100;
  const std::string last = last_of(files);
  EXPECT_EQ(error_of([&] { read_toml(last); }),
            folder.path(fmt::format("{}.toml", files - 32)) +
                ":1: this is the 33th file of a chain of 'extends', more than there may be; shorten it.");
}

TEST(ConfigToml, DotsOfCommentsDoNotCount) {
  const std::string dots(5000, '.');
  EXPECT_NO_THROW(parse_toml("# " + dots + "\na = 1  # " + dots + "\n", "x.toml"));
  EXPECT_TRUE(contains(error_of([&] { parse_toml("a = '# " + dots + "'\n", "x.toml"); }), "5000 dots"));
  EXPECT_TRUE(
      contains(error_of([&] { parse_toml("a = \"\"\"\n# " + dots + "\"\"\"\n", "x.toml"); }), "5000 dots"));
}

TEST(ConfigToml, AnOverrideIsUtf8) {
  ConfigNode tree = parse_toml("a = 1\n", "x.toml");
  const std::vector<std::string> broken = {"run.name=\xff\x1b[2J"};
  EXPECT_EQ(error_of([&] { apply_overrides(tree, broken); }),
            "--set run.name=\xff\\x1b[2J: this is not valid UTF-8; a configuration is text in UTF-8.");
  const std::vector<std::string> sound = {"run.name=\xc3\xbc"};
  EXPECT_NO_THROW(apply_overrides(tree, sound));
}

TEST(ConfigToml, PrintedValuesReadBackAsTheyWere) {
  const std::vector<ConfigValue> values = {ConfigValue(true),
                                           ConfigValue(int64_t{-7}),
                                           ConfigValue(1.0),
                                           ConfigValue(0.1),
                                           ConfigValue(1e-8),
                                           ConfigValue(1e300),
                                           ConfigValue("q\"\\\n\tx"),
                                           ConfigValue(std::string("\x01")),
                                           ConfigValue("\xc3\xa4"),
                                           ConfigValue(ConfigValue::Reals{1.0, 8.156554524902461}),
                                           ConfigValue(ConfigValue::Strings{"a", "b, c"})};
  for (const ConfigValue& value : values) {
    const std::string text = "k = " + to_toml(value);
    EXPECT_EQ(parse_toml(text, "x.toml").find("k")->value, value) << text;
  }
}

}  // namespace
}  // namespace mulligan::config_toml_test
