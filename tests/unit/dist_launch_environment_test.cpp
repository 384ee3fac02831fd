// Who a process is, from the variables of each launcher.
#include "framework/ranks/launch_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "framework/core/error.h"
#include "framework/ranks/control_options.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_launch_environment_test {
namespace {

using Variables = std::map<std::string, std::string>;

LaunchEnvironment find(Variables variables, const std::string& launcher = "") {
  const EnvironmentLookup lookup = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return find_launch(lookup, launcher);
}

// The variables with some changed; an empty value takes one away.
Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

const Variables torchrun{{"TORCHELASTIC_RUN_ID", "none"},
                         {"TORCHELASTIC_RESTART_COUNT", "2"},
                         {"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "node-0.domain"},
                         {"MASTER_PORT", "29500"},
                         {"GROUP_RANK", "1"},
                         {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Variables environment{{"RANK", "1"},           {"WORLD_SIZE", "2"},
                            {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "host"}, {"MASTER_PORT", "4000"}};
const Variables openmpi{{"OMPI_COMM_WORLD_RANK", "3"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_NAMESPACE", "123"}};
const Variables hydra{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables slurm{{"SLURM_PROCID", "4"},
                      {"SLURM_STEP_NUM_TASKS", "5"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_STEP_ID", "7"},
                      {"SLURM_JOB_ID", "99"},
                      {"SLURM_NODEID", "2"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                      {"SLURM_STEP_NODELIST", "n[01-03]"}};

TEST(LaunchEnvironment, NothingIsOneRank) {
  const LaunchEnvironment found = find({});
  EXPECT_EQ(describe(found), "rank 0 of 1, local rank 0 of 1 (none)");
  EXPECT_EQ(found.host, "");
  EXPECT_TRUE(found.ports.empty());
}

TEST(LaunchEnvironment, TorchrunsStoreKeepsItsPort) {
  const LaunchEnvironment found = find(torchrun);
  EXPECT_EQ(describe(found), "rank 5 of 8, local rank 1 of 4 (torchrun, run none, restart 2)");
  EXPECT_EQ(found.host, "node-0.domain");
  ASSERT_EQ(found.ports.size(), 16U);
  EXPECT_EQ(found.ports.front(), 29501);
  EXPECT_EQ(found.ports.back(), 29516);
  const auto without_store = find(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).ports;
  ASSERT_EQ(without_store.size(), 17U);
  EXPECT_EQ(without_store.front(), 29500);
}

TEST(LaunchEnvironment, RanksOfOneMachineMeetOnTheLoopback) {
  const LaunchEnvironment found = find(environment);
  EXPECT_EQ(describe(found), "rank 1 of 2, local rank 1 of 2 (env)");
  EXPECT_EQ(found.host, "127.0.0.1");
  EXPECT_EQ(found.ports.front(), 4000);
  EXPECT_EQ(find(with(environment, {{"MULLIGAN_RENDEZVOUS", "other"}})).host, "other");
}

TEST(LaunchEnvironment, OwnLauncherTellsRunAndRestart) {
  const LaunchEnvironment found = find(
      with(environment,
           {{"MULLIGAN_RUN_ID", "abc"}, {"MULLIGAN_RESTART_COUNT", "3"}, {"MULLIGAN_INTERFACE", "eth1"}}));
  EXPECT_EQ(describe(found), "rank 1 of 2, local rank 1 of 2 (env, run abc, restart 3)");
  EXPECT_EQ(found.interface_name, "eth1");
  EXPECT_EQ(find(with(environment, {{"MULLIGAN_LAUNCH", "1"}})).launcher, "mulligan launch");
  EXPECT_EQ(find(with(torchrun, {{"MULLIGAN_LAUNCH", "1"}})).launcher, "torchrun");
}

TEST(LaunchEnvironment, LimitsOfPatienceAreSecondsOfTheEnvironment) {
  const auto options = [](const std::string& name, const std::string& value) {
    return control_options([&](const std::string& asked) -> std::optional<std::string> {
      return asked == name ? std::optional(value) : std::nullopt;
    });
  };
  EXPECT_EQ(options("MULLIGAN_STUCK_SECONDS", "7.5").wedged, 7.5);
  EXPECT_EQ(options("MULLIGAN_SILENT_SECONDS", "20").silent, 20);
  EXPECT_EQ(options("MULLIGAN_FIRST_STEP_SECONDS", "3000").first_step, 3000);
  EXPECT_EQ(options("MULLIGAN_MEET_SECONDS", "").meet, ControlOptions().meet);
  for (const char* value : {"soon", "2", "-5", "nan", "1e9", "7s"}) {
    EXPECT_THROW(options("MULLIGAN_MEET_SECONDS", value), Error) << value;
  }
}

TEST(LaunchEnvironment, DeepspeedAndKubernetes) {
  const Variables deepspeed = with(environment, {{"LOCAL_WORLD_SIZE", ""}, {"LOCAL_SIZE", "2"}});
  EXPECT_EQ(describe(find(deepspeed)), "rank 1 of 2, local rank 1 of 2 (env)");
  const Variables kubernetes = with(environment, {{"LOCAL_WORLD_SIZE", ""}, {"LOCAL_RANK", ""}});
  EXPECT_EQ(describe(find(kubernetes)), "rank 1 of 2, local rank 0 of 1 (env)");
  EXPECT_EQ(find(kubernetes).host, "host");
  EXPECT_TRUE(refuses([] { find(with(environment, {{"LOCAL_WORLD_SIZE", ""}})); }, "LOCAL_WORLD_SIZE"));
}

TEST(LaunchEnvironment, OpenMpiAndHydra) {
  EXPECT_EQ(describe(find(openmpi)), "rank 3 of 4, local rank 3 of 4 (openmpi, run 123)");
  EXPECT_EQ(describe(find(hydra)), "rank 1 of 2, local rank 1 of 2 (hydra)");
  EXPECT_NE(find(openmpi).ports, find(with(openmpi, {{"PMIX_NAMESPACE", "124"}})).ports);
  EXPECT_GE(find(hydra).ports.front(), 20000);
  EXPECT_LT(find(hydra).ports.front(), 30000);
  EXPECT_EQ(find(hydra).ports.size(), 17U);
}

TEST(LaunchEnvironment, SeveralMachinesNeedAHost) {
  const Variables two_machines =
      with(openmpi, {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_TRUE(refuses([&] { find(two_machines); }, "mpirun -x MASTER_ADDR=HOST"));
  EXPECT_EQ(find(with(two_machines, {{"MASTER_ADDR", "node7"}})).host, "node7");
  EXPECT_EQ(find(with(two_machines, {{"SLURM_STEP_NODELIST", "n[08-09]"}})).host, "n08");
  const LaunchEnvironment own = find(with(two_machines, {{"MULLIGAN_RENDEZVOUS", "[fe80::1]:77"}}));
  EXPECT_EQ(own.host, "fe80::1");
  EXPECT_EQ(own.ports.front(), 77);
  EXPECT_EQ(find(with(two_machines, {{"MULLIGAN_RENDEZVOUS", "fe80::1"}})).host, "fe80::1");
  for (const char* odd : {"host:port", "host:0", "host:70000", ":5", "[fe80::1", "a b"}) {
    EXPECT_TRUE(contains(sentence_of([&] {
                           find(with(two_machines, {{"MULLIGAN_RENDEZVOUS", odd}}));
                         }),
                         "MULLIGAN_RENDEZVOUS"));
  }
}

TEST(LaunchEnvironment, SlurmCountsTasksPerNode) {
  const LaunchEnvironment found = find(slurm);
  EXPECT_EQ(describe(found), "rank 4 of 5, local rank 0 of 1 (slurm, run 99.7)");
  EXPECT_EQ(found.host, "n01");
  // The script of sbatch itself is not a task of a step, though it has a number.
  const Variables script{{"SLURM_PROCID", "0"},  {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"},
                         {"SLURM_JOB_ID", "99"}, {"SLURM_NTASKS", "5"},  {"SLURM_TASKS_PER_NODE", "2(x2),1"}};
  EXPECT_EQ(describe(find(script)), "rank 0 of 1, local rank 0 of 1 (none)");
  EXPECT_TRUE(refuses([] { find(with(slurm, {{"SLURM_NODEID", "3"}})); }, "SLURM_NODEID='3'"));
  EXPECT_TRUE(refuses([] { find(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", ""}})); }, "is missing"));
}

TEST(LaunchEnvironment, TheFirstLauncherWinsAndANameOverrules) {
  Variables all = torchrun;
  for (const Variables& other : {environment, openmpi, hydra, slurm}) all.insert(other.begin(), other.end());
  EXPECT_EQ(find(all).launcher, "torchrun");
  for (const char* name : {"torchrun", "env", "openmpi", "hydra", "slurm", "none"}) {
    EXPECT_EQ(find(all, name).launcher, name);
  }
  EXPECT_EQ(find(all, "openmpi").rank, 3);
  EXPECT_EQ(find(all, "none").world_size, 1);
  all.erase("TORCHELASTIC_RUN_ID");
  EXPECT_EQ(find(all).launcher, "env");
  all.erase("MASTER_ADDR");
  EXPECT_EQ(find(all).launcher, "openmpi");
  all.erase("OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(find(all).launcher, "hydra");
  all.erase("PMI_SIZE");
  EXPECT_EQ(find(all).launcher, "slurm");
  EXPECT_EQ(sentence_of([] { find({}, "mpi"); }),
            "there is no launcher 'mpi'; choose torchrun, env, openmpi, hydra, slurm or none.");
  EXPECT_EQ(sentence_of([] { find({}, "hydra"); }),
            "the environment variables PMI_RANK, PMI_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS are missing, "
            "which a process started by hydra has; choose another launcher with --launcher, or none.");
}

TEST(LaunchEnvironment, AChosenLauncherNamesWhatIsMissing) {
  const std::map<std::string, Variables> needed{
      {"torchrun", torchrun}, {"openmpi", openmpi}, {"hydra", hydra}, {"slurm", slurm}};
  const std::vector<std::string> optional{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                                          "GROUP_RANK",          "TORCHELASTIC_USE_AGENT_STORE",
                                          "MASTER_PORT",         "PMIX_NAMESPACE"};
  for (const auto& [launcher, variables] : needed) {
    for (const auto& [name, value] : variables) {
      if (std::ranges::count(optional, name)) continue;
      const std::string sentence = sentence_of([&] { find(with(variables, {{name, ""}}), launcher); });
      const bool host = name == "MASTER_ADDR" || name == "SLURM_STEP_NODELIST";
      EXPECT_TRUE(contains(sentence, host ? "MULLIGAN_RENDEZVOUS=HOST" : name)) << name << sentence;
    }
  }
}

// One of several processes of a launcher whose variables are not read would take itself for a whole run.
TEST(LaunchEnvironment, OtherLaunchersAreRefused) {
  const std::vector<Variables> several = {{{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}},
                                          {{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "2"}},
                                          {{"PALS_RANKID", "3"}},
                                          {{"JSM_NAMESPACE_RANK", "0"}, {"JSM_NAMESPACE_SIZE", "6"}},
                                          {{"FLUX_TASK_RANK", "1"}},
                                          {{"PMIX_RANK", "1"}}};
  for (const Variables& variables : several) {
    EXPECT_TRUE(refuses([&] { find(variables); }, " in the environment says that ", "LOCAL_WORLD_SIZE"));
    EXPECT_EQ(find(with(variables, torchrun)).world_size, 8);
  }
  EXPECT_EQ(find({{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}).world_size,
            1);
}

// Some of a launcher's variables: which are missing, by name. All of another launcher's come first.
TEST(LaunchEnvironment, AnIncompleteSetIsRefused) {
  EXPECT_EQ(sentence_of([] {
              find({{"RANK", "1"}});
            }),
            "RANK is set in the environment, but WORLD_SIZE and MASTER_ADDR are missing; set all of them for "
            "one of several ranks, or unset RANK for a process alone.");
  const std::vector<std::pair<Variables, std::vector<std::string>>> parts{
      {{{"RANK", "0"}}, {"WORLD_SIZE", "MASTER_ADDR"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, {"MASTER_ADDR"}},
      {{{"LOCAL_RANK", "1"}}, {"RANK", "WORLD_SIZE", "MASTER_ADDR"}},
      {{{"MASTER_ADDR", "host"}}, {"RANK", "WORLD_SIZE"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "host"}},
       {"LOCAL_WORLD_SIZE"}},
      {{{"OMPI_COMM_WORLD_RANK", "1"}}, {"OMPI_COMM_WORLD_SIZE"}},
      {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}},
      {{{"PMI_RANK", "1"}}, {"PMI_SIZE", "MPI_LOCALRANKID"}},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, {"MPI_LOCALRANKID"}},
      {{{"MPI_LOCALNRANKS", "2"}}, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}},
      {{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"}},
      {{{"SLURM_STEP_ID", "0"}}, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}},
      {with(slurm, {{"SLURM_STEP_ID", ""}}), {"SLURM_STEP_ID"}}};
  for (const auto& [variables, missing] : parts) {
    const std::string sentence = sentence_of([&, &some = variables] { find(some); });
    const std::string end =
        sentence.substr(sentence.find("but ") == std::string::npos ? 0 : sentence.find("but "));
    for (const std::string& name : missing) EXPECT_TRUE(contains(end, name)) << sentence;
    EXPECT_TRUE(contains(sentence, "missing"));
    EXPECT_EQ(find(variables, "none").world_size, 1);
  }
  EXPECT_EQ(find(with(slurm, {{"RANK", "1"}, {"MASTER_ADDR", "host"}})).launcher, "slurm");
  EXPECT_EQ(find({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).world_size, 1);
  EXPECT_EQ(find({{"MASTER_PORT", "tcp://10.0.0.1:80"}}).world_size, 1);  // of a Kubernetes service "master"
}

TEST(LaunchEnvironment, ValuesThatMakeNoSense) {
  const std::pair<std::string, std::vector<std::string>> wrong[] = {
      {"RANK", {"x", "-1", "1.0", "2", "99999999999", "0"}},
      {"WORLD_SIZE", {"0", " 2"}},
      {"LOCAL_RANK", {"2"}},
      {"LOCAL_WORLD_SIZE", {"3"}},
      {"MASTER_PORT", {"65536", "0"}},
      {"MULLIGAN_RESTART_COUNT", {"-1"}},
      {"MULLIGAN_RUN_ID", {std::string(256, 'a')}}};
  for (const auto& [name, values] : wrong) {
    for (const std::string& value : values)
      EXPECT_TRUE(refuses([&, &name = name] { find(with(environment, {{name, value}})); }, name)) << value;
  }
  EXPECT_EQ(sentence_of([] {
              find(with(environment, {{"RANK", "2"}}));
            }),
            "the environment variables RANK=2 and WORLD_SIZE=2 contradict each other "
            "(ranks count from 0); start the run again with its launcher, or set them right.");
  // A world of one meets no other rank.
  EXPECT_EQ(find({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).world_size, 1);
  EXPECT_EQ(find(with(environment, {{"MASTER_PORT", "65530"}})).ports.size(), 6U);
}

TEST(SlurmNodes, TheFirstOfAListIsFound) {
  const auto first_of = [](const std::string& list) {
    return find(with(slurm, {{"SLURM_STEP_NODELIST", list}})).host;
  };
  EXPECT_EQ(first_of("n[01-03,7],m5"), "n01");
  EXPECT_EQ(first_of("node"), "node");
  EXPECT_EQ(first_of("r[1-2]n[8-9]x"), "r1n8x");
  EXPECT_EQ(first_of("n[098-101]"), "n098");
  for (const char* odd : {"n[", "n[]", "n[1", ",a", "n[a]", "n[9999999999]"}) {
    EXPECT_TRUE(refuses([&] { first_of(odd); }, "SLURM_STEP_NODELIST='")) << odd;
  }
}

TEST(SlurmNodes, TaskCountsAreExpanded) {
  const auto tasks_of = [](const std::string& list, const char* node) {
    return find(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}})).local_size;
  };
  EXPECT_EQ(tasks_of("2(x3),1", "2"), 2);
  EXPECT_EQ(tasks_of("2(x3),1", "3"), 1);
  EXPECT_TRUE(refuses([&] { tasks_of("2(x3),1", "4"); }, "SLURM_NODEID='4'"));
  for (const char* odd : {"0", "2(x0)", "2(x", "2(3)", "a", "1,", "1(x99999999)", "2(x1)3"}) {
    EXPECT_TRUE(refuses([&] { tasks_of(odd, "0"); }, "SLURM_STEP_TASKS_PER_NODE='")) << odd;
  }
}

}  // namespace
}  // namespace mulligan::dist_launch_environment_test
