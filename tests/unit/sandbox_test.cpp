// A confined thread reaches what it was left and nothing else, and the thread that waits for it is free.
#include "framework/core/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <thread>

namespace mulligan {
namespace {

namespace fs = std::filesystem;

bool can_open(const fs::path& path, int flags = O_RDONLY) {
  const int file = ::open(path.c_str(), flags, 0600);
  if (file >= 0) ::close(file);
  return file >= 0;
}

bool can_make_socket() {
  const int made = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (made >= 0) ::close(made);
  return made >= 0;
}

class Sandbox : public testing::Test {
 protected:
  Sandbox() : folder_(fs::temp_directory_path() / ("sandbox_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "left");
    std::ofstream(folder_ / "left" / "file") << "left";
    std::ofstream(folder_ / "hidden") << "hidden";
  }
  ~Sandbox() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Sandbox, FilesThatWereNotLeftCannotBeOpened) {
  Confinement done;
  bool left = false, hidden = false, through_proc = false, by_a_thread = false, made = false;
  run_in_thread([&] {
    done = confine_files({{"/proc"}, {folder_ / "left"}, {}, {}});
    left = can_open(folder_ / "left" / "file");
    made = can_open(folder_ / "left" / "new", O_WRONLY | O_CREAT);
    hidden = can_open(folder_ / "hidden");
    through_proc = can_open("/proc/self/root" + (folder_ / "hidden").string());
    std::thread([&] { by_a_thread = can_open(folder_ / "hidden"); }).join();
  });
  if (!done.files) GTEST_SKIP() << "missing here: " << done.missing;
  EXPECT_TRUE(left);
  EXPECT_TRUE(made);
  EXPECT_FALSE(hidden);
  EXPECT_FALSE(through_proc);
  EXPECT_FALSE(by_a_thread);
  EXPECT_TRUE(can_open(folder_ / "hidden")) << "the thread that waited is free";
}

TEST_F(Sandbox, AllButOneFile) {
  Confinement done;
  bool left = false, hidden = false, system = false;
  const auto open = all_but({folder_ / "hidden"});
  run_in_thread([&] {
    done = confine_files({{}, open, {}, {}});
    left = can_open(folder_ / "left" / "new", O_WRONLY | O_CREAT);
    hidden = can_open(folder_ / "hidden");
    system = can_open("/dev/null", O_RDWR);
  });
  if (!done.files) GTEST_SKIP() << "missing here: " << done.missing;
  EXPECT_TRUE(left);
  EXPECT_TRUE(system);
  EXPECT_FALSE(hidden);
}

TEST_F(Sandbox, NoSocketsAndPrograms) {
  Confinement done;
  bool socket = false;
  int program = 0;
  run_in_thread([&] {
    done = confine_calls(false);
    socket = can_make_socket();
    program = ::execl("/nonexistent", "x", nullptr) == 0 ? 0 : errno;
  });
  if (!done.sockets) GTEST_SKIP() << "missing here: " << done.missing;
  EXPECT_FALSE(socket);
  EXPECT_EQ(program, EACCES);
  EXPECT_TRUE(can_make_socket());
}

// In a process of its own, for it holds for all threads.
TEST_F(Sandbox, NoPathsAtAll) {
  const auto child = [&] {
    const int kept = ::open((folder_ / "hidden").c_str(), O_RDONLY);
    if (!confine_paths().missing.empty()) ::_exit(2);
    std::error_code failed;
    char byte = 0;
    const bool blind = !can_open(folder_ / "hidden") && !fs::exists(folder_ / "hidden", failed) && failed;
    ::_exit(blind && ::read(kept, &byte, 1) == 1 && byte == 'h' ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mulligan
