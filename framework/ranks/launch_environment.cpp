#include "framework/ranks/launch_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_number.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

constexpr std::size_t most_nodes = 65536;

[[noreturn]] void refuse_list(std::string_view list, std::string_view variable) {
  throw config_error("{}='{}' is not a list as Slurm writes it; start the run with srun.", variable,
                     printable(list));
}

// Of a compressed list of Slurm: "n[01-03,7],m5" -> n01. Throws config_error that names `variable` if the list is malformed.
std::string first_node(std::string_view list, std::string_view variable) {
  std::string name;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      name += list[at];
      continue;
    }
    const std::size_t end = list.find(']', at);
    const std::string_view numbers = list.substr(at + 1, end - at - 1);
    const std::string_view first = numbers.substr(0, numbers.find_first_not_of("0123456789"));
    if (end == std::string_view::npos || first.empty() || first.size() > 9) refuse_list(list, variable);
    name += first;
    at = end;
  }
  if (name.empty()) refuse_list(list, variable);
  return name;
}

// "2(x3),1" -> 2 2 2 1, at most most_nodes of them. Throws as above.
std::vector<int> expand_task_counts(std::string_view list, std::string_view variable) {
  if (list.empty() || list.back() == ',') refuse_list(list, variable);
  std::istringstream items{std::string(list)};
  std::vector<int> counts;
  for (std::string item; std::getline(items, item, ',');) {
    int tasks = 0, times = 1;
    int end = 0;  // of what was read
    std::sscanf(item.c_str(), "%9d%n(x%9d)%n", &tasks, &end, &times, &end);
    if (end != std::ssize(item) || tasks < 1 || times < 1 ||
        counts.size() + static_cast<std::size_t>(times) > most_nodes)
      refuse_list(list, variable);
    counts.insert(counts.end(), static_cast<std::size_t>(times), tasks);
  }
  return counts;
}

// "A", "A and B", "A, B and C".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  }
  return text;
}

struct HostAndPort {
  std::string host;
  std::optional<std::uint16_t> port;
};

// Environment variables as numbers and addresses, with sentences for missing or invalid ones.
class LaunchVariables {
 public:
  LaunchVariables(const EnvironmentLookup& lookup, std::string launcher)
      : lookup_(lookup), launcher_(std::move(launcher)) {}

  // Nothing if the variable is not set or empty.
  std::optional<std::string> text(const std::string& name) const {
    std::optional<std::string> value = lookup_(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  bool has(const std::string& name) const { return text(name).has_value(); }
  // The first of the names that is set.
  std::optional<std::string> first_text(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (auto value = text(name)) return value;
    }
    return std::nullopt;
  }
  std::string require_text(const std::string& name) const {
    require({name.c_str()});
    return *text(name);
  }
  // Throws config_error that names each of the names that are not set.
  void require(std::initializer_list<const char*> names) const {
    std::vector<std::string> missing;
    for (const char* name : names) {
      if (!has(name)) missing.emplace_back(name);
    }
    if (missing.empty()) return;
    throw config_error(
        "the environment variable{} {} {} missing, which a process started by {} has; choose another launcher "
        "with --launcher, or none.",
        missing.size() == 1 ? "" : "s", listed(missing), missing.size() == 1 ? "is" : "are", launcher_);
  }

  // Whole numbers from `least` to `most`. Throw config_error that names the variable and its value.
  std::optional<int> number(const std::string& name, int least, int most) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    const auto result = parse_number<int>(*value);
    if (!result || *result < least || *result > most) {
      throw config_error(
          "the environment variable {}='{}' is not a whole number from "
          "{} to {}; start the run again with {}, or set it right.",
          name, printable(*value), least, most, launcher_);
    }
    return result;
  }
  int require_number(const std::string& name, int least, int most) const {
    require_text(name);
    return *number(name, least, most);
  }

  // HOST, HOST:PORT, [ADDRESS]:PORT or an IPv6 address.
  std::optional<HostAndPort> host_and_port(const std::string& name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    std::string host = *value, port;
    if (host.front() == '[') {
      const std::size_t end = host.find(']');
      if (end != std::string::npos && end + 1 < host.size() && host[end + 1] == ':')
        port = host.substr(end + 2);
      host = end == std::string::npos ? "" : host.substr(1, end - 1);
    } else if (std::ranges::count(host, ':') == 1) {
      port = host.substr(host.find(':') + 1);
      host.resize(host.find(':'));
    }
    const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127; };
    if (host.empty() || host.size() > 255 || std::ranges::any_of(host, odd)) {
      throw config_error(
          "the environment variable {}='{}' is no HOST or HOST:PORT; name rank 0's machine there.", name,
          printable(*value));
    }
    if (port.empty()) return HostAndPort{host, std::nullopt};
    const EnvironmentLookup of_port = [&](const std::string&) { return port; };
    const auto number = LaunchVariables(of_port, launcher_).number("the port of " + name, 1, 65535);
    return HostAndPort{host, static_cast<std::uint16_t>(*number)};
  }

 private:
  const EnvironmentLookup& lookup_;
  std::string launcher_;
};

constexpr int most_ranks = 65536;
constexpr int most_ports = 17;  // the launcher's own and 16 more
constexpr const char* one_machine = "127.0.0.1";

// Names of the variables that say who a process is.
struct PositionNames {
  const char *rank, *size, *local_rank, *local_size;
};

LaunchEnvironment position(const LaunchVariables& variables, const PositionNames& names) {
  variables.require({names.rank, names.size, names.local_rank, names.local_size});
  LaunchEnvironment found;
  found.world_size = variables.require_number(names.size, 1, most_ranks);
  found.rank = variables.require_number(names.rank, 0, most_ranks);
  found.local_size = variables.require_number(names.local_size, 1, most_ranks);
  found.local_rank = variables.require_number(names.local_rank, 0, most_ranks);
  const auto require = [](bool holds, const char* first, int value, const char* second, int other) {
    if (holds) return;
    throw config_error(
        "the environment variables {}={} and {}={} contradict each other (ranks "
        "count from 0); start the run again with its launcher, or set them right.",
        first, value, second, other);
  };
  require(found.rank < found.world_size, names.rank, found.rank, names.size, found.world_size);
  require(found.local_size <= found.world_size, names.local_size, found.local_size, names.size,
          found.world_size);
  require(found.local_rank < found.local_size, names.local_rank, found.local_rank, names.local_size,
          found.local_size);
  require(found.local_rank <= found.rank, names.local_rank, found.local_rank, names.rank, found.rank);
  return found;
}

LaunchEnvironment read_torchrun(const LaunchVariables& variables) {
  LaunchEnvironment found = position(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  found.run_id = variables.text("TORCHELASTIC_RUN_ID").value_or("");
  found.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT", 0, 1 << 30).value_or(0);
  return found;
}

// If one process per machine is started (Kubernetes, a shell), local numbers are missing; deepspeed renames them.
LaunchEnvironment read_environment(const LaunchVariables& variables) {
  const bool deepspeed = !variables.has("LOCAL_WORLD_SIZE") && variables.has("LOCAL_SIZE");
  const char* local_size = deepspeed ? "LOCAL_SIZE" : "LOCAL_WORLD_SIZE";
  if (variables.has("LOCAL_RANK") || variables.has(local_size)) {
    return position(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK", local_size});
  }
  const EnvironmentLookup alone = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "LOCAL_RANK") return "0";
    return name == "LOCAL_WORLD_SIZE" ? "1" : variables.text(name);
  };
  return position({alone, "env"}, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
}

LaunchEnvironment read_openmpi(const LaunchVariables& variables) {
  LaunchEnvironment found = position(variables, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                                 "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  found.run_id = variables.first_text({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}).value_or("");
  return found;
}

LaunchEnvironment read_hydra(const LaunchVariables& variables) {
  return position(variables, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
}

LaunchEnvironment read_slurm(const LaunchVariables& variables) {
  const char* per_node = "SLURM_STEP_TASKS_PER_NODE";
  variables.require({"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID", per_node,
                     "SLURM_JOB_ID", "SLURM_STEP_ID"});
  const std::vector<int> tasks = expand_task_counts(variables.require_text(per_node), per_node);
  const int node = variables.require_number("SLURM_NODEID", 0, static_cast<int>(tasks.size()) - 1);
  const std::string local_size = std::to_string(tasks[static_cast<std::size_t>(node)]);
  const EnvironmentLookup with_local_size = [&](const std::string& name) {
    return name == per_node ? local_size : variables.text(name);
  };
  LaunchEnvironment found = position({with_local_size, "slurm"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", per_node});
  found.run_id =
      fmt::format("{}.{}", variables.require_text("SLURM_JOB_ID"), variables.require_text("SLURM_STEP_ID"));
  found.restart_count = variables.number("SLURM_RESTART_COUNT", 0, 1 << 30).value_or(0);
  return found;
}

LaunchEnvironment read_none(const LaunchVariables&) {
  return {};
}

struct Launcher {
  const char* name;
  std::vector<const char*> signs;  // variables that are there when it started this process
  std::vector<const char*> parts;  // others that say which of several processes this one is
  LaunchEnvironment (*read)(const LaunchVariables&);
  const char* how_to_name_host;
};

const std::array launchers{
    Launcher{"torchrun", {"TORCHELASTIC_RUN_ID"}, {}, read_torchrun, "torchrun --rdzv-endpoint HOST:PORT"},
    Launcher{"env",
             {"RANK", "WORLD_SIZE", "MASTER_ADDR"},
             {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
             read_environment,
             "MASTER_ADDR=HOST"},
    Launcher{"openmpi",
             {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
             read_openmpi,
             "mpirun -x MASTER_ADDR=HOST"},
    Launcher{"hydra",
             {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
             {"MPI_LOCALNRANKS"},
             read_hydra,
             "mpiexec -genv MASTER_ADDR HOST"},
    Launcher{"slurm",
             {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
             {"SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID", "SLURM_NODEID"},
             read_slurm,
             "srun --export=ALL,MASTER_ADDR=HOST"},
    Launcher{"none", {}, {}, read_none, ""},
};

// The script of sbatch has these, all 0, and is no rank.
bool is_of_a_script(const LaunchVariables& variables, const std::string& name) {
  const bool position = name == "SLURM_PROCID" || name == "SLURM_LOCALID" || name == "SLURM_NODEID";
  return position && variables.text(name) == "0";
}

// Throws config_error where some variables say that this process is one of several, and others that would say
// which are missing: each such process would take itself for a whole run, all in one run directory. A rank 0
// of 1 needs no more.
void refuse_incomplete(const LaunchVariables& variables) {
  for (const Launcher& launcher : launchers) {
    if (launcher.signs.size() < 2) continue;
    const auto is_set = [&](const char* name) { return variables.has(name); };
    if (variables.text(launcher.signs[0]) == "0" && variables.text(launcher.signs[1]) == "1") continue;
    std::vector<std::string> set, missing;
    for (const char* name : launcher.signs) {
      if (!is_set(name)) missing.emplace_back(name);
    }
    for (const auto* names : {&launcher.signs, &launcher.parts}) {
      for (const char* name : *names) {
        if (is_set(name) && !is_of_a_script(variables, name)) set.emplace_back(name);
      }
    }
    if (set.empty() || missing.empty()) continue;
    throw config_error(
        "{} {} set in the environment, but {} {} missing; set all of them for one of several ranks, or unset "
        "{} for a process alone.",
        listed(set), set.size() == 1 ? "is" : "are", listed(missing), missing.size() == 1 ? "is" : "are",
        listed(set));
  }
}

// Launchers whose variables say who this process is, and are not read.
struct OtherLauncher {
  const char *name, *rank, *size;  // size may be null
};
constexpr OtherLauncher other_launchers[] = {{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                             {"PALS", "PALS_RANKID", "PALS_SIZE"},
                                             {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
                                             {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                             {"PMIx", "PMIX_RANK", nullptr}};

void refuse_other_launchers(const LaunchVariables& variables) {
  for (const OtherLauncher& other : other_launchers) {
    for (const auto& [variable, alone] : {std::pair{other.rank, "0"}, std::pair{other.size, "1"}}) {
      const std::string value = variable == nullptr ? "" : variables.text(variable).value_or("");
      if (value.empty() || value == alone) continue;
      throw config_error(
          "{}={} in the environment says that {} started this process as one of several, and mulligan does not read its "
          "variables; set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and MASTER_ADDR from them, or unset {} for a process "
          "alone.",
          variable, printable(value), other.name, variable);
    }
  }
}

const Launcher& choose(const EnvironmentLookup& lookup, const std::string& name) {
  const LaunchVariables variables(lookup, name);
  for (const Launcher& launcher : launchers) {
    const auto is_there = [&](const char* sign) { return variables.has(sign); };
    if (name.empty() ? std::ranges::all_of(launcher.signs, is_there) : name == launcher.name) {
      if (name.empty() && launcher.signs.empty()) {
        refuse_incomplete(variables);
        refuse_other_launchers(variables);
      }
      return launcher;
    }
  }
  throw config_error("there is no launcher '{}'; choose torchrun, env, openmpi, hydra, slurm or none.",
                     printable(name));
}

std::string find_host(const LaunchVariables& variables, const Launcher& launcher, bool same_machine) {
  // Not MASTER_ADDR, which may be a name that stands for another interface, where a secret would be needed.
  if (same_machine) return one_machine;
  if (auto master = variables.host_and_port("MASTER_ADDR")) return master->host;
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_NODELIST"}) {
    if (auto nodes = variables.text(list)) return first_node(*nodes, list);
  }
  throw config_error(
      "the ranks of the run are on several machines, and nothing names "
      "that of rank 0; start it with {}, or set MULLIGAN_RENDEZVOUS=HOST.",
      launcher.how_to_name_host);
}

// The same for all processes of a job, and another for other jobs of the machine, most probably.
int port_of_job(const std::string& run_id) {
  return 20000 + static_cast<int>(std::stoul(sha256_hex(run_id).substr(0, 7), nullptr, 16) % 10000);
}

void set_meeting_place(const LaunchVariables& variables, const Launcher& launcher,
                       LaunchEnvironment& result) {
  const auto own = variables.host_and_port("MULLIGAN_RENDEZVOUS");
  result.host = own ? own->host : find_host(variables, launcher, result.local_size == result.world_size);
  // Torchrun's own store listens at MASTER_PORT.
  const bool port_is_taken =
      result.launcher == "torchrun" && variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  int first = 0, count = most_ports;
  if (own && own->port) {
    first = *own->port;
  } else if (const auto port = variables.number("MASTER_PORT", 1, 65535)) {
    first = port_is_taken ? *port + 1 : *port;
    if (port_is_taken) --count;
  } else {
    first = port_of_job(result.run_id);
  }
  for (int port = first; port < first + count && port <= 65535; ++port) {
    result.ports.push_back(static_cast<std::uint16_t>(port));
  }
  if (result.ports.empty()) {
    throw config_error("no port is left above MASTER_PORT={}; start the run with a lower one.", first - 1);
  }
}

}  // namespace

EnvironmentLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

LaunchEnvironment find_launch(const EnvironmentLookup& lookup, const std::string& name) {
  const Launcher& launcher = choose(lookup, name);
  const LaunchVariables variables(lookup, launcher.name);
  LaunchEnvironment result = launcher.read(variables);
  result.launcher = launcher.name;
  // It sets the variables that others do, so that any program can be started by it.
  if (result.launcher == "env" && variables.text("MULLIGAN_LAUNCH")) result.launcher = "mulligan launch";
  result.interface_name = variables.text("MULLIGAN_INTERFACE").value_or("");
  result.restart_count =
      variables.number("MULLIGAN_RESTART_COUNT", 0, 1 << 30).value_or(result.restart_count);
  result.run_id = variables.text("MULLIGAN_RUN_ID").value_or(result.run_id);
  if (result.run_id.empty() && result.world_size > 1) {
    result.run_id = variables.first_text({"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}).value_or("");
  }
  if (result.run_id.size() > 255) {
    throw config_error(
        "the run's name from the launcher ({}...) has {} bytes; set MULLIGAN_RUN_ID to one of at most 255.",
        printable(result.run_id.substr(0, 40)), result.run_id.size());
  }
  if (result.world_size > 1) set_meeting_place(variables, launcher, result);
  return result;
}

std::string describe(const LaunchEnvironment& environment) {
  std::string text =
      fmt::format("rank {} of {}, local rank {} of {} ({}", environment.rank, environment.world_size,
                  environment.local_rank, environment.local_size, environment.launcher);
  if (!environment.run_id.empty()) text += fmt::format(", run {}", printable(environment.run_id));
  if (environment.restart_count > 0) text += fmt::format(", restart {}", environment.restart_count);
  return text + ")";
}

}  // namespace mulligan
