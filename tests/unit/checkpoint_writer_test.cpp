// The background writer: copies at once, writes later, one at a time, and reports failures without harm.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "framework/checkpoint/checkpoint_writer.h"
#include "tests/support/plugins.h"
#include "tests/unit/checkpoint_support.h"

namespace mulligan::checkpoint_writer_test {
namespace {

namespace fs = std::filesystem;
using test_support::sample_manifest;
using test_support::ScratchFolder;

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

class CheckpointWriterTest : public ::testing::Test {
 protected:
  CheckpointWriterTest() : backend_(make_cpu_backend(1)), store_(*backend_) {
    store_.create("master/w", TensorType(MLG_F32, {16, 16}));
    store_.create("optimizer/v", TensorType(MLG_BF16, {7}));
    fill(1);
  }
  void fill(float value) { store_.upload("master/w", std::vector<float>(256, value)); }

  const std::vector<std::string> names_{"master/w", "optimizer/v"};
  ScratchFolder scratch_;
  std::unique_ptr<Backend> backend_;
  TensorStore store_;
};

TEST_F(CheckpointWriterTest, TheCopyIsTakenAtOnceAndRestoredBitForBit) {
  CheckpointWriter writer(scratch_.path(), 2);
  EXPECT_FALSE(writer.completed());
  EXPECT_FALSE(writer.finish());
  writer.begin(sample_manifest(1), store_, state_tensors_of(names_));
  fill(9);  // training goes on while the disk is written
  EXPECT_EQ(*writer.finish(), scratch_ / "step_00000001");
  EXPECT_FALSE(writer.busy());
  restore_tensors(open_checkpoint(scratch_ / "step_00000001"), store_, state_tensors_of(names_));
  EXPECT_EQ(store_.download_as<float>("master/w"), std::vector<float>(256, 1.0f));
}

TEST_F(CheckpointWriterTest, OnlyTheNewestStay) {
  CheckpointWriter writer(scratch_.path(), 2);
  for (const std::int64_t step : {1, 2, 3}) {
    writer.begin(sample_manifest(step), store_, state_tensors_of(names_));
    writer.finish();
  }
  EXPECT_EQ(list_checkpoints(scratch_.path()).size(), 2u);
  EXPECT_EQ(list_checkpoints(scratch_.path())[0].step, 2);
}

TEST_F(CheckpointWriterTest, ASecondOneIsNotBegunBeforeTheFirstWasAskedFor) {
  CheckpointWriter writer(scratch_.path(), 2);
  writer.begin(sample_manifest(1), store_, state_tensors_of(names_));
  EXPECT_THROW(writer.begin(sample_manifest(2), store_, state_tensors_of(names_)), std::logic_error);
  writer.finish();
}

TEST_F(CheckpointWriterTest, AFullDiskIsToldAndHarmsNoEarlierCheckpoint) {
  CheckpointWriter writer(scratch_.path(), 1);
  writer.begin(sample_manifest(1), store_, state_tensors_of(names_));
  writer.finish();
  {
    const SmallDisk disk(500);
    writer.begin(sample_manifest(2), store_, state_tensors_of(names_));
    const std::string sentence = sentence_of([&] { writer.finish(); });
    EXPECT_TRUE(contains(sentence, "tensors.safetensors"));
    EXPECT_TRUE(contains(sentence, std::strerror(EFBIG)));
  }
  EXPECT_EQ(open_checkpoint(scratch_ / "step_00000001").manifest.step, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_.path()), {}), 1) << "leftovers";
  writer.begin(sample_manifest(3), store_, state_tensors_of(names_));  // there is space again
  EXPECT_TRUE(writer.finish());
}

TEST_F(CheckpointWriterTest, AFolderThatCannotBeMadeIsNamed) {
  CheckpointWriter writer("/proc/no_such_folder", 1);
  writer.begin(sample_manifest(1), store_, state_tensors_of(names_));
  EXPECT_TRUE(contains(sentence_of([&] { writer.finish(); }), "/proc/no_such_folder"));
}

TEST_F(CheckpointWriterTest, TensorsOfAnotherRunAreRefusedBeforeAnythingIsUploaded) {
  CheckpointWriter writer(scratch_.path(), 1);
  writer.begin(sample_manifest(1), store_, state_tensors_of(names_));
  writer.finish();
  const Checkpoint saved = open_checkpoint(scratch_ / "step_00000001");
  fill(5);
  EXPECT_TRUE(contains(sentence_of([&] { restore_tensors(saved, store_, state_tensors_of({"master/w"})); }),
                       "'optimizer/v'"));
  store_.create("master/new", TensorType(MLG_F32, {1}));
  EXPECT_TRUE(
      contains(sentence_of([&] {
                 restore_tensors(saved, store_, state_tensors_of({"master/w", "optimizer/v", "master/new"}));
               }),
               "does not hold the tensor 'master/new'"));
  TensorStore other(*backend_);
  other.create("master/w", TensorType(MLG_BF16, {16, 16}));
  other.create("optimizer/v", TensorType(MLG_BF16, {7}));
  EXPECT_TRUE(contains(sentence_of([&] { restore_tensors(saved, other, state_tensors_of(names_)); }),
                       "as F32 [16, 16]"));
  EXPECT_EQ(store_.download_as<float>("master/w"), std::vector<float>(256, 5.0f));
}

}  // namespace
}  // namespace mulligan::checkpoint_writer_test
