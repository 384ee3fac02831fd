#include "launch/launcher/launch_plan.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include "framework/core/error.h"
#include "framework/ranks/control_options.h"
#include "framework/report/machine.h"
#include "launch/launcher/core_shares.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The whole of `text` as a number of at least `least`; -1 for anything else.
int number_in(std::string_view text, int least) {
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && value >= least ? value : -1;
}

int visible_gpus() {
  int count = 0;
  if (const char* listed = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string_view text(listed);
    if (text.empty() || text.front() == '-') return 0;
    return 1 + static_cast<int>(std::ranges::count(text, ','));
  }
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") && number_in(name.substr(6), 0) >= 0) ++count;
  }
  return count;
}

int ranks_of_node(const std::string& wanted) {
  if (wanted == "auto") return std::max(1, visible_gpus());
  if (wanted == "gpu") {
    if (const int count = visible_gpus(); count > 0) return count;
    throw config_error(
        "--nproc-per-node gpu starts one rank per GPU, and this machine shows none; give their number.");
  }
  const int count = number_in(wanted, 1);
  if (count > 0 && count <= 4096) return count;
  throw config_error("--nproc-per-node takes the number of ranks on this machine or auto, not '{}'.", wanted);
}

void set_endpoint(const LaunchOptions& options, LaunchPlan& plan) {
  if (plan.nodes == 1) {
    plan.address = "127.0.0.1";
    return;
  }
  const std::string& endpoint = options.endpoint;
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

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) {
    throw run_error("the system gives no random numbers for the secret of this run.");
  }
  std::string text;
  for (const unsigned char byte : random) text += fmt::format("{:02x}", byte);
  return text;
}

void set_secret(LaunchPlan& plan) {
  if (!find_secret(process_environment()).empty()) return;
  if (plan.nodes > 1) {
    throw config_error(
        "ranks on {} nodes need a shared secret: put the same random text into MULLIGAN_SECRET, or into a "
        "file that MULLIGAN_SECRET_FILE names, on every node.",
        plan.nodes);
  }
  plan.secret = random_hex(32);
}

std::string own_program() {
  std::error_code failed;
  const fs::path path = fs::read_symlink("/proc/self/exe", failed);
  if (failed) throw run_error("cannot find this program's own file: {}.", failed.message());
  return path.string();
}

void set_command(const LaunchOptions& options, LaunchPlan& plan) {
  const std::string& first = options.command.front();
  if (first == "launch") throw config_error("launch cannot start itself; name what each rank runs.");
  plan.arguments = options.command;
  plan.program = first;
  if (first.find('/') != std::string::npos) return;
  plan.program = own_program();  // a command of ours
  plan.arguments.insert(plan.arguments.begin(), "mulligan");
}

}  // namespace

LaunchPlan plan_launch(const LaunchOptions& options) {
  LaunchPlan plan;
  plan.nodes = options.nodes;
  plan.node = options.node;
  if (plan.node >= plan.nodes) {
    throw config_error("--node-rank {} does not exist: with --nnodes {} they count from 0 to {}.", plan.node,
                       plan.nodes, plan.nodes - 1);
  }
  if (options.standalone && plan.nodes > 1) {
    throw config_error("--standalone means one node, and --nnodes is {}; leave one of them out.", plan.nodes);
  }
  plan.restarts = options.restarts;
  plan.tee = options.tee;
  plan.redirects = options.redirects;
  plan.host = host_name();
  const int ranks = ranks_of_node(options.ranks_per_node);
  plan.world_size = plan.nodes * ranks;
  set_endpoint(options, plan);
  set_secret(plan);
  set_command(options, plan);
  const std::string made_up =
      fmt::format("{:%Y%m%d_%H%M%S}_{}", fmt::localtime(std::time(nullptr)), getpid());
  plan.run_id = !options.run_id.empty() ? options.run_id : plan.nodes == 1 ? made_up : "none";
  plan.logs = options.logs.empty() ? fs::path("launch_logs") / made_up : fs::path(options.logs);
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(ranks));
  if (options.bind == "cores") shares = core_shares(allowed_cores(), ranks);
  for (int local = 0; local < ranks; ++local) {
    plan.ranks.push_back(
        {plan.node * ranks + local, local, std::move(shares[static_cast<std::size_t>(local)])});
  }
  return plan;
}

}  // namespace mulligan
