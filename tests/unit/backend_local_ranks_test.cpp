// Several ranks on one machine: the threads and the device of each.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "plugins/backends/common/local_ranks.h"
#include "plugins/backends/cpu/thread_count.h"

namespace mulligan::backend_local_ranks_test {
namespace {

using cpu::thread_count;

// What `number` is with nothing but these variables of launchers in the environment; in a process of its own.
int with_environment(const std::map<std::string, std::string>& variables,
                     const std::function<int()>& number) {
  const pid_t child = fork();
  if (child == 0) {
    for (const char* name : {"OMP_NUM_THREADS", "TORCHELASTIC_RUN_ID", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                             "LOCAL_SIZE", "SLURM_STEP_ID"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    _exit(number());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(LocalRanks, AreWhatEachLauncherSays) {
  const auto both = [] { return backends::local_ranks() * 10 + backends::local_rank(); };
  EXPECT_EQ(with_environment({}, both), 10);
  EXPECT_EQ(with_environment({{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}}, both), 43);
  EXPECT_EQ(
      with_environment({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}, both), 21);
  EXPECT_EQ(with_environment({{"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "1"}}, both), 21);
  // In a step of Slurm only: its batch script has such variables, too.
  const std::map<std::string, std::string> script = {{"SLURM_STEP_TASKS_PER_NODE", "8(x2)"},
                                                     {"SLURM_LOCALID", "5"}};
  EXPECT_EQ(with_environment(script, both), 10);
  std::map<std::string, std::string> step = script;
  step["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(with_environment(step, both), 85);
  EXPECT_EQ(with_environment({{"LOCAL_WORLD_SIZE", "many"}}, both), 10);
}

TEST(LocalRanks, ShareTheCores) {
  EXPECT_EQ(thread_count({.own_cores = 16, .parent_cores = 16, .local_ranks = 1}), 16);
  EXPECT_EQ(thread_count({.own_cores = 16, .parent_cores = 16, .local_ranks = 8}), 2);
  EXPECT_EQ(thread_count({.own_cores = 16, .parent_cores = 0, .local_ranks = 8}), 2);
  EXPECT_EQ(thread_count({.own_cores = 16, .parent_cores = 16, .quota = 8, .local_ranks = 4}), 2);
  EXPECT_EQ(thread_count({.own_cores = 2, .parent_cores = 2, .local_ranks = 8}), 1);
}

TEST(LocalRanks, KeepTheSharesThatTheyAreBoundTo) {
  EXPECT_EQ(thread_count({.own_cores = 2, .parent_cores = 16, .local_ranks = 8}), 2);
  EXPECT_EQ(thread_count({.own_cores = 4, .parent_cores = 16, .local_ranks = 1}), 4);
}

TEST(LocalRanks, OnlyTorchrunsOwnNumberOfThreadsIsNotTheUsers) {
  const cpu::ThreadFacts facts{
      .own_cores = 16, .parent_cores = 16, .local_ranks = 2, .openmp_threads = 1, .torchrun = true};
  EXPECT_EQ(thread_count(facts), 8);
  auto other = facts;
  other.openmp_threads = 3;
  EXPECT_EQ(thread_count(other), 3);
  other = facts;
  other.torchrun = false;
  EXPECT_EQ(thread_count(other), 1);
  other = facts;
  other.local_ranks = 1;
  EXPECT_EQ(thread_count(other), 1);
}

// As a rank finds them: all ranks together have no more threads than there are cores.
TEST(LocalRanks, ThisMachinesCoresAreDivided) {
  const auto threads = [] { return thread_count(cpu::thread_facts()); };
  const int alone = with_environment({}, threads);
  EXPECT_GE(alone, 1);
  const std::string ranks = std::to_string(alone);
  EXPECT_EQ(with_environment({{"LOCAL_WORLD_SIZE", ranks}}, threads), 1);
  EXPECT_EQ(with_environment({{"LOCAL_WORLD_SIZE", "1"}, {"OMP_NUM_THREADS", "3"}}, threads), 3);
}

TEST(LocalRanks, HaveAGpuEach) {
  const auto device = [](int wanted, int visible) {
    return [=] { return backends::device_of_rank(wanted, visible); };
  };
  const std::map<std::string, std::string> third = {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}};
  EXPECT_EQ(with_environment(third, device(-1, 8)), 2);
  EXPECT_EQ(with_environment(third, device(-1, 1)), 0);  // a launcher that shows each rank its own
  EXPECT_EQ(with_environment(third, device(5, 8)), 5);
  EXPECT_EQ(with_environment({}, device(-1, 8)), 0);
}

}  // namespace
}  // namespace mulligan::backend_local_ranks_test
