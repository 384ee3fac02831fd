// The limits of control groups, of both versions, in a made-up file system.
#include <gtest/gtest.h>
#include <mulligan/control_group.hpp>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "plugins/backends/cpu/thread_count.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::backend_control_group_test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// A folder in place of /.
class System {
 public:
  explicit System(const std::string& mountinfo, const std::string& groups) {
    put("proc/self/mountinfo", mountinfo);
    put("proc/self/cgroup", groups);
  }
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root() / file).parent_path());
    std::ofstream(root() / file) << text;
  }
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

TEST(ControlGroup, BothVersionsAtOnce) {
  const System both(version_1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
                    "5:memory:/a\n4:cpu,cpuacct:/\n0::/b\n");
  both.put("sys/fs/cgroup/unified/b/cpu.max", "250000 100000\n");
  both.put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(both.quota(), 3);
  EXPECT_EQ(both.limits().memory_bytes, 1000U);
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
}  // namespace mulligan::backend_control_group_test
