// What `mulligan launch` starts: the ranks of this node, their environment and their CPUs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace mulligan {

// A physical core with its logical CPUs.
struct PhysicalCore {
  int memory_node = 0;    // NUMA node
  std::vector<int> cpus;  // its hardware threads that this process may use, ascending
};

// The cores that this process may run on (its affinity), by memory node and first CPU. If the system does not give its
// topology, each CPU counts as a core of node 0.
std::vector<PhysicalCore> allowed_cores();

// One list of CPUs per rank: whole neighbouring cores, in shares as equal as possible. If the number of ranks is a
// multiple of the number of memory nodes, no rank gets cores of two nodes. If there are more ranks than cores, ranks
// share cores.
std::vector<std::vector<int>> core_shares(const std::vector<PhysicalCore>& cores, int ranks);

// The user's options; names and defaults are torchrun's.
struct LaunchOptions {
  int nodes = 1;
  std::string ranks_per_node = "1";  // a number, or "auto": one per visible GPU, one where there is none
  int node = 0;
  std::string endpoint;  // HOST[:PORT] of node 0
  int restarts = 0;
  std::string logs;            // folder; "": launch_logs/ID
  std::string run_id;          // "": made up for one node, "none" for several
  std::string bind = "cores";  // or "none"
  int tee = 2;        // streams of ranks > 0 that the terminal shows: 1 standard output, 2 errors, 3 both
  int redirects = 0;  // streams, of rank 0 too, that only the logs show
  bool standalone = false;
  std::vector<std::string> command;  // of every rank
};

struct RankPlan {
  int rank = 0, local_rank = 0;
  std::vector<int> cpus;  // empty: not bound
};

// The options with what was left to choose filled in; `command` begins with the program's name.
struct LaunchPlan : LaunchOptions {
  std::string program;  // path
  int world_size = 1;
  std::string host;             // of this machine, for people
  std::string address;          // of rank 0
  int port = 0;                 // of the launchers, where there are several nodes
  std::string secret;           // "": in the environment already
  std::vector<RankPlan> ranks;  // of this node
};

// The default port of the launcher of node 0; ranks meet at the ports that follow.
inline constexpr int kLauncherPort = 29400;

// Throws config_error if options do not fit together. Reads this machine's CPUs and GPUs and the environment
// (MULLIGAN_SECRET, MULLIGAN_SECRET_FILE, CUDA_VISIBLE_DEVICES).
LaunchPlan plan_launch(const LaunchOptions& options);

// A TCP port that is free at this moment. Throws run_error.
int free_port();

using Variables = std::vector<std::pair<std::string, std::string>>;
// A rank's environment variables besides the launcher's own: RANK, WORLD_SIZE, ... `port`: MASTER_PORT.
Variables rank_variables(const LaunchPlan& plan, const RankPlan& rank, int restart_count, int port);

// This process's environment with `variables` added and other launchers' variables removed, because a rank takes the first
// launcher whose variables it finds. "NAME=VALUE" each.
std::vector<std::string> rank_environment(const Variables& variables);

// What --dry-run prints: the CPUs, variables and command of each rank. The secret is not shown.
std::string format_launch_plan(const LaunchPlan& plan);

}  // namespace mulligan
