// Who this process is among the processes of a run, as whatever started it says by environment variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mulligan {

struct LaunchEnvironment {
  std::string launcher =
      "none";  // mulligan launch, torchrun, env (deepspeed, a shell), openmpi, hydra, slurm
  int rank = 0, world_size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of this machine
  std::string run_id;                  // the same for all ranks; empty where the launcher gives none
  int restart_count = 0;               // attempts before this one

  // Where rank 0 listens: the first free of `ports`. Empty for one rank. The loopback address where all ranks
  // are on one machine.
  std::string host;
  std::vector<std::uint16_t> ports;
  std::string
      interface_name;  // MULLIGAN_INTERFACE: network interface, or an address, to listen at; empty: any
};

// The value of an environment variable; nothing where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// That of this process.
EnvironmentLookup process_environment();

// The first launcher whose variables are there: torchrun, env, openmpi, hydra, slurm, none; or `launcher`,
// where that is not empty. Variables of its own overrule what the launcher says: MULLIGAN_RUN_ID,
// MULLIGAN_RESTART_COUNT, and MULLIGAN_RENDEZVOUS = HOST or HOST:PORT. Throws config_error naming the
// variable that is missing or makes no sense.
LaunchEnvironment find_launch(const EnvironmentLookup& lookup, const std::string& launcher = "");

// One line for the log: "rank 3 of 8, local rank 1 of 2 (torchrun, run 4711)".
std::string describe(const LaunchEnvironment& environment);

}  // namespace mulligan
