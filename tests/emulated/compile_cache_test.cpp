// The cache of compiled kernels: one process compiles, the others take its result; damage is noticed.
#include "plugins/backends/cuda/compile/compile_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::cuda::compile_cache_test {
namespace {

namespace fs = std::filesystem;

class CompileCacheTest : public ::testing::Test {
 protected:
  std::string cache() const { return folder_ / "cache"; }
  // The one file that holds a value.
  std::string value_file() const {
    for (const auto& entry : fs::directory_iterator(cache())) {
      if (entry.path().extension().empty()) return entry.path();
    }
    return "";
  }
  test_support::ScratchFolder folder_;
};

std::string fails() {
  throw std::runtime_error("made again");
}

TEST_F(CompileCacheTest, SecondProcessTakesTheFirstOnesResult) {
  const std::string value("code\0with zeros", 15);
  EXPECT_EQ(CompileCache(cache()).get("key", [&] { return value; }), value);
  EXPECT_EQ(CompileCache(cache()).get("key", fails), value);
  EXPECT_EQ(CompileCache(cache()).get("other key", [] { return "other"; }), "other");
}

// Eight processes at once, as the ranks of a node: the value is made once, everybody gets it whole.
TEST_F(CompileCacheTest, EightProcessesAtOnce) {
  const std::string value(3 << 20, 'x'), counter = folder_ / "made";
  std::vector<pid_t> children;
  for (int rank = 0; rank < 8; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::optional<std::string> got = CompileCache(cache()).get("key", [&] {
        std::ofstream(counter, std::ios::app) << "x";
        usleep(50000);
        return value;
      });
      _exit(got == value ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(read_file(counter), "x");
}

TEST_F(CompileCacheTest, WhoFindsAnotherAtWorkCanDoSomethingElseFirst) {
  CompileCache first(cache()), second(cache());
  int others = 0;
  const std::optional<std::string> value = first.get("key", [&] {
    EXPECT_EQ(second.get("key", fails, false), std::nullopt);
    EXPECT_EQ(second.get(
                  "other key", [] { return "other"; }, false),
              "other");
    ++others;
    return "value";
  });
  EXPECT_EQ(others, 1);
  EXPECT_EQ(second.get("key", fails, false), value);
  EXPECT_EQ(first.get("other key", fails), "other");
}

TEST_F(CompileCacheTest, DamagedFileIsMadeAgain) {
  CompileCache(cache()).get("key", [] { return "value"; });
  const std::string whole = read_file(value_file());
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, whole.size() - 1}) {
    std::ofstream(value_file(), std::ios::binary) << whole.substr(0, length);
    EXPECT_EQ(CompileCache(cache()).get("key", [] { return "value"; }), "value") << length;
  }
  std::string changed = whole;
  changed.back() ^= 1;
  std::ofstream(value_file(), std::ios::binary) << changed;
  EXPECT_THROW(CompileCache(cache()).get("key", fails), std::runtime_error);
  EXPECT_EQ(CompileCache(cache()).get("key", [] { return "value"; }), "value");
  EXPECT_EQ(read_file(value_file()), whole);
}

// A failure is passed on and leaves no files.
TEST_F(CompileCacheTest, FailureIsNotKept) {
  EXPECT_THROW(CompileCache(cache()).get("key", fails), std::runtime_error);
  EXPECT_EQ(value_file(), "");
  EXPECT_EQ(CompileCache(cache()).get("key", [] { return "value"; }), "value");
}

TEST_F(CompileCacheTest, WithoutAFolderEverythingIsMadeEachTime) {
  EXPECT_EQ(CompileCache("").get("key", [] { return "value"; }), "value");
  EXPECT_THROW(CompileCache("").get("key", fails), std::runtime_error);
  EXPECT_THROW(CompileCache("/dev/null/no folder").get("key", fails), std::runtime_error);
}

}  // namespace
}  // namespace mulligan::cuda::compile_cache_test
