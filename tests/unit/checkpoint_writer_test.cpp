// Checkpoint folders: what is written reads back, and damage is refused in favour of the one before. Writing in the background.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/core/file.h"
#include "tests/support/plugins.h"
#include "tests/unit/checkpoint_support.h"

namespace mulligan::checkpoint_writer_test {
namespace {

namespace fs = std::filesystem;
using test_support::sample_manifest;
using test_support::ScratchFolder;
using test_support::write_sample;

// Files of this process cannot grow beyond `bytes` while it lives: to a writer, the disk is full.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    signal_before_ = std::signal(SIGXFSZ, SIG_IGN);  // write() then fails in place of the process
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }

 private:
  rlimit before_{};
  void (*signal_before_)(int) = nullptr;
};

std::vector<StateTensor> state_tensors_of(const std::vector<std::string>& names) {
  std::vector<StateTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, name});
  return tensors;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class CheckpointWriterTest : public ::testing::Test {
 protected:
  CheckpointWriterTest() : backend_(make_cpu_backend(1)), store_(*backend_) {
    store_.create("master/w", TensorType(MLG_F32, {16, 16}));
    store_.create("optimizer/v", TensorType(MLG_BF16, {7}));
    fill(1);
  }
  void fill(float value) { store_.upload("master/w", std::vector<float>(256, value)); }

  const std::vector<StateTensor> state_ = state_tensors_of({"master/w", "optimizer/v"});
  ScratchFolder scratch_;
  std::unique_ptr<Backend> backend_;
  TensorStore store_;
};

TEST_F(CheckpointWriterTest, TheCopyIsTakenAtOnceAndRestoredBitForBit) {
  CheckpointWriter writer(scratch_.path(), 2);
  EXPECT_FALSE(writer.completed());
  EXPECT_FALSE(writer.finish());
  writer.begin(sample_manifest(1), store_, state_);
  EXPECT_THROW(writer.begin(sample_manifest(2), store_, state_), std::logic_error);
  fill(9);  // training goes on while the disk is written
  EXPECT_EQ(*writer.finish(), scratch_ / "step_00000001");
  EXPECT_FALSE(writer.busy());
  restore_tensors(open_checkpoint(scratch_ / "step_00000001"), store_, state_);
  EXPECT_EQ(store_.download_as<float>("master/w"), std::vector<float>(256, 1.0f));
}

TEST_F(CheckpointWriterTest, AFullDiskIsToldAndHarmsNoEarlierCheckpoint) {
  CheckpointWriter writer(scratch_.path(), 1);
  writer.begin(sample_manifest(1), store_, state_);
  writer.finish();
  {
    const SmallDisk disk(500);
    writer.begin(sample_manifest(2), store_, state_);
    EXPECT_TRUE(refuses([&] { writer.finish(); }, "tensors.safetensors", std::strerror(EFBIG)));
  }
  EXPECT_EQ(open_checkpoint(scratch_ / "step_00000001").manifest.step, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_.path()), {}), 1) << "leftovers";
  writer.begin(sample_manifest(3), store_, state_);  // there is space again
  EXPECT_TRUE(writer.finish());
  EXPECT_EQ(names_in(scratch_.path()),
            std::vector<std::string>{"step_00000003"});  // of one that is to be kept
  CheckpointWriter nowhere("/proc/no_such_folder", 1);
  nowhere.begin(sample_manifest(1), store_, state_);
  EXPECT_TRUE(refuses([&] { nowhere.finish(); }, "/proc/no_such_folder"));
}

TEST_F(CheckpointWriterTest, TensorsOfAnotherRunAreRefusedBeforeAnythingIsUploaded) {
  CheckpointWriter writer(scratch_.path(), 1);
  writer.begin(sample_manifest(1), store_, state_);
  writer.finish();
  const Checkpoint saved = open_checkpoint(scratch_ / "step_00000001");
  fill(5);
  EXPECT_TRUE(
      refuses([&] { restore_tensors(saved, store_, state_tensors_of({"master/w"})); }, "'optimizer/v'"));
  store_.create("master/new", TensorType(MLG_F32, {1}));
  EXPECT_TRUE(refuses(
      [&] {
        restore_tensors(saved, store_, state_tensors_of({"master/w", "optimizer/v", "master/new"}));
      },
      "does not hold the tensor 'master/new'"));
  TensorStore other(*backend_);
  other.create("master/w", TensorType(MLG_BF16, {16, 16}));
  other.create("optimizer/v", TensorType(MLG_BF16, {7}));
  EXPECT_TRUE(refuses([&] { restore_tensors(saved, other, state_); }, "as F32 [16, 16]"));
  EXPECT_EQ(store_.download_as<float>("master/w"), std::vector<float>(256, 5.0f));
}

TEST(CheckpointManifest, OtherVersionsMissingKeysAndWrongTypesAreNamed) {
  std::string text = to_json(sample_manifest(7));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    copy.replace(copy.find(from), from.size(), to);
    return sentence_of([&] { manifest_from_json(copy, "m.json"); });
  };
  EXPECT_TRUE(contains(changed("\"format_version\": 2", "\"format_version\": 3"), "version 3"));
  EXPECT_TRUE(
      contains(changed("\"consumed_spans\"", "\"consumed_span\""), "'data.consumed_spans' is missing"));
  EXPECT_TRUE(contains(changed("\"step\": 7", "\"step\": -7"), "'step' is -7"));
  EXPECT_TRUE(contains(changed("\"phase\": \"looped\"", "\"phase\": 1"), "'progress.phase'"));
  EXPECT_TRUE(refuses([] { manifest_from_json("{]", "m.json"); }, "m.json"));
}

TEST(CheckpointManifest, ALossThatIsNoNumberIsNotWritten) {
  CheckpointManifest manifest = sample_manifest(7);
  manifest.loss.run.loss_sum_nats = NAN;
  EXPECT_TRUE(refuses([&] { to_json(manifest); }, "loss_sum_nats"));
}

class CheckpointFolder : public ::testing::Test {
 protected:
  const ScratchFolder scratch;
};

TEST_F(CheckpointFolder, WhatIsWrittenReadsBack) {
  const fs::path path = write_sample(scratch.path(), 12);
  EXPECT_EQ(path.filename(), "step_00000012");
  EXPECT_EQ(names_in(scratch.path()), std::vector<std::string>{"step_00000012"});
  const Checkpoint read = open_checkpoint(path);
  CheckpointManifest expected = sample_manifest(12);
  expected.files = read.manifest.files;
  EXPECT_EQ(read.manifest, expected);
  EXPECT_EQ(read.tensors.at("master/w").copy<float>(), std::vector<float>(64, 12.5f));
  EXPECT_EQ(read.tensors.at("optimizer/m").type, MLG_BF16);
  EXPECT_EQ(read.manifest.files.at(0).sha256, sha256_hex_of_file(path / checkpoint_tensors_file));
}

// The manifest covers the tensors, its sum the manifest. Every fifth byte meets every key, value and tensor.
TEST_F(CheckpointFolder, AnyChangedByteIsRefused) {
  const fs::path path = write_sample(scratch.path(), 3);
  std::size_t positions = 0;
  for (const std::string& name : names_in(path)) {
    const fs::path file = path / name;
    const std::string sound = read_file(file);
    for (std::size_t at = 0; at < sound.size(); at += 5) {
      std::string damaged = sound;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      std::ofstream(file, std::ios::binary) << damaged;
      const std::string sentence = sentence_of([&] { open_checkpoint(path); });
      ASSERT_FALSE(sentence.empty()) << name << ", byte " << at;
      ASSERT_TRUE(contains(sentence, "step_00000003"));
      ++positions;
    }
    std::ofstream(file, std::ios::binary) << sound;
  }
  EXPECT_GT(positions, 400u);
  open_checkpoint(path);  // restored
}

TEST_F(CheckpointFolder, ShortLongAndMissingFilesAreRefused) {
  for (const char* name : {"manifest.json", "manifest.json.sha256", "tensors.safetensors"}) {
    const fs::path file = write_sample(scratch.path(), 3) / name;
    const auto size = fs::file_size(file);
    for (const auto other : {size - 1, size + 1, std::uintmax_t{0}}) {
      fs::resize_file(file, other);
      EXPECT_FALSE(sentence_of([&] { open_checkpoint(file.parent_path()); }).empty()) << name << " " << other;
    }
    fs::remove(file);
    EXPECT_TRUE(refuses([&] { open_checkpoint(file.parent_path()); }, name));
    fs::remove_all(file.parent_path());
  }
}

TEST_F(CheckpointFolder, TheNewestSoundOneIsTaken) {
  std::vector<std::string> damaged;
  EXPECT_FALSE(newest_sound_checkpoint(scratch / "nothing", damaged));
  for (const std::int64_t step : {10, 20, 30}) write_sample(scratch.path(), step);
  EXPECT_EQ(newest_sound_checkpoint(scratch.path(), damaged)->manifest.step, 30);
  EXPECT_TRUE(damaged.empty());
  fs::resize_file(scratch / "step_00000030/tensors.safetensors", 100);
  fs::remove(scratch / "step_00000020/manifest.json");
  EXPECT_EQ(newest_sound_checkpoint(scratch.path(), damaged)->manifest.step, 10);
  ASSERT_EQ(damaged.size(), 2u);
  EXPECT_TRUE(contains(damaged[0], "step_00000030"));
  fs::remove_all(scratch / "step_00000010");
  EXPECT_TRUE(refuses([&] { newest_sound_checkpoint(scratch.path(), damaged); }, "none of the 2"));
}

TEST_F(CheckpointFolder, UnfinishedFoldersAreNoCheckpoints) {
  fs::create_directories(scratch / ".writing_step_00000040");
  fs::create_directories(scratch / "step_40");
  fs::create_directories(scratch / "step_0000004x");
  fs::create_directories(scratch / "set_aside_step_00000050");
  std::ofstream(scratch / "step_00000041") << "a file";
  EXPECT_TRUE(list_checkpoints(scratch.path()).empty());
  remove_checkpoint_leftovers(scratch.path());
  EXPECT_FALSE(fs::exists(scratch / ".writing_step_00000040"));
  EXPECT_TRUE(fs::exists(scratch / "step_40"));
}

TEST_F(CheckpointFolder, OldOnesGoAndLaterOnesAreSetAside) {
  for (const std::int64_t step : {1, 2, 3, 4}) write_sample(scratch.path(), step);
  keep_newest_checkpoints(scratch.path(), 3);
  EXPECT_EQ(names_in(scratch.path()),
            (std::vector<std::string>{"step_00000002", "step_00000003", "step_00000004"}));
  set_aside_later_checkpoints(scratch.path(), 3);
  write_sample(scratch.path(), 4);
  set_aside_later_checkpoints(scratch.path(), 3);
  EXPECT_EQ(names_in(scratch.path()),
            (std::vector<std::string>{"set_aside_2_step_00000004", "set_aside_step_00000004", "step_00000002",
                                      "step_00000003"}));
}

TEST_F(CheckpointFolder, AUserMayNameACheckpointOrARun) {
  write_sample(scratch / "run/checkpoints", 1);
  write_sample(scratch / "run/checkpoints", 2);
  EXPECT_EQ(find_checkpoint(scratch / "run").manifest.step, 2);
  EXPECT_EQ(find_checkpoint(scratch / "run/checkpoints").manifest.step, 2);
  EXPECT_EQ(find_checkpoint(scratch / "run/checkpoints/step_00000001").manifest.step, 1);
  EXPECT_TRUE(refuses([&] { find_checkpoint(scratch.path()); }, "neither"));
}

}  // namespace
}  // namespace mulligan::checkpoint_writer_test
