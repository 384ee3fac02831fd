// This process's place among the processes of a run, from the launcher's environment variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

struct LaunchEnvironment {
  std::string launcher =
      "none";  // mulligan launch, torchrun, env (deepspeed, a shell), openmpi, hydra, slurm
  int rank = 0, world_size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of this machine
  std::string run_id;                  // the same for all ranks; empty if the launcher gives none
  int restart_count = 0;               // attempts before this one

  // Rank 0's address: it listens at the first free one of `ports`. Empty for one rank. If all ranks are on one machine, it is the
  // loopback.
  std::string host;
  std::vector<std::uint16_t> ports;
  std::string
      interface_name;  // MULLIGAN_INTERFACE: network interface, or an address, to listen at; empty: any
};

// The value of an environment variable; nothing if it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// The environment of this process.
EnvironmentLookup process_environment();

// Reads the variables of the first launcher that has set some: torchrun, env, openmpi, hydra, slurm, none. If `launcher` is not
// empty, it names the launcher. MULLIGAN_RUN_ID, MULLIGAN_RESTART_COUNT and MULLIGAN_RENDEZVOUS = HOST or HOST:PORT overrule the
// launcher. Throws config_error that names a missing or invalid variable.
LaunchEnvironment find_launch(const EnvironmentLookup& lookup, const std::string& launcher = "");

// One line for the log: "rank 3 of 8, local rank 1 of 2 (torchrun, run 4711)".
std::string describe(const LaunchEnvironment& environment);

}  // namespace mulligan
