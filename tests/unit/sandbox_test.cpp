// A confined thread reaches what it was left and nothing else, and the thread that waits for it is free.
#include "framework/core/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <span>
#include <thread>
#include <vector>

namespace mulligan::sandbox_test {
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

// What other processes could see or hear.
TEST_F(Sandbox, NothingIsSaidToOtherProcesses) {
  Confinement done;
  int forked = 0, signalled = 0, queued = 0, limited = 0, placed = 0, pair = 0, asked = 0, own = 0;
  bool thread_ran = false;
  run_in_thread([&] {
    done = confine_calls(false);
    const auto refused = [](long result) { return result < 0 ? errno : 0; };
    forked = refused(::fork());
    signalled = refused(::kill(::getppid(), 0));
    sigval value{};
    queued = refused(::sigqueue(::getpid(), 0, value));
    rlimit limit{};
    asked = refused(::getrlimit(RLIMIT_CORE, &limit));
    limited = refused(::setrlimit(RLIMIT_CORE, &limit));
    placed = refused(::setpriority(PRIO_PROCESS, 0, 5));
    int ends[2];
    pair = refused(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    own = refused(::kill(::getpid(), 0));
    std::thread([&] { thread_ran = true; }).join();
  });
  if (!done.sockets) GTEST_SKIP() << "missing here: " << done.missing;
  for (const int error : {forked, signalled, queued, limited, placed, pair}) EXPECT_EQ(error, EACCES);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(own, 0);
  EXPECT_TRUE(thread_ran);
}

TEST_F(Sandbox, AnUntouchableFileCanNeitherBeReadNorCopied) {
  Confinement done;
  const int kept = ::open((folder_ / "hidden").c_str(), O_RDWR),
            other = ::open((folder_ / "hidden").c_str(), O_RDONLY);
  char byte = 0;
  bool read = true, written = true, copied = true, mapped = true, free = false;
  run_in_thread([&] {
    done = confine_calls(false, std::span(&kept, 1));
    read = ::read(kept, &byte, 1) >= 0 || ::pread(kept, &byte, 1, 0) >= 0 || ::recv(kept, &byte, 1, 0) >= 0;
    written = ::write(kept, &byte, 1) >= 0 || ::pwrite(kept, &byte, 1, 0) >= 0;
    copied = ::dup(kept) >= 0 || ::fcntl(kept, F_DUPFD, 0) >= 0 || ::dup2(kept, 100) >= 0;
    mapped = ::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, kept, 0) != MAP_FAILED;
    free = ::read(other, &byte, 1) == 1;
  });
  EXPECT_TRUE(::pread(kept, &byte, 1, 0) == 1) << "the thread that waited is free";
  ::close(kept);
  ::close(other);
  if (!done.sockets) GTEST_SKIP() << "missing here: " << done.missing;
  EXPECT_FALSE(read || written || copied || mapped);
  EXPECT_TRUE(free);
}

TEST_F(Sandbox, SystemFoldersHoldNothingOfUsers) {
  const auto holds = [](const std::vector<fs::path>& folders, const fs::path& path) {
    return std::ranges::any_of(folders, [&](const fs::path& folder) {
      return path == folder || path.native().starts_with(folder.native() + "/");
    });
  };
  const auto usual = system_folders(), without = system_folders({"/usr/lib"});
  EXPECT_TRUE(holds(usual, "/usr/lib/any"));
  EXPECT_TRUE(holds(usual, "/dev/null"));
  EXPECT_FALSE(holds(usual, "/dev/shm/any"));
  EXPECT_FALSE(holds(usual, "/dev"));
  EXPECT_FALSE(holds(without, "/usr/lib/any"));
  EXPECT_FALSE(holds(without, "/usr"));
  EXPECT_TRUE(holds(without, "/usr/share/any"));
}

// In a process of its own, for it holds for all threads.
TEST_F(Sandbox, NothingButComputing) {
  const auto child = [&] {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) ::_exit(3);
    const int kept = ::open((folder_ / "hidden").c_str(), O_RDONLY);
    if (!confine_to_computing(ends[0]).missing.empty()) ::_exit(2);
    std::error_code failed;
    char byte = 'h';
    rlimit limit{};
    const bool blind = !can_open(folder_ / "hidden") && !fs::exists(folder_ / "hidden", failed) && failed &&
                       ::read(kept, &byte, 1) < 0 &&
                       ::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, kept, 0) == MAP_FAILED;
    const bool deaf =
        ::prlimit(::getppid(), RLIMIT_CORE, nullptr, &limit) < 0 && ::read(ends[1], &byte, 1) < 0;
    bool computes = false;
    std::thread([&] { computes = std::vector<int>(1 << 20, 1).back() == 1; }).join();
    const bool line = ::send(ends[0], &byte, 1, 0) == 1;
    ::_exit(blind && deaf && computes && line ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mulligan::sandbox_test
