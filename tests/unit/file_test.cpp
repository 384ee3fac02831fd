#include "framework/core/file.h"

#include <gtest/gtest.h>

#include "framework/core/error.h"

namespace mulligan {
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
  try {
    write_file_atomically(file / "child", "y");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::run_failed);
    EXPECT_NE(std::string(error.what()).find("plain_file"), std::string::npos);
  }
}

TEST(ReadFile, RefusesAFolderAndAMissingFile) {
  EXPECT_THROW(read_file(testing::TempDir()), Error);
  EXPECT_THROW(read_file("no/such/file"), Error);
}

}  // namespace
}  // namespace mulligan
