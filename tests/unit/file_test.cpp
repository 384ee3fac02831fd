// Files are read and written whole or not at all; what is printed of foreign text; locks of folders.
#include "framework/core/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/mapped_file.h"
#include "framework/core/printable.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::file_test {
namespace {

namespace fs = std::filesystem;
using test_support::ScratchFolder;

// FIPS 180-4 example: the digest of "abc".
TEST(Sha256, MatchesThePublishedExample) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(WriteFileAtomically, ReplacesTheFileAndLeavesNoTemporaryBehind) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a/file", "first");
  write_file_atomically(folder / "a/file", "second");
  EXPECT_EQ(read_file(folder / "a/file"), "second");
  EXPECT_EQ(sha256_hex_of_file(folder / "a/file"), sha256_hex("second"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "a"), {}), 1);
}

TEST(WriteFileAtomically, NamesThePathWhenTheFolderCannotBeMade) {
  const ScratchFolder folder;
  const fs::path file = folder / "plain_file";
  write_file_atomically(file, "x");
  EXPECT_TRUE(
      refuses([&] { write_file_atomically(file / "child", "y"); }, ExitCode::run_failed, "plain_file"));
}

TEST(ReadFile, RefusesAFolderAndAMissingFile) {
  EXPECT_THROW(read_file(testing::TempDir()), Error);
  EXPECT_THROW(read_file("no/such/file"), Error);
}

// Each of these once never came back: a pipe waits for a writer, the device never ends.
TEST(ReadFile, RefusesPipesAndDevicesAtOnce) {
  const ScratchFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path : {pipe, std::filesystem::path("/dev/zero")}) {
    for (const std::string& sentence : {sentence_of(ExitCode::bad_data, [&] { read_file(path); }),
                                        sentence_of(ExitCode::bad_data, [&] { sha256_hex_of_file(path); }),
                                        sentence_of(ExitCode::bad_data, [&] { MappedFile{path}; })}) {
      EXPECT_TRUE(contains(sentence, path.string(), "regular file"));
    }
  }
}

TEST(ReadFile, RefusesMoreThanItsReaderTakes) {
  const ScratchFolder folder;
  const fs::path file = folder / "large";
  write_file_atomically(file, "12345678");
  EXPECT_EQ(read_file(file, 8), "12345678");
  EXPECT_TRUE(refuses([&] { read_file(file, 7); }, ExitCode::bad_data, "7 bytes"));
  // A file with a hole of 300 GiB takes no room on the disk; it must take none in memory either.
  std::filesystem::resize_file(file, std::uintmax_t{300} << 30);
  sentence_of(ExitCode::bad_data, [&] { read_file(file); });
}

// /proc/self/mem is a regular file whose first page cannot be read: the system answers EIO.
TEST(Sha256, OfAFileNamesAReadError) {
  EXPECT_TRUE(refuses([] { sha256_hex_of_file("/proc/self/mem"); }, ExitCode::bad_data, "/proc/self/mem"));
  EXPECT_TRUE(refuses([] { read_file("/proc/self/mem"); }, ExitCode::bad_data, "/proc/self/mem"));
}

TEST(ReadFile, ReadsFilesOfUnknownSizeAndNamesCircularLinks) {
  EXPECT_TRUE(contains(read_file("/proc/self/status"), "Name:"));
  const ScratchFolder folder;
  const fs::path link = folder / "read_file_link";
  std::filesystem::create_symlink(link, link);
  EXPECT_TRUE(refuses([&] { read_file(link); }, ExitCode::bad_data, "read_file_link"));
}

TEST(Printable, SpellsControlCharactersOut) {
  for (const auto& [text, shown] : std::vector<std::pair<std::string, std::string>>{
           {"a name, Ünïcödé ✓ and\ta tab", "a name, Ünïcödé ✓ and\ta tab"},
           {"", ""},
           {"\x1b[31mred\x1b[0m\a\x7f\r", "\\x1b[31mred\\x1b[0m\\x07\\x7f\\x0d"},
           {std::string(1, '\0'), "\\x00"},
           {"\xc2\x9b!", "\\x9b!"},   // of eight bits
           {"\xc2\xa0", "\xc2\xa0"},  // a space that does not break
           {"a\nmulligan: all is well", "a\\nmulligan: all is well"}})
    EXPECT_EQ(printable(text), shown);
  EXPECT_EQ(printable("a\nb\x1b", LineBreaks::kept), "a\nb\\x1b");
}

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
    EXPECT_TRUE(contains(refusal(folder), fmt::format("mulligan train, process {} on host", getpid()),
                         " UTC; wait", "network file system"));
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

TEST(DirectoryLock, OfARenamedFolderLeavesAnothersOfItsNameAlone) {
  const ScratchFolder scratch;
  std::optional<DirectoryLock> first(std::in_place, scratch / "new", "prepare");
  fs::rename(scratch / "new", scratch / "done");
  const DirectoryLock second(scratch / "new", "prepare");
  first.reset();
  EXPECT_TRUE(fs::exists(scratch / "new" / directory_lock_file));
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
}  // namespace mulligan::file_test
