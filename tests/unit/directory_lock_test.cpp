// Locks of folders.
#include "framework/core/directory_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::directory_lock_test {
namespace {

namespace fs = std::filesystem;
using test_support::ScratchFolder;
using Kind = DirectoryLock::Kind;

std::string refusal(const fs::path& folder, Kind kind = Kind::exclusive) {
  return refusal_of(ExitCode::bad_configuration, [&] { const DirectoryLock lock(folder, "second", kind); });
}

TEST(DirectoryLock, OneAtATimeAndTheSecondIsToldWho) {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "run";
  {
    const DirectoryLock lock(folder, "train");
    EXPECT_EQ(lock.warning(), "");
    const std::string sentence = refusal(folder);
    EXPECT_TRUE(contains(sentence, fmt::format("mulligan train, process {} on host", getpid())));
    EXPECT_TRUE(contains(sentence, " UTC; wait"));
    EXPECT_TRUE(contains(sentence, "network file system"));
    EXPECT_NE(refusal(folder, Kind::shared), "");
  }
  EXPECT_FALSE(fs::exists(folder)) << "an empty folder that the lock made goes with it";
  EXPECT_EQ(refusal(folder), "");
}

TEST(DirectoryLock, ReadersShareAndKeepWritersOut) {
  const ScratchFolder scratch;
  std::optional<DirectoryLock> first, second;
  first.emplace(scratch.path(), "eval", Kind::shared);
  second.emplace(scratch.path(), "eval", Kind::shared);
  EXPECT_NE(refusal(scratch.path()), "");
  first.reset();
  EXPECT_NE(refusal(scratch.path()), "");
  second.reset();
  EXPECT_EQ(refusal(scratch.path()), "");
  EXPECT_FALSE(fs::exists(scratch / directory_lock_file));
}

TEST(DirectoryLock, EndsWithItsProcessHoweverThatEnds) {
  const ScratchFolder scratch;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const DirectoryLock lock(scratch.path(), "train");
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(contains(refusal(scratch.path()), fmt::format("process {}", child)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(scratch / directory_lock_file));
  EXPECT_EQ(refusal(scratch.path()), "");
}

TEST(DirectoryLock, TextOfAForeignLockFileIsPrintable) {
  const ScratchFolder scratch;
  const DirectoryLock lock(scratch.path(), "a\x1b[2Jb");
  EXPECT_TRUE(contains(refusal(scratch.path()), "a\\x1b[2Jb"));
}

}  // namespace
}  // namespace mulligan::directory_lock_test
