// How many bytes the code of a result counts.
#include "framework/artifact/code_size.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "framework/artifact/compression.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/plugin/plugin_host.h"
#include "tests/support/plugins.h"
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
  const std::vector<fs::path> files{folder / "framework" / deep / "b.txt", folder / "framework" / "a.txt"};
  const std::string archive = tar_archive(folder, files);
  EXPECT_EQ(archive.size() % 512, 0U);
  write_file_atomically(folder / "x.tar", archive);
  fs::create_directories(folder / "out");
  ASSERT_EQ(std::system(fmt::format("tar -C {0}/out -xf {0}/x.tar", folder.string()).c_str()), 0);
  EXPECT_EQ(read_file(folder / "out" / "framework" / "a.txt"), std::string(600, 'a'));
  EXPECT_EQ(read_file(folder / "out" / "framework" / deep / "b.txt"), "b");
  EXPECT_GT(source_archive(folder).size(), 0U);
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

// A kept size is taken for the same contents and compressor alone; a damaged one is computed anew.
TEST(CodeSize, TheSameContentsAreCompressedOnce) {
  const test_support::ScratchFolder scratch;
  const fs::path folder = scratch / "sizes";
  const auto kept = [&] {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    return files;
  };
  std::string contents;
  for (int i = 0; i < 5000; ++i) contents += std::to_string(i * i % 977);
  const std::uint64_t computed = compressed_size(Compression::xz, contents, {});
  EXPECT_EQ(computed, compress(Compression::xz, contents).size());
  EXPECT_EQ(compressed_size(Compression::xz, contents, folder), computed);
  ASSERT_EQ(kept().size(), 1u);
  const fs::path file = kept()[0];
  const std::string entry = read_file(file);

  // It is read: an intact entry with another number is believed.
  const std::string said = entry.substr(0, 64) + " 7";
  write_file_atomically(file, said + " " + sha256_hex(said) + "\n");
  EXPECT_EQ(compressed_size(Compression::xz, contents, folder), 7u);
  for (const std::string& damaged :
       {std::string(), entry.substr(0, 60), said + entry.substr(entry.rfind(' ')), entry + "x",
        std::string(200, '\0')}) {
    write_file_atomically(file, damaged);
    EXPECT_EQ(compressed_size(Compression::xz, contents, folder), computed) << damaged;
    EXPECT_EQ(read_file(file), entry);
  }
  EXPECT_EQ(compressed_size(Compression::brotli, contents, folder),
            compress(Compression::brotli, contents).size());
  contents += "0";
  EXPECT_EQ(compressed_size(Compression::xz, contents, folder), compress(Compression::xz, contents).size());
  EXPECT_EQ(kept().size(), 3u);

  // A folder that cannot be is not an error.
  EXPECT_EQ(compressed_size(Compression::xz, contents, file / "below"),
            compress(Compression::xz, contents).size());
}

// The portable bundle is stripped, and a bare machine has no strip.
TEST(CodeSize, AStrippedBinaryNeedsNoStrip) {
  const test_support::ScratchFolder folder;
  const fs::path plugin = test_plugin_host().load(PluginKind::loss, "cross_entropy")->path();
  const fs::path stripped = folder / "mulligan_cross_entropy.so";
  ASSERT_EQ(std::system(fmt::format("strip -o {} {}", stripped.string(), plugin.string()).c_str()), 0);
  const std::uint64_t bytes = compressed_binary_bytes({plugin});
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  const std::uint64_t without_strip = compressed_binary_bytes({stripped});
  const std::string refusal = sentence_of([&] { compressed_binary_bytes({plugin}); });
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(without_strip, bytes);
  EXPECT_NE(refusal.find("install binutils"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace mulligan::artifact_code_size_test
