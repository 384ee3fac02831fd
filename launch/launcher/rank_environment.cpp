#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/shell.h"
#include "framework/report/machine.h"
#include "launch/launcher/launch_plan.h"

namespace mulligan {
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
    const std::string bound = rank.cpus.empty() ? "not bound" : "CPUs " + cpu_list(rank.cpus);
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
