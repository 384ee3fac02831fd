// Paths of a run's configuration are those of the folder it was started in.
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/config/run_config.h"
#include "framework/config/stored_paths.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_start_folder_test {
namespace {

namespace fs = std::filesystem;

const std::string data_section =
    "[data]\ntrain = \"some data/train_*.bin\"\nvalidation = \"data\"\ntokenizer = \"data/t.model\"\n";

// small_config() with this [data] and further sections.
std::string config_with(const std::string& sections) {
  std::string text = kSmallConfig;
  const std::size_t begin = text.find("[data]");
  text.replace(begin, text.find("\n[", begin) + 1 - begin, sections);
  return text;
}

// A run directory that was left by a run started in `folder`.
std::string run_directory(const test_support::ScratchFolder& place, const std::string& folder,
                          const std::string& sections) {
  place.write("runs/tiny/metrics.jsonl", "");
  place.write(std::string("runs/tiny/") + kStartFolderFile, folder + "\n");
  return place.write("runs/tiny/config.toml", config_with(sections));
}

TEST(StartFolder, PathsOfARunAreTakenFromWhereItWasStarted) {
  const test_support::ScratchFolder place;
  place.write("data/x", "");
  const std::string start = fs::path(place.path("")).parent_path().string();
  const std::string file = run_directory(place, start, data_section + "[run]\ndirectory = \"runs/tiny\"\n");
  const LoadedConfig loaded = load_run_config(file);
  EXPECT_EQ(loaded.config.data.train, start + "/some data/train_*.bin");
  EXPECT_EQ(loaded.config.data.validation, start + "/data");
  EXPECT_EQ(loaded.config.data.tokenizer, start + "/data/t.model");
  EXPECT_EQ(loaded.config.run.directory, start + "/runs/tiny");
  EXPECT_EQ(loaded.config.checkpoint.directory, start + "/runs/tiny/checkpoints");
  EXPECT_TRUE(loaded.notes.empty());
  // What is said now is of the current folder, and an artifact next to it is the run's, too.
  const std::vector<std::string> now{"data.validation=other"};
  EXPECT_EQ(load_run_config(file, now).config.data.validation, "other");
  const std::string text = config_with(data_section);
  EXPECT_EQ(parse_saved_config(text, place.path("runs/tiny/artifact.mulligan")).config.data.validation,
            start + "/data");
  EXPECT_EQ(parse_saved_config(text, place.path("artifact.mulligan")).config.data.validation, "data");
  place.write("runs/tiny/mine.toml", text);
  EXPECT_EQ(load_run_config(place.path("runs/tiny/mine.toml")).config.data.validation, "data");
  // As a base of another configuration.
  const std::string over =
      place.write("over.toml", "extends = \"runs/tiny/config.toml\"\n[data]\nvalidation = \"v\"\n");
  EXPECT_EQ(load_run_config(over).config.data.validation, "v");
  EXPECT_EQ(load_run_config(over).config.data.tokenizer, start + "/data/t.model");
}

TEST(StartFolder, AbsolutePathsWordsAndTheCurrentFolderStayAsTheyAre) {
  const test_support::ScratchFolder place;
  const std::string start = fs::path(place.path("")).parent_path().string();
  const std::string file =
      run_directory(place, start, "[data]\ntrain = \"/a\"\nvalidation = \"/b\"\ntokenizer = \"none\"\n");
  const LoadedConfig loaded = load_run_config(file);
  EXPECT_EQ(loaded.config.data.train, "/a");
  EXPECT_EQ(loaded.config.data.tokenizer, "");
  const std::string here = run_directory(place, fs::current_path().string(), data_section);
  EXPECT_EQ(load_run_config(here).config.data.validation, "data");
}

TEST(StartFolder, SignsOfPatternsInItsNameAreNone) {
  const test_support::ScratchFolder place;
  const std::string start = place.path("a [1]*");
  place.write("a [1]*/data/x", "");
  const LoadedConfig loaded = load_run_config(run_directory(place, start, data_section));
  EXPECT_EQ(loaded.config.data.train, place.path("a \\[1]\\*") + "/some data/train_*.bin");
  EXPECT_EQ(loaded.config.data.validation, start + "/data");
  EXPECT_EQ(loaded.config.data.tokenizer, start + "/data/t.model");
}

TEST(StartFolder, AFolderThatIsGoneIsNamed) {
  const test_support::ScratchFolder place;
  const std::string file = run_directory(place, "/gone/away", data_section);
  const LoadedConfig loaded = load_run_config(file);
  EXPECT_EQ(loaded.config.data.validation, "data");
  ASSERT_EQ(loaded.notes.size(), 1U);
  EXPECT_EQ(loaded.notes.front(),
            "the run of '" + file +
                "' was started in '/gone/away', which does not exist any more; its relative "
                "paths are taken from the current folder");
  // Nothing is said where nothing depends on it.
  const std::string absolute =
      "[run]\ndirectory = \"/r\"\n[data]\ntrain = \"/a\"\nvalidation = \"/b\"\ntokenizer = \"/c\"\n";
  EXPECT_TRUE(load_run_config(run_directory(place, "/gone/away", absolute)).notes.empty());
}

TEST(StartFolder, ANoteThatNamesNoFolderIsRefused) {
  const test_support::ScratchFolder place;
  for (const std::string& odd : {std::string("relative"), std::string(), std::string("/a\0b", 4)}) {
    const std::string file = run_directory(place, odd, data_section);
    EXPECT_TRUE(refuses([&] { load_run_config(file); }, ExitCode::bad_data, "names no folder"));
  }
}

}  // namespace
}  // namespace mulligan::config_start_folder_test
