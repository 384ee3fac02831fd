// Energy: counters that wrap, counters that are not there, readings of several ranks.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "lab/energy/energy_meter.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::energy::energy_test {
namespace {

namespace fs = std::filesystem;

// A folder as the kernel lays it out: packages, their memory and cores, and a zone that holds them all.
class Powercap : public ::testing::Test {
 protected:
  void zone(const std::string& folder, const std::string& name, const std::string& energy,
            const std::string& range = "1000000") {
    write_file_atomically(root() / folder / "name", name + "\n");
    write_file_atomically(root() / folder / "energy_uj", energy + "\n");
    write_file_atomically(root() / folder / "max_energy_range_uj", range + "\n");
  }
  void set(const std::string& folder, const std::string& energy) {
    write_file_atomically(root() / folder / "energy_uj", energy + "\n");
  }
  Meter meter() const {
    std::vector<Counters> all;
    all.push_back(cpu_counters(root()));
    return Meter(std::move(all));
  }
  fs::path root() const { return scratch_.path() / "powercap"; }

 private:
  test_support::ScratchFolder scratch_;
};

TEST(EnergyWrap, CountsFromZeroAgain) {
  EXPECT_EQ(wrapped_difference(5, 9, 100), 4U);
  EXPECT_EQ(wrapped_difference(5, 5, 100), 0U);
  EXPECT_EQ(wrapped_difference(100, 0, 100), 1U);  // 0 follows the largest
  EXPECT_EQ(wrapped_difference(98, 3, 100), 6U);
  EXPECT_EQ(wrapped_difference(98, 3, 50), 4U);  // a range below its own counter: nothing is made up
}

TEST_F(Powercap, PackagesAndTheirMemoryAddUpOverWraps) {
  zone("intel-rapl:0", "package-0", "999000");
  zone("intel-rapl:0:0", "core", "7");  // a part of its package
  zone("intel-rapl:0:1", "dram", "100");
  zone("intel-rapl:1", "package-1", "500000");
  zone("intel-rapl:2", "psys", "0");  // holds the packages
  write_file_atomically(root() / "intel-rapl" / "enabled", "1\n");
  Meter measured = meter();
  set("intel-rapl:1", "600000");  // before it runs: not counted
  measured.resume();
  set("intel-rapl:0", "1999");  // wrapped: 1001 + 1999 microjoules
  measured.poll();
  set("intel-rapl:0", "500999");    // 499000
  set("intel-rapl:0:0", "999999");  // not counted
  set("intel-rapl:0:1", "300");     // 200
  measured.pause();
  set("intel-rapl:1", "900000");  // while it is paused: not counted
  measured.pause();
  measured.resume();
  set("intel-rapl:1", "900800");  // 800
  measured.pause();
  const Reading reading = measured.reading();
  EXPECT_TRUE(reading.cpu_joules && !reading.gpu_joules);
  EXPECT_NEAR(reading.joules().value(), (3000 + 499000 + 200 + 800) * 1e-6, 1e-12);
  EXPECT_EQ(reading.counters,
            (std::vector<std::string>{"powercap package-0", "powercap dram", "powercap package-1"}));
  EXPECT_TRUE(reading.absent.empty());
}

TEST_F(Powercap, WhatIsNotThereIsSaid) {
  EXPECT_FALSE(meter().reading().joules());
  ASSERT_EQ(meter().reading().absent.size(), 1U);
  EXPECT_NE(meter().reading().absent[0].find("no powercap"), std::string::npos);
  zone("intel-rapl:0", "psys", "5");
  EXPECT_NE(meter().reading().absent[0].find("no zone"), std::string::npos);
  zone("intel-rapl:1", "package-0", "some");
  EXPECT_FALSE(meter().reading().joules());
  EXPECT_NE(meter().reading().absent[0].find("not a number of microjoules"), std::string::npos);
}

// Half a machine's energy is none: one package that may not be read makes all absent, at the start and later.
TEST_F(Powercap, APartIsNoTotal) {
  zone("intel-rapl:0", "package-0", "5");
  zone("intel-rapl:1", "package-1", "5");
  Meter measured = meter();
  measured.resume();
  set("intel-rapl:0", "10");
  fs::remove(root() / "intel-rapl:1" / "energy_uj");
  measured.pause();
  EXPECT_FALSE(measured.reading().joules());
  ASSERT_FALSE(measured.reading().absent.empty());
  EXPECT_NE(measured.reading().absent[0].find("energy_uj"), std::string::npos);
  fs::create_directory(root() / "intel-rapl:1" / "energy_uj");  // there, and not to be read
  EXPECT_FALSE(meter().reading().joules());
}

// This thread has no CUDA context, and unless another test opened a driver (or its stub) the process has none either.
TEST(GpuEnergy, IsAbsentWithoutAContext) {
  const bool open = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr;
  const Counters none = gpu_counters();
  EXPECT_TRUE(none.counters.empty());
  ASSERT_EQ(none.absent.size(), 1U);
  EXPECT_EQ(none.absent[0], open ? "GPU: the driver names no device of this run" : "GPU: this run uses none");
}

RankReading rank_of(double cpus, double gpu, bool first) {
  RankReading rank;
  rank.counts_cpus = first;
  if (first) rank.reading.cpu_joules = cpus;
  if (gpu >= 0) rank.reading.gpu_joules = gpu;
  if (gpu < 0) rank.reading.absent = {"GPU: this run uses none"};
  return rank;
}

TEST(EnergyOfRanks, CpusAreCountedOncePerMachineAndGpusByRank) {
  const Reading all =
      total({rank_of(100, 10, true), rank_of(0, 20, false), rank_of(300, 30, true), rank_of(0, 40, false)});
  EXPECT_EQ(all.cpu_joules, 400);
  EXPECT_EQ(all.gpu_joules, 100);
  EXPECT_EQ(all.joules(), 500);
  // One rank without: no figure for that kind, and the reason.
  const Reading lacking = total({rank_of(100, 10, true), rank_of(0, -1, false)});
  EXPECT_FALSE(lacking.gpu_joules);
  EXPECT_EQ(lacking.joules(), 100);
  EXPECT_EQ(lacking.absent, std::vector<std::string>{"GPU: this run uses none"});
  EXPECT_FALSE(total({}).joules());
}

TEST(EnergyOfRanks, TravelAsText) {
  RankReading sent = rank_of(1.0 / 3, 2.0 / 7, true);
  sent.reading.counters = {"GPU 0000:1B:00.0"};
  sent.reading.absent = {"it's \"gone\""};
  const RankReading got = rank_reading_of(to_text(sent));
  EXPECT_EQ(got.reading.cpu_joules, sent.reading.cpu_joules);
  EXPECT_EQ(got.reading.gpu_joules, sent.reading.gpu_joules);
  EXPECT_EQ(got.reading.counters, sent.reading.counters);
  EXPECT_EQ(got.reading.absent, sent.reading.absent);
  EXPECT_EQ(got.counts_cpus, sent.counts_cpus);
}

}  // namespace
}  // namespace mulligan::energy::energy_test
