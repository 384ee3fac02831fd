// What happens where the system has no more memory or threads, in processes of their own.
#include "framework/core/exhaustion.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "framework/core/parallel.h"
#include "framework/core/temporary_path.h"

namespace mulligan::exhaustion_test {
namespace {

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
}  // namespace mulligan::exhaustion_test
