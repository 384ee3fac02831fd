#include "framework/core/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "framework/core/mapped_file.h"
#include "tests/support/sentence.h"

namespace mulligan::file_test {
namespace {

// FIPS 180-4 example: the digest of "abc".
TEST(Sha256, MatchesThePublishedExample) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(WriteFileAtomically, ReplacesTheFileAndLeavesNoTemporaryBehind) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "write_file_atomically";
  std::filesystem::remove_all(folder);
  write_file_atomically(folder / "a" / "file", "first");
  write_file_atomically(folder / "a" / "file", "second");
  EXPECT_EQ(read_file(folder / "a" / "file"), "second");
  EXPECT_EQ(sha256_hex_of_file(folder / "a" / "file"), sha256_hex("second"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "a"), {}), 1);
}

TEST(WriteFileAtomically, NamesThePathWhenTheFolderCannotBeMade) {
  const auto file = std::filesystem::path(testing::TempDir()) / "plain_file";
  write_file_atomically(file, "x");
  const std::string sentence =
      sentence_of(ExitCode::run_failed, [&] { write_file_atomically(file / "child", "y"); });
  EXPECT_TRUE(contains(sentence, "plain_file"));
}

TEST(ReadFile, RefusesAFolderAndAMissingFile) {
  EXPECT_THROW(read_file(testing::TempDir()), Error);
  EXPECT_THROW(read_file("no/such/file"), Error);
}

// Each of these once never came back: a pipe waits for a writer, the device never ends.
TEST(ReadFile, RefusesPipesAndDevicesAtOnce) {
  const auto pipe = std::filesystem::path(testing::TempDir()) / "read_file_pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path : {pipe, std::filesystem::path("/dev/zero")}) {
    for (const std::string& sentence : {sentence_of(ExitCode::bad_data, [&] { read_file(path); }),
                                        sentence_of(ExitCode::bad_data, [&] { sha256_hex_of_file(path); }),
                                        sentence_of(ExitCode::bad_data, [&] { MappedFile{path}; })}) {
      EXPECT_TRUE(contains(sentence, path.string()));
      EXPECT_TRUE(contains(sentence, "regular file"));
    }
  }
  std::filesystem::remove(pipe);
}

TEST(ReadFile, RefusesMoreThanItsReaderTakes) {
  const auto file = std::filesystem::path(testing::TempDir()) / "read_file_large";
  write_file_atomically(file, "12345678");
  EXPECT_EQ(read_file(file, 8), "12345678");
  const std::string sentence = sentence_of(ExitCode::bad_data, [&] { read_file(file, 7); });
  EXPECT_TRUE(contains(sentence, "7 bytes"));
  // A file with a hole of 300 GiB takes no room on the disk; it must take none in memory either.
  std::filesystem::resize_file(file, std::uintmax_t{300} << 30);
  sentence_of(ExitCode::bad_data, [&] { read_file(file); });
  std::filesystem::remove(file);
}

// /proc/self/mem is a regular file whose first page cannot be read: the system answers EIO.
TEST(Sha256, OfAFileNamesAReadError) {
  const std::string sentence = sentence_of(ExitCode::bad_data, [] { sha256_hex_of_file("/proc/self/mem"); });
  EXPECT_TRUE(contains(sentence, "/proc/self/mem"));
  EXPECT_TRUE(
      contains(sentence_of(ExitCode::bad_data, [] { read_file("/proc/self/mem"); }), "/proc/self/mem"));
}

TEST(ReadFile, ReadsFilesOfUnknownSizeAndNamesCircularLinks) {
  EXPECT_TRUE(contains(read_file("/proc/self/status"), "Name:"));
  const auto link = std::filesystem::path(testing::TempDir()) / "read_file_link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(link, link);
  EXPECT_TRUE(contains(sentence_of(ExitCode::bad_data, [&] { read_file(link); }), "read_file_link"));
  std::filesystem::remove(link);
}

}  // namespace
}  // namespace mulligan::file_test
