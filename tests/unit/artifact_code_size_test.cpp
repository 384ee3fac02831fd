// How many bytes the code of a result counts.
#include "framework/artifact/code_size.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "framework/artifact/compression.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::artifact_code_size_test {
namespace {

namespace fs = std::filesystem;

TEST(CodeSize, TheTarArchiveIsReadByTar) {
  const test_support::ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  const std::string deep = std::string(60, 'd') + "/" + std::string(70, 'e');
  write_file_atomically(folder / "framework" / "a.txt", std::string(600, 'a'));
  write_file_atomically(folder / "framework" / deep / "b.txt", "b");
  const std::string archive = source_archive(folder);
  EXPECT_EQ(archive.size() % 512, 0U);
  write_file_atomically(folder / "x.tar", archive);
  fs::create_directories(folder / "out");
  ASSERT_EQ(std::system(fmt::format("tar -C {0}/out -xf {0}/x.tar", folder.string()).c_str()), 0);
  EXPECT_EQ(read_file(folder / "out" / "framework" / "a.txt"), std::string(600, 'a'));
  EXPECT_EQ(read_file(folder / "out" / "framework" / deep / "b.txt"), "b");
  EXPECT_NE(sentence_of([&] { source_archive(folder / "out" / "framework"); }).find("source tree"),
            std::string::npos);
}

// What a program was built from cannot be changed without another digest, device headers and lists included.
TEST(CodeSize, TheDigestOfTheSourceIsOfEveryFileOfCode) {
  const test_support::ScratchFolder scratch;
  const fs::path folder = scratch / "plugins";
  for (const char* name : {"a.h", "a.hpp", "a.inc", "a.c", "a.cpp", "a.cu", "a.cuh"}) {
    const std::string before = source_digest(scratch.path());
    write_file_atomically(folder / name, "int a;");
    EXPECT_NE(source_digest(scratch.path()), before) << name;
  }
  const std::string before = source_digest(scratch.path());
  write_file_atomically(folder / "a.md", "# A");
  EXPECT_EQ(source_digest(scratch.path()), before);
}

// A damaged stream is made anew.
TEST(CodeSize, TheSameContentsAreCompressedOnce) {
  const test_support::ScratchFolder scratch;
  const fs::path folder = scratch / "packed";
  const auto kept = [&] {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    return files;
  };
  std::string contents;
  for (int i = 0; i < 5000; ++i) contents += std::to_string(i * i % 977);
  const std::string computed = compress_once(contents, {});
  EXPECT_TRUE(computed == compress(Compression::brotli, contents));
  EXPECT_TRUE(compress_once(contents, folder) == computed);
  ASSERT_EQ(kept().size(), 1u);
  const fs::path file = kept()[0];
  const std::string whole = sha256_hex(computed) + computed;
  EXPECT_TRUE(read_file(file) == whole);

  // It is taken: what is made anew is written anew.
  const auto before = fs::last_write_time(file) - std::chrono::hours(1);
  fs::last_write_time(file, before);
  EXPECT_TRUE(compress_once(contents, folder) == computed);
  EXPECT_EQ(fs::last_write_time(file), before);
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;
  for (const std::string& damaged :
       {std::string(), whole.substr(0, 60), whole.substr(0, 64), whole + "x", flipped, computed}) {
    write_file_atomically(file, damaged);
    EXPECT_TRUE(compress_once(contents, folder) == computed);
    EXPECT_TRUE(read_file(file) == whole);
  }
  contents += "0";
  EXPECT_TRUE(compress_once(contents, folder) == compress(Compression::brotli, contents));
  EXPECT_EQ(kept().size(), 2u);

  // The oldest go.
  for (int i = 0; i < 70; ++i) compress_once(std::to_string(i), folder);
  EXPECT_EQ(kept().size(), 64u);
  EXPECT_FALSE(fs::exists(file));

  // A folder that cannot be is not an error.
  EXPECT_TRUE(compress_once(contents, kept()[0] / "below") == compress(Compression::brotli, contents));
}

}  // namespace
}  // namespace mulligan::artifact_code_size_test
