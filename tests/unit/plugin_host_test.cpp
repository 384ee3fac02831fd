// Which library is found for a name, and the sentence for each kind of bad library (tests/unit/bad_plugins).
#include "framework/plugin/plugin_host.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "framework/core/file.h"
#include "framework/plugin/plugin_listing.h"
#include "framework/plugin/schedule.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::plugin_host_test {
namespace {

namespace fs = std::filesystem;

const fs::path kBad = test_support::built("bad_plugins");
fs::path bad_file(const std::string& name) {
  return kBad / ("mulligan_" + name + ".so");
}

// What `action` says when it refuses, in one line.
template <typename Action>
std::string sentence(Action&& action) {
  const std::string text = sentence_of(ExitCode::bad_configuration, action);
  EXPECT_EQ(text.find('\n'), text.npos) << text;
  return text;
}

std::string refusal(const std::string& name) {
  PluginHost host({});
  const std::string text = sentence([&] { host.load(MLG_SCHEDULE, "", bad_file(name)); });
  EXPECT_TRUE(host.loaded().empty());
  EXPECT_TRUE(contains(text, bad_file(name).string()));
  return text;
}

class PluginFolders : public testing::Test {
 protected:
  // A folder holding copies of bad_plugins libraries: {library, file name}.
  fs::path folder(const std::string& name, std::vector<std::pair<std::string, std::string>> files) {
    const fs::path path = root_ / name;
    fs::create_directories(path);
    for (const auto& [library, file] : files) fs::copy_file(bad_file(library), path / file);
    return path;
  }
  const test_support::ScratchFolder scratch_;
  const fs::path root_ = scratch_.path();
};

TEST(PluginRefused, EachKindOfBadLibraryHasItsSentence) {
  for (const auto& [library, says] :
       {std::pair{"wrong_magic", "magic number 0xdeadbeef instead of 0x4e474c4d"},
        {"wrong_major", "was built for plugin ABI 9.0, but this program has ABI 1.0; rebuild it"},
        {"newer_minor", "was built for plugin ABI 1.1, but this program has ABI 1.0; rebuild it"},
        {"short_table", "has a table of 64 bytes, shorter than the 88"},
        {"missing_member", "leaves the required function 'rate' of its table null"},
        {"missing_summary", "leaves name or summary"},
        {"no_function", "is a shared library but not a mulligan plugin"},
        {"null_table", "returned no table from mlg_plugin"}})
    EXPECT_TRUE(contains(refusal(library), says));
}
TEST(PluginRefused, UnresolvedSymbolAtLoadingNotLater) {
  const std::string text = refusal("unresolved_symbol");
  EXPECT_TRUE(contains(
      text, "cannot be loaded",
      "it uses the symbol 'a_function_that_nobody_defines', which neither it nor a library it names defines"));
  EXPECT_FALSE(contains(text, "Bad file descriptor"));
}
TEST(PluginRefused, ThrowingConstructorAndEveryKeyTypeReachesIt) {
  PluginHost host({});
  const PluginHandle plugin = host.load(MLG_SCHEDULE, "", bad_file("throwing_constructor"));
  const PluginConfig defaults = test_plugin_config(plugin, "must = 7");
  EXPECT_TRUE(contains(sentence([&] { Schedule(plugin, defaults); }),
                       "[test]: schedule 'throwing_constructor' (" + fs::canonical(plugin->path()).string() +
                           ") could not be set up: no good: 1 3 1099511627776 0.125 0.5 one 1 2.5 7"));
  const PluginConfig set = test_plugin_config(
      plugin,
      "flag = false\ncount = 10\nbig = -5\nnumber = 2\nsmall = 0.25\nword = 'two'\nlist = [9]\nmust = -1.5");
  EXPECT_TRUE(contains(sentence([&] { Schedule(plugin, set); }), "no good: 0 10 -5 2 0.25 two 9 -1.5"));
}

TEST_F(PluginFolders, FilesThatAreNoLibraries) {
  PluginHost host({});
  const auto text = [&](const fs::path& path) {
    return sentence([&] { host.load(MLG_SCHEDULE, "", path); });
  };
  EXPECT_TRUE(contains(text(root_ / "absent.so"), "cannot be loaded: cannot open shared object file"));
  std::ofstream(root_ / "text.so") << "int main() {}\n";
  EXPECT_TRUE(contains(text(root_ / "text.so"), "cannot be loaded: "));
}

TEST_F(PluginFolders, AStrippedPlainCPluginWorks) {
  PluginHost host({{"--plugin-path", folder("a", {{"plain_c", "mulligan_plain_c.so"}})}});
  const PluginHandle plugin = host.load(MLG_SCHEDULE, "plain_c");
  EXPECT_EQ(plugin->abi(), "1.0");
  EXPECT_EQ(plugin->sha256(), sha256_hex_of_file(bad_file("plain_c")));
  EXPECT_EQ(plugin->path(), fs::canonical(root_ / "a" / "mulligan_plain_c.so"));
  const Schedule schedule(plugin, test_plugin_config(plugin));
  EXPECT_EQ(schedule.rate({5, 10, 0.5, 0.0}, 0.25).lr, 0.25);
  EXPECT_EQ(host.load(MLG_SCHEDULE, "plain_c"), plugin) << "the second call gives the same plugin";
  ASSERT_EQ(host.loaded().size(), 1u);
}

TEST_F(PluginFolders, TwoDifferentLibrariesForOneNameAreRefused) {
  PluginHost host({{"--plugin-path", folder("a", {{"twin_a", "mulligan_twin.so"}})},
                   {"MULLIGAN_PLUGIN_PATH", folder("b", {{"twin_b", "mulligan_twin.so"}})}});
  const std::string text = sentence([&] { host.load(MLG_SCHEDULE, "twin"); });
  EXPECT_TRUE(contains(text, "two different libraries offer the schedule 'twin'",
                       (root_ / "a" / "mulligan_twin.so").string(),
                       (root_ / "b" / "mulligan_twin.so").string()));
}
TEST_F(PluginFolders, ASecondLibraryUnderANameInUseIsRefused) {
  PluginHost host({});
  host.load(MLG_SCHEDULE, "twin", bad_file("twin_a"));
  EXPECT_TRUE(contains(
      sentence([&] { host.load(MLG_SCHEDULE, "twin", bad_file("twin_b")); }),
      "is in use already, and '" + fs::canonical(bad_file("twin_b")).string() + "' has the same name"));
}
TEST_F(PluginFolders, EqualCopiesAreNotDuplicatesAndThePathDecides) {
  const fs::path a = folder("a", {{"twin_a", "mulligan_twin.so"}}),
                 b = folder("b", {{"twin_a", "mulligan_twin.so"}});
  PluginHost copies({{"--plugin-path", a}, {"--plugin-path", b}});
  EXPECT_EQ(copies.load(MLG_SCHEDULE, "twin")->path(), fs::canonical(a / "mulligan_twin.so"));
  PluginHost host(
      {{"--plugin-path", folder("c", {{"twin_a", "mulligan_twin.so"}, {"twin_b", "mulligan_y.so"}})}});
  EXPECT_EQ(host.load(MLG_SCHEDULE, "twin", root_ / "c" / "mulligan_y.so")->summary(), "another test");
}

TEST_F(PluginFolders, NotFoundListsEveryPlaceAndWhy) {
  const fs::path a = folder("a", {{"plain_c", "mulligan_plain_c.so"}});
  PluginHost host({{"--plugin-path", a}, {"MULLIGAN_PLUGIN_PATH", root_ / "gone"}});
  const std::string text = sentence([&] { host.load(MLG_SCHEDULE, "plain_d"); });
  EXPECT_TRUE(contains(text, "there is no schedule plugin 'plain_d' (did you mean 'plain_c'?)",
                       "'" + a.string() + "' (from --plugin-path)",
                       "'" + (root_ / "gone").string() + "' (from MULLIGAN_PLUGIN_PATH: does not exist)"));
}
TEST_F(PluginFolders, ABrokenFileDoesNotHinderOthers) {
  const fs::path a =
      folder("a", {{"plain_c", "mulligan_plain_c.so"}, {"wrong_major", "mulligan_wrong_major.so"}});
  PluginHost host({{"--plugin-path", a}});
  EXPECT_TRUE(
      contains(sentence([&] { host.load(MLG_SCHEDULE, "wrong_major"); }), "was built for plugin ABI 9"));
  EXPECT_EQ(host.load(MLG_SCHEDULE, "plain_c")->name(), "plain_c");
}
TEST_F(PluginFolders, PathOfAnotherKindOrName) {
  PluginHost host({});
  EXPECT_TRUE(contains(sentence([&] { host.load(MLG_OPTIMIZER, "", bad_file("plain_c")); }),
                       "holds the schedule 'plain_c', but a plugin of the kind optimizer is needed here"));
  EXPECT_TRUE(contains(sentence([&] { host.load(MLG_SCHEDULE, "other", bad_file("plain_c")); }),
                       "holds the schedule 'plain_c', but the schedule 'other' is needed here"));
}

TEST_F(PluginFolders, PlacesInOrderAndNeverTheCurrentFolder) {
  const fs::path here = folder("here", {{"plain_c", "mulligan_plain_c.so"}});
  const fs::path before = fs::current_path();
  fs::current_path(here);
  ::setenv("MULLIGAN_PLUGIN_PATH", ":/c::/d:", 1);
  const std::vector<std::string> given{"/a:/b", ""};
  const std::vector<PluginPlace> places = plugin_places(given);
  ::unsetenv("MULLIGAN_PLUGIN_PATH");
  ASSERT_EQ(places.size(), 5u);
  const char* paths[] = {"/a", "/b", "/c", "/d"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(places[i].path, paths[i]);
    EXPECT_EQ(places[i].origin, i < 2 ? "--plugin-path" : "MULLIGAN_PLUGIN_PATH");
  }
  EXPECT_TRUE(places[4].path.is_absolute());
  EXPECT_TRUE(fs::is_directory(places[4].path)) << places[4].path << " holds the plugins of this build";
  PluginHost host(places);
  EXPECT_TRUE(contains(sentence([&] { host.load(MLG_SCHEDULE, "plain_c"); }),
                       "there is no schedule plugin 'plain_c'"));
  fs::current_path(before);
}

TEST_F(PluginFolders, ListingShowsWhatIsUsableAndWhatIsNot) {
  PluginHost host({{"--plugin-path",
                    folder("a", {{"plain_c", "mulligan_plain_c.so"}, {"wrong_magic", "mulligan_w.so"}})}});
  EXPECT_TRUE(contains(list_plugins(host, false), "schedule     plain_c", "unusable     mulligan_w.so: "));
  EXPECT_TRUE(contains(list_plugins(host, true), "\"unusable\""));
  EXPECT_TRUE(contains(sentence([&] { describe_plugin(host, "plainc", false); }), "did you mean 'plain_c'?"));
}
TEST(PluginListing, KeysWithTypeDefaultRangeAndHelp) {
  const std::string text = describe_plugin(test_plugin_host(), "sgdr", false);
  EXPECT_TRUE(contains(text, "schedule 'sgdr': cosine annealing with warm restarts",
                       "period_multiplier  float", "(required)", "step, epoch, budget",
                       "sha256  " + test_plugin_host().load(MLG_SCHEDULE, "sgdr")->sha256()));
  EXPECT_TRUE(contains(describe_plugin(test_plugin_host(), "sgdr", true), "\"required\": true"));
}

// What stands in the program's plugin folder is the program's, by whatever path it is named.
TEST_F(PluginFolders, ALibraryOutsideOfTheProgramsFolderIsTheUsersOwn) {
  const fs::path programs = test_plugin_host().locate(MLG_SCHEDULE, "sgdr");
  EXPECT_EQ(programs.parent_path(), fs::canonical(program_plugin_folder()));
  EXPECT_FALSE(is_own_plugin(programs));
  const fs::path own = folder("own", {{"plain_c", "mulligan_p.so"}});
  EXPECT_TRUE(is_own_plugin(own / "mulligan_p.so"));
  fs::create_symlink(programs, own / "mulligan_linked.so");
  EXPECT_FALSE(is_own_plugin(own / "mulligan_linked.so"));
  fs::copy_file(programs, own / "mulligan_copied.so");
  EXPECT_TRUE(is_own_plugin(own / "mulligan_copied.so"));
}

}  // namespace
}  // namespace mulligan::plugin_host_test
