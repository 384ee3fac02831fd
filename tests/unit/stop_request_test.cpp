// Signals that ask for an end, programs that are watched, and a system without more memory or threads.
#include "framework/core/stop_request.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "framework/core/child_process.h"
#include "framework/core/error.h"
#include "framework/core/exhaustion.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"
#include "framework/core/temporary_path.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::stop_request_test {
namespace {

namespace fs = std::filesystem;

// Exit code of a process that does `body`; 128 and the number of the signal that ended it. It inherits no ignored signals (nohup).
int exit_code_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2})
      std::signal(signal, SIG_DFL);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void wait_for_signal() {
  for (int i = 0; i < 6000 && stop_signal() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// What a process says whose `body` sends it SIGTERM, which ends it as interrupted.
std::string last_words(const test_support::ScratchFolder& folder, const std::function<void()>& body) {
  const fs::path said = folder / "said";
  const int status = exit_code_of([&] {
    if (!std::freopen(said.c_str(), "w", stderr)) _exit(1);
    body();
  });
  EXPECT_EQ(status, static_cast<int>(ExitCode::interrupted));
  return read_file(said);
}

TEST(StopRequest, EachSignalThatAsksForAnEndIsNoted) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2}) {
    const int status = exit_code_of([&] {
      const StopSignals signals;
      if (stop_signal() != 0) _exit(1);
      kill(getpid(), signal);
      wait_for_signal();
      if (stop_signal() != signal) _exit(2);
      try {
        throw_if_stopping();
      } catch (const Error& error) {
        if (error.code() == ExitCode::interrupted) _exit(7);
      }
    });
    EXPECT_EQ(status, 7) << signal_name(signal);
  }
}

TEST(StopRequest, ASecondOneKillsAndHangUpsComeInTwos) {
  const auto after_two = [](int first, int second) {
    return exit_code_of([=] {
      const StopSignals signals;
      kill(getpid(), first);
      wait_for_signal();
      kill(getpid(), second);
      std::this_thread::sleep_for(std::chrono::milliseconds(first == second ? 100 : 10'000));
      if (stop_signals_noted() != 1) _exit(1);
    });
  };
  EXPECT_EQ(after_two(SIGTERM, SIGINT), 128 + SIGINT);
  EXPECT_EQ(after_two(SIGHUP, SIGHUP), 0);
  EXPECT_EQ(after_two(SIGTERM, SIGTERM), 0) << "a batch system's, and the same from the launcher";
}

TEST(StopRequest, FurtherOnesAreCountedWhereTheyShallBe) {
  const int status = exit_code_of([] {
    const StopSignals signals(FurtherSignals::noted);
    if (stop_signals_noted() != 0) _exit(1);
    for (const int signal : {SIGINT, SIGHUP, SIGINT, SIGTERM}) {
      kill(getpid(), signal);
      // A second one that comes before the first was taken is lost, as signals are.
      sigset_t pending;
      do {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        sigpending(&pending);
      } while (sigismember(&pending, signal));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    _exit(stop_signal() == SIGINT && stop_signals_noted() == 3 ? 7 : 2);
  });
  EXPECT_EQ(status, 7);
}

TEST(StopRequest, NoThreadIsEverInterrupted) {
  // A handler, as a profiler would install one, is not called in any thread.
  const int status = exit_code_of([] {
    take_over_signals();
    static volatile sig_atomic_t called = 0;
    for (const int signal : {SIGPROF, SIGVTALRM, SIGIO, SIGWINCH, SIGCHLD, SIGURG, SIGRTMIN}) {
      std::signal(signal, [](int) { called = 1; });
    }
    std::thread other([] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
    for (const int signal : {SIGPROF, SIGVTALRM, SIGIO, SIGWINCH, SIGCHLD, SIGURG, SIGRTMIN}) {
      kill(getpid(), signal);
    }
    other.join();
    _exit(called);
  });
  EXPECT_EQ(status, 0);
}

TEST(StopRequest, WhatTheProcessWasToldToIgnoreStaysIgnored) {  // nohup
  const int status = exit_code_of([] {
    std::signal(SIGHUP, SIG_IGN);
    take_over_signals();
    kill(getpid(), SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  EXPECT_EQ(status, 0);
}

TEST(StopRequest, WithoutACommandThatSavesTheProcessEndsAndItsTemporariesGo) {
  const test_support::ScratchFolder folder;
  last_words(folder, [&] {
    take_over_signals();
    const TemporaryPath half(folder / "half"), whole(folder / "whole");
    fs::create_directories(half.path() / "below");
    for (const fs::path& file : {half.path() / "below" / "file", folder / "kept"})
      std::ofstream(file) << "text";
    kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(10));
  });
  EXPECT_FALSE(fs::exists(folder / "half"));
  EXPECT_TRUE(fs::exists(folder / "kept"));
}

TEST(StopRequest, APublishingThatFailsLeavesThePathTemporary) {
  const test_support::ScratchFolder folder;
  {
    TemporaryPath work(folder / "work");
    write_file_atomically(work.path(), "text");
    EXPECT_THROW(work.publish(folder / "whole", [] { throw run_error("no"); }), Error);
    EXPECT_TRUE(fs::exists(folder / "work"));
  }
  EXPECT_FALSE(fs::exists(folder / "work"));
  const TemporaryPath one(make_private_folder()), other(make_private_folder());
  EXPECT_NE(one.path(), other.path());
}

TEST(StopRequest, ASecondOneAtTheEndOfAStoppedCommandSaysNothing) {
  const test_support::ScratchFolder folder;
  const std::string said = last_words(folder, [&] {
    {
      const StopSignals signals;
      kill(getpid(), SIGINT);
      wait_for_signal();
    }
    const TemporaryPath half(folder / "half");
    std::ofstream(half.path()) << "text";
    kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(10));
  });
  EXPECT_EQ(said, "");
  EXPECT_FALSE(fs::exists(folder / "half"));
}

TEST(StopRequest, WritingBeyondALimitOrToAClosedPipeIsAnError) {
  const int status = exit_code_of([] {
    take_over_signals();
    int ends[2];
    if (pipe(ends) != 0 || close(ends[0]) != 0) _exit(1);
    if (write(ends[1], "x", 1) >= 0 || errno != EPIPE) _exit(2);
    kill(getpid(), SIGXFSZ);
  });
  EXPECT_EQ(status, 0);
}

TEST(StopRequest, ChildProcessesGetTheUsualSignals) {
  const test_support::ScratchFolder folder;
  const int status = exit_code_of([&] {
    take_over_signals();
    _exit(run_program(
        {"sh", "-c", "exec grep -E '^Sig(Blk|Ign):' /proc/self/status > " + (folder / "masks").string()},
        ProgramWatch{}));
  });
  EXPECT_EQ(status, 0);
  // Signals 1 to 31: glibc leaves its own two, 32 and 33, ignored in what it spawns.
  const std::string masks = read_file(folder / "masks");
  EXPECT_TRUE(masks.starts_with("SigBlk:\t0000000000000000\n")) << masks;
  EXPECT_EQ(std::stoull(masks.substr(masks.rfind('\t') + 1), nullptr, 16) & 0x7fffffff, 0U) << masks;
}

struct Outcome {
  int status = 0;
  std::string output, errors;
};

Outcome run_shell(const std::string& script, int signal = 0) {
  Outcome outcome;
  outcome.status =
      run_program({"sh", "-c", script}, {[&](std::string_view bytes) { outcome.output += bytes; },
                                         [&](std::string_view bytes) { outcome.errors += bytes; },
                                         // Once it has said that it is ready for it.
                                         [&] { return outcome.output.empty() ? 0 : signal; }});
  return outcome;
}

TEST(WatchedProgram, BothStreamsArriveWhole) {
  const Outcome outcome =
      run_shell("i=0; while [ $i -lt 3000 ]; do echo line $i; echo error $i >&2; i=$((i+1)); done; exit 3");
  EXPECT_EQ(WEXITSTATUS(outcome.status), 3);
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3000);
  EXPECT_TRUE(outcome.output.ends_with("line 2999\n"));
  EXPECT_TRUE(outcome.errors.ends_with("error 2999\n"));
}

TEST(WatchedProgram, ASignalIsPassedOnOnce) {
  const Outcome outcome = run_shell(
      "trap 'echo told; trap \"echo again\" TERM; sleep 1; exit 4' TERM; echo ready; while :; do sleep 0.05; "
      "done",
      SIGTERM);
  EXPECT_EQ(WEXITSTATUS(outcome.status), 4);
  EXPECT_EQ(outcome.output, "ready\ntold\n");
}

TEST(WatchedProgram, AProgramThatIsNotThere) {
  EXPECT_EQ(run_program({"no-such-program-here"}, ProgramWatch{}), -1);
}

// The watch has failed: the program is ended and waited for.
TEST(WatchedProgram, AWatchThatThrowsEndsIt) {
  const ProgramWatch watch{[](std::string_view) { throw std::runtime_error("full"); }, {}, {}};
  EXPECT_THROW(run_program({"sh", "-c", "echo started; exec sleep 1000"}, watch), std::runtime_error);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

// No caller catches what a library's thread throws.
TEST(ExhaustionDeathTest, MemoryThatRunsOutInAnyThreadIsASentence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::filesystem::path left = std::filesystem::temp_directory_path() / "mulligan_exhaustion_left";
  const auto run_out = [&] {
    report_exhaustion();
    const TemporaryPath half(left);
    std::ofstream(left) << "text";
    std::thread([] { throw std::bad_alloc(); }).join();
  };
  EXPECT_EXIT(run_out(), ::testing::ExitedWithCode(1), "^mulligan: there is not enough memory, .*\\.\n$");
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST(ExhaustionDeathTest, AnyOtherExceptionAbortsAsBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail = [] {
    report_exhaustion();
    std::thread([] { throw std::logic_error("a mistake"); }).join();
  };
  EXPECT_EXIT(fail(), ::testing::KilledBySignal(SIGABRT), "a mistake");
}

// Of 64 threads the system starts some: stacks of 8 MB do not fit into what is left of the address space.
TEST(ExhaustionDeathTest, WorkIsDoneByTheThreadsThatThereAre) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto work = [] {
    std::ifstream pages("/proc/self/statm");
    rlim_t used = 0;
    pages >> used;
    const rlim_t room = used * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{200} << 20);
    const rlimit limit{room, room};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    std::atomic<int> done{0};
    parallel_for(1000, 64, [&](std::size_t) { ++done; });
    _exit(done == 1000 ? 7 : 3);
  };
  EXPECT_EXIT(work(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace mulligan::stop_request_test
