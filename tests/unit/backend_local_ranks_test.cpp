// Threads and device of a rank: several ranks on one machine, and limits of control groups in a made-up file system.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <mulligan/control_group.hpp>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plugins/backends/common/local_ranks.h"
#include "plugins/backends/cpu/thread_count.h"
#include "tests/support/scratch_folder.h"

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

namespace fs = std::filesystem;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// A folder in place of /.
class System {
 public:
  explicit System(const std::string& mountinfo, const std::string& groups) {
    put("proc/self/mountinfo", mountinfo);
    put("proc/self/cgroup", groups);
  }
  void put(const std::string& file, const std::string& text) const { folder_.write(file, text); }
  fs::path root() const { return folder_.path(); }
  sdk::ControlGroupLimits limits() const { return sdk::control_group_limits(root().string()); }
  int quota() const { return cpu::thread_facts(root().string()).quota; }

 private:
  test_support::ScratchFolder folder_;
};

const std::string version_2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string version_1 =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";

TEST(ControlGroup, WithoutGroupsThereIsNoLimit) {
  const std::vector<std::pair<std::string, std::string>> systems{
      {"", ""},
      {version_2, "0::/\n"},
      {version_1, "4:cpu,cpuacct:/\n"},
      {"odd\n\n1 2 - cgroup2\n", "odd\n1:\n0::\n::::\n"}};
  for (const auto& [mountinfo, groups] : systems) {
    const System system(mountinfo, groups);
    EXPECT_EQ(system.limits().memory_bytes, no_limit);
    EXPECT_EQ(system.limits().free_memory_bytes, no_limit);
    EXPECT_GT(system.quota(), 4096);
  }
}

TEST(ControlGroup, HalfACoreIsOneThread) {
  const System two(version_2, "0::/job\n");
  two.put("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(two.limits().cores, 0.5);
  const System one(version_1, "5:memory:/\n4:cpu,cpuacct:/job\n1:name=systemd:/job\n");
  one.put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  one.put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(one.limits().cores, 0.5);
  for (const System* system : {&two, &one}) {
    EXPECT_EQ(system->quota(), 1);
    EXPECT_EQ(cpu::thread_count({.own_cores = 8, .parent_cores = 8, .quota = system->quota()}), 1);
  }
}

TEST(ControlGroup, TheSmallestLimitOnTheWayUpCounts) {
  const System two(version_2, "0::/pod/job/task\n");
  two.put("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  two.put("sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
  two.put("sys/fs/cgroup/pod/job/task/cpu.max", "400000 100000\n");
  EXPECT_EQ(two.limits().cores, 1.5);
  EXPECT_EQ(two.quota(), 2);
  two.put("sys/fs/cgroup/pod/job/task/memory.max", "max\n");
  two.put("sys/fs/cgroup/pod/job/memory.max", "4000\n");
  two.put("sys/fs/cgroup/pod/memory.max", "3000\n");
  EXPECT_EQ(two.limits().memory_bytes, 3000U);

  const System one(version_1, "5:memory:/pod/task\n4:cpu,cpuacct:/pod/task\n");
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/pod", memory = "sys/fs/cgroup/memory/pod";
  one.put(cpu + "/cpu.cfs_quota_us", "300000\n");
  one.put(cpu + "/cpu.cfs_period_us", "100000\n");
  one.put(cpu + "/task/cpu.cfs_quota_us", "-1\n");
  one.put(cpu + "/task/cpu.cfs_period_us", "100000\n");
  one.put(memory + "/task/memory.limit_in_bytes", "9223372036854771712\n");
  one.put(memory + "/memory.limit_in_bytes", "5000\n");
  EXPECT_EQ(one.quota(), 3);
  EXPECT_EQ(one.limits().memory_bytes, 5000U);
}

// Settings of machines that mix versions, mount twice, or name groups oddly.
TEST(ControlGroup, OddMachines) {
  const std::string both = version_1 + "50 31 0:50 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  const System hybrid(both, "5:memory:/job\n4:cpu,cpuacct:/job\n0::/job\n");
  hybrid.put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  hybrid.put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  hybrid.put("sys/fs/cgroup/unified/job/memory.max", "6000\n");
  EXPECT_EQ(hybrid.limits().cores, 1.5);
  EXPECT_EQ(hybrid.limits().memory_bytes, 6000U);

  const System twice(version_2 + "60 23 0:26 / /mnt/groups rw - cgroup2 cgroup2 rw\n", "0::/a\n");
  twice.put("mnt/groups/a/cpu.max", "100000 100000\n");
  EXPECT_EQ(twice.quota(), 1);

  const System colon(version_2, "0::/user:1000/app.slice/a b\n");
  colon.put("sys/fs/cgroup/user:1000/app.slice/a b/cpu.max", "20000 10000\n");
  colon.put("sys/fs/cgroup/user:1000/memory.high", "8000\n");
  colon.put("sys/fs/cgroup/user:1000/memory.max", "9000\n");
  colon.put("sys/fs/cgroup/user:1000/memory.current", "3000\n");
  EXPECT_EQ(colon.limits().cores, 2);
  EXPECT_EQ(colon.limits().memory_bytes, 8000U);
  EXPECT_EQ(colon.limits().free_memory_bytes, 5000U);

  // A namespace of its own: the group is called "/", and its limits stand in the mounted folder.
  const System own("30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/\n");
  own.put("sys/fs/cgroup/cpu.max", "max 100000\n");
  own.put("sys/fs/cgroup/memory.max", "7000\n");
  own.put("sys/fs/cgroup/memory.current", "9999\n");
  EXPECT_GT(own.quota(), 4096);
  EXPECT_EQ(own.limits().memory_bytes, 7000U);
  EXPECT_EQ(own.limits().free_memory_bytes, 0U) << "more than the limit is used";
}

TEST(ControlGroup, InAContainerTheMountedGroupCounts) {
  // The process's group is named as the host names it, and the container's own group is mounted.
  const System docker(
      "35 31 0:32 /docker/4711 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "36 31 0:33 /docker/4711 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
      "5:memory:/docker/4711\n4:cpu:/docker/4711/inner\n");
  docker.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n");
  docker.put("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "200000\n");
  docker.put("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(docker.limits().memory_bytes, 7000U);
  EXPECT_EQ(docker.quota(), 4);
  for (const char* group : {"0::/../other\n", "0::/else/where\n"}) {
    const System elsewhere("30 23 0:26 /mine /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", group);
    elsewhere.put("sys/fs/cgroup/cpu.max", "100000 100000\n");
    elsewhere.put("sys/fs/other/cpu.max", "1000 100000\n");
    EXPECT_EQ(elsewhere.quota(), 1) << group;
    EXPECT_EQ(elsewhere.limits().cores, 1) << group;
  }
}

TEST(ControlGroup, WhatIsUsedIsNotFreeAndCachedFilesAre) {
  const System two(version_2, "0::/job\n");
  two.put("sys/fs/cgroup/job/memory.max", "1000\n");
  two.put("sys/fs/cgroup/job/memory.current", "900\n");
  two.put("sys/fs/cgroup/job/memory.stat", "anon 500\nactive_file 100\ninactive_file 300\n");
  EXPECT_EQ(two.limits().free_memory_bytes, 500U);
  two.put("sys/fs/cgroup/job/memory.current", "2000\n");
  EXPECT_EQ(two.limits().free_memory_bytes, 0U);
  const System one(version_1, "5:memory:/job\n");
  one.put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  one.put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "400\n");
  one.put("sys/fs/cgroup/memory/job/memory.stat",
          "inactive_file 1\nhierarchical_memory_limit 600\ntotal_inactive_file 50\ntotal_active_file 50\n");
  EXPECT_EQ(one.limits().memory_bytes, 600U);
  EXPECT_EQ(one.limits().free_memory_bytes, 300U);
}

TEST(ControlGroup, FoldersWithBlanks) {
  const System system("30 23 0:26 /my\\040pod /sys/fs/c\\040group rw - cgroup2 cgroup2 rw\n",
                      "0::/my pod/a b\n");
  system.put("sys/fs/c group/a b/cpu.max", "200000 100000\n");
  EXPECT_EQ(system.quota(), 2);
}

}  // namespace
}  // namespace mulligan::backend_local_ranks_test
