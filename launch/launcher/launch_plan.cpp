#include "launch/launcher/launch_plan.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "framework/core/shell.h"
#include "framework/core/temporary_path.h"
#include "framework/ranks/control_messages.h"
#include "framework/ranks/control_options.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The whole of `text` as a number of at least `least`; -1 for anything else.
int number_in(std::string_view text, int least) {
  const int value = parse_number<int>(text).value_or(-1);
  return value >= least ? value : -1;
}

// 7 of a file "node7" whose name starts with "node"; -1 for other names.
int number_after(const std::string& start, const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return name.starts_with(start) ? number_in(std::string_view(name).substr(start.size()), 0) : -1;
}

fs::path system_folder(int cpu) {
  return fs::path("/sys/devices/system/cpu") / fmt::format("cpu{}", cpu);
}

// A name that the hardware threads of one core share; their list.
std::string core_name(int cpu) {
  std::ifstream file(system_folder(cpu) / "topology/thread_siblings_list");
  std::string siblings;
  std::getline(file, siblings);
  return siblings.empty() ? fmt::format("{}", cpu) : siblings;
}

// The folder of a CPU has a link, such as "node1", to its memory node.
int memory_node(int cpu) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(system_folder(cpu), ignored)) {
    if (const int node = number_after("node", entry); node >= 0) return node;
  }
  return 0;
}

// Part `part` of `parts` of the cores first..last-1; at least one core.
void take(const std::vector<PhysicalCore>& cores, std::size_t first, std::size_t last, std::size_t part,
          std::size_t parts, std::vector<int>& share) {
  const std::size_t count = last - first;
  const std::size_t begin = first + part * count / parts;
  const std::size_t end = std::max(begin + 1, first + (part + 1) * count / parts);
  for (std::size_t i = begin; i < end; ++i) {
    share.insert(share.end(), cores[i].cpus.begin(), cores[i].cpus.end());
  }
}

}  // namespace

std::vector<PhysicalCore> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::map<std::string, PhysicalCore> found;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      PhysicalCore& core = found[core_name(cpu)];
      core.memory_node = memory_node(cpu);
      core.cpus.push_back(cpu);
    }
  }
  std::vector<PhysicalCore> cores;
  for (auto& [name, core] : found) cores.push_back(std::move(core));
  std::ranges::sort(cores, {},
                    [](const PhysicalCore& core) { return std::pair(core.memory_node, core.cpus.front()); });
  return cores;
}

std::vector<std::vector<int>> core_shares(const std::vector<PhysicalCore>& cores, int ranks) {
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(ranks));
  if (cores.empty()) return shares;
  std::vector<std::size_t> starts;  // of the memory nodes, in `cores`
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (i == 0 || cores[i].memory_node != cores[i - 1].memory_node) starts.push_back(i);
  }
  // Ranks that do not divide among the nodes divide among all cores.
  if (shares.size() % starts.size() != 0) starts = {0};
  const std::size_t ranks_of_node = shares.size() / starts.size();
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const std::size_t node = rank / ranks_of_node;
    const std::size_t last = node + 1 < starts.size() ? starts[node + 1] : cores.size();
    take(cores, starts[node], last, rank % ranks_of_node, ranks_of_node, shares[rank]);
  }
  return shares;
}

namespace {

int visible_gpus() {
  int count = 0;
  if (const char* listed = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string_view text(listed);
    if (text.empty() || text.front() == '-') return 0;
    return 1 + static_cast<int>(std::ranges::count(text, ','));
  }
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", ignored)) {
    if (number_after("nvidia", entry) >= 0) ++count;
  }
  return count;
}

int ranks_of_node(const std::string& wanted) {
  if (wanted == "auto") return std::max(1, visible_gpus());
  const int count = number_in(wanted, 1);
  if (count > 0 && count <= 4096) return count;
  throw config_error("--nproc-per-node takes the number of ranks on this machine or auto, not '{}'.", wanted);
}

void set_endpoint(LaunchPlan& plan) {
  if (plan.nodes == 1) {
    plan.address = "127.0.0.1";
    return;
  }
  const std::string& endpoint = plan.endpoint;
  if (endpoint.empty()) {
    throw config_error(
        "with --nnodes {} the launchers must find node 0; give each the same --rdzv-endpoint HOST[:PORT].",
        plan.nodes);
  }
  const std::size_t colon = endpoint.rfind(':');
  plan.address = endpoint.substr(0, colon);
  plan.port = colon == std::string::npos ? kLauncherPort : number_in(endpoint.substr(colon + 1), 1);
  if (plan.address.empty() || plan.port < 1 || plan.port > 65535 - 17) {
    throw config_error("--rdzv-endpoint '{}' is not HOST or HOST:PORT with a port from 1 to 65518.",
                       endpoint);
  }
}

void set_secret(LaunchPlan& plan) {
  if (!find_secret(process_environment()).empty()) return;
  if (plan.nodes > 1) {
    throw config_error(
        "ranks on {} nodes need a shared secret: put the same random text into MULLIGAN_SECRET, or into a "
        "file that MULLIGAN_SECRET_FILE names, on every node.",
        plan.nodes);
  }
  plan.secret = random_secret();
}

void set_command(LaunchPlan& plan) {
  plan.program = plan.command.front();
  if (plan.program == "launch") throw config_error("launch cannot start itself; name what each rank runs.");
  if (plan.program.find('/') != std::string::npos) return;
  plan.program = fs::read_symlink("/proc/self/exe").string();  // a command of ours
  plan.command.insert(plan.command.begin(), "mulligan");
}

}  // namespace

LaunchPlan plan_launch(const LaunchOptions& options) {
  LaunchPlan plan;
  static_cast<LaunchOptions&>(plan) = options;
  if (plan.node >= plan.nodes) {
    throw config_error("--node-rank {} does not exist: with --nnodes {} they count from 0 to {}.", plan.node,
                       plan.nodes, plan.nodes - 1);
  }
  if (plan.standalone && plan.nodes > 1) {
    throw config_error("--standalone means one node, and --nnodes is {}; leave one of them out.", plan.nodes);
  }
  plan.host = host_name();
  const int ranks = ranks_of_node(plan.ranks_per_node);
  plan.world_size = plan.nodes * ranks;
  set_endpoint(plan);
  set_secret(plan);
  set_command(plan);
  const std::string made_up =
      fmt::format("{:%Y%m%d_%H%M%S}_{}", fmt::localtime(std::time(nullptr)), getpid());
  if (plan.run_id.empty()) plan.run_id = plan.nodes == 1 ? made_up : "none";
  if (plan.logs.empty()) plan.logs = "launch_logs/" + made_up;
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(ranks));
  if (plan.bind == "cores") shares = core_shares(allowed_cores(), ranks);
  for (int local = 0; local < ranks; ++local) {
    plan.ranks.push_back(
        {plan.node * ranks + local, local, std::move(shares[static_cast<std::size_t>(local)])});
  }
  return plan;
}

namespace {

// Of launchers that ranks would recognise before this one (TORCHELASTIC_...) or mistake for theirs.
constexpr const char* kForeign[] = {"TORCHELASTIC_", "OMPI_COMM_WORLD_", "PMI_", "MPI_LOCAL"};

}  // namespace

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  const bool bound = socket >= 0 &&
                     ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int reason = errno;
  if (socket >= 0) ::close(socket);
  if (!bound) throw run_error("the system gives no free port for the ranks: {}.", std::strerror(reason));
  return ntohs(address.sin_port);
}

Variables rank_variables(const LaunchPlan& plan, const RankPlan& rank, int restart_count, int port) {
  Variables variables = {{"RANK", std::to_string(rank.rank)},
                         {"WORLD_SIZE", std::to_string(plan.world_size)},
                         {"LOCAL_RANK", std::to_string(rank.local_rank)},
                         {"LOCAL_WORLD_SIZE", std::to_string(plan.ranks.size())},
                         {"GROUP_RANK", std::to_string(plan.node)},
                         {"MASTER_ADDR", plan.address},
                         {"MASTER_PORT", std::to_string(port)},
                         {"MULLIGAN_LAUNCH", "1"},
                         {"MULLIGAN_RESTART_COUNT", std::to_string(restart_count)},
                         {"MULLIGAN_RUN_ID", plan.run_id}};
  if (!plan.secret.empty()) variables.emplace_back("MULLIGAN_SECRET", plan.secret);
  return variables;
}

std::vector<std::string> rank_environment(const Variables& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const auto is_name = [&](const auto& variable) { return variable.first == name; };
    const auto is_start = [&](const char* start) { return name.starts_with(start); };
    if (std::ranges::any_of(variables, is_name) || std::ranges::any_of(kForeign, is_start)) continue;
    all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::string format_launch_plan(const LaunchPlan& plan) {
  std::string command;
  for (const std::string& argument : plan.command) command += " " + shell_quoted(argument);
  std::string text = fmt::format("node {} of {} ({}), ranks {} to {} of {}, up to {} restarts, logs in {}\n",
                                 plan.node, plan.nodes, plan.host, plan.ranks.front().rank,
                                 plan.ranks.back().rank, plan.world_size, plan.restarts, plan.logs);
  text += fmt::format("every rank runs:{}\n", command);
  for (const RankPlan& rank : plan.ranks) {
    const std::string bound = rank.cpus.empty() ? "not bound" : "CPUs " + number_list(rank.cpus);
    text += fmt::format("\nrank {}: {}\n", rank.rank, bound);
    for (const auto& [name, value] : rank_variables(plan, rank, 0, plan.port + 1)) {
      const bool chosen_later = name == "MASTER_PORT" && plan.nodes == 1;
      const bool hidden = name == "MULLIGAN_SECRET";
      text += fmt::format("  {}={}\n", name, chosen_later ? "(a free one)" : hidden ? "(made up)" : value);
    }
  }
  return text;
}

}  // namespace mulligan
