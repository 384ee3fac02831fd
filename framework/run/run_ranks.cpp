#include "framework/run/run_ranks.h"

#include <algorithm>
#include <utility>

#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/data/data_identity.h"
#include "framework/ranks/control_channel.h"
#include "framework/ranks/roll_call.h"
#include "framework/report/machine.h"
#include "framework/run/run_plugins.h"

namespace mulligan {
namespace {

constexpr const char* communicator_section = "communicator";

// Whether the configuration names a communicator; not where one was chosen for another backend.
bool is_written(const std::optional<PluginTable>& table) {
  return table && (table->host.at("plugin").origin.kind != Origin::Kind::defaulted || !table->path.empty() ||
                   !table->stored_path.empty());
}

// Which settings say where something lies, which may be each machine's own. What lies there is compared itself.
bool is_place(const std::string& key) {
  const auto ends = [&](const char* suffix) { return key.ends_with(suffix); };
  if (key.starts_with("data.mix.")) return ends(".train");
  return key == "data.train" || key == "data.validation" || key == "data.tokenizer" ||
         key == "data.validation_bytes" || key == "data.validation_documents" || key == "data.prefetch" ||
         ends("directory") || ends(".path") || ends(".library_path");
}

}  // namespace

std::unique_ptr<Communicator> make_run_communicator(LoadedConfig& loaded, PluginHost& host, HostGroup& group,
                                                    Backend& backend, const CommunicatorOptions& options) {
  std::optional<PluginTable>& chosen = loaded.config.communicator;
  if (group.world_size() == 1 && !is_written(chosen)) return make_self_communicator();
  PluginTable table = is_written(chosen)
                          ? *chosen
                          : read_plugin_table(nullptr, communicator_section, loaded.file,
                                              backend.queue().kind == MLG_QUEUE_CUDA ? "nccl" : "gloo");
  const PluginHandle handle = load_plugin(host, MLG_COMMUNICATOR, table);
  PluginConfig keys = resolve_plugin_keys(table, handle->name(), key_specs(handle->name(), handle->keys()));
  auto plugin = std::make_unique<CommunicatorPlugin>(handle, keys);
  if (!chosen) {
    chosen = table;
    loaded.plugins.emplace(communicator_section, std::move(keys));
  }
  return make_plugin_communicator(std::move(plugin), group, backend, options);
}

RunRanks::RunRanks(std::unique_ptr<HostGroup> group) : given_(std::move(group)) {}

RunRanks::RunRanks(const std::string& launcher, const std::function<void(const std::string&)>& log)
    : environment_(find_launch(process_environment(), launcher)) {
  if (environment_.world_size == 1) {
    given_ = make_single_group();
    return;
  }
  ControlOptions options = control_options(process_environment());
  options.log = log;
  if (options.secret.empty() && is_loopback_name(environment_.host))
    options.secret = user_secret(process_environment());
  channel_ = meet(environment_, std::move(options));
  // Agents of torchrun count for themselves.
  const auto most = [](const std::vector<std::string>& counts) {
    return *std::ranges::max_element(counts, {}, [](const std::string& count) { return std::stoi(count); });
  };
  environment_.restart_count = std::stoi(channel_->consult(std::to_string(environment_.restart_count), most));
}

RunRanks::~RunRanks() = default;

HostGroup& RunRanks::group() {
  if (channel_) return *channel_;
  return *given_;
}

std::unique_ptr<Communicator> RunRanks::communicator(LoadedConfig& loaded, PluginHost& host,
                                                     Backend& backend) {
  CommunicatorOptions options;
  options.name = fmt::format("communicator {}", ++communicators_);
  options.interface_name = listening_address();
  if (!channel_ && !alone_ && alone() && is_written(loaded.config.communicator)) {
    alone_ = std::make_unique<ControlChannel>(LaunchEnvironment{}, control_options(process_environment()));
  }
  options.channel = channel_ ? channel_.get() : alone_.get();
  // A library may hang as soon as it is loaded.
  const CommunicatorCall call(options.channel);
  return make_run_communicator(loaded, host, group(), backend, options);
}

// Where ranks of other machines reach this one: over the interface on which it reaches them.
std::string RunRanks::listening_address() {
  if (!channel_) return environment_.interface_name;
  const std::string own = channel_->own_address();
  const std::string first = channel_->broadcast(own);
  if (!environment_.interface_name.empty() || group().local_size() == group().world_size()) {
    return environment_.interface_name;
  }
  if (!own.empty()) return own;
  return first.empty() ? "127.0.0.1" : first;  // a rank of rank 0's machine; without others all of them
}

void RunRanks::require_same_run(const LoadedConfig& loaded, PluginHost& host) {
  if (alone()) return;
  double first_on_machine[] = {group().local_rank() == 0 ? 1.0 : 0.0};
  group().sum(first_on_machine);
  nodes_ = static_cast<int>(first_on_machine[0]);
  std::vector<Fact> facts{{"commit of the program", build_commit()}};
  // Setting by setting, so that the difference is named.
  for (const auto& [key, value] : flat_settings(loaded)) {
    if (!is_place(key)) facts.push_back({key, value});
  }
  for (const PluginHandle& plugin : plugins_in_use(loaded, host)) {
    facts.push_back(
        {fmt::format("sha256 of {} '{}'", kind_word(plugin->kind()), plugin->name()), plugin->sha256()});
  }
  call_roll(group(), std::move(facts));
}

void RunRanks::require_same_data(const DataIdentity& data) {
  require_same({{"sha256 of the training shards", data.train.sha256},
                {"sha256 of the validation shards", data.validation.sha256},
                {"sha256 of the tokenizer", data.tokenizer_sha256},
                {"sha256 of the bytes that tokens count", data.byte_table_sha256},
                {"rows of the validation", data.packing}});
}

void RunRanks::require_same(const std::vector<std::pair<std::string, std::string>>& facts) {
  if (alone()) return;
  std::vector<Fact> called;
  for (const auto& [name, value] : facts) called.push_back({name, value});
  call_roll(group(), std::move(called));
}

void RunRanks::note_restarts(std::int64_t restarts) {
  environment_.restart_count = static_cast<int>(group().agree(static_cast<double>(restarts)));
}

std::shared_ptr<const void> RunRanks::patience() {
  if (!channel_) return {};
  RankProgress& progress = channel_->progress();
  ++progress.long_works;
  return {&progress, [](RankProgress* of) { --of->long_works; }};
}

void RunRanks::require_running() {
  if (!channel_) return;
  if (const auto verdict = channel_->verdict()) throw verdict->error_of(channel_->rank());
}

void RunRanks::note_step() {
  if (channel_) ++channel_->progress().steps;
  if (alone_) ++alone_->progress().steps;
}

void RunRanks::run(const std::function<void()>& work) {
  try {
    work();
  } catch (const TransferFailure& error) {
    if (channel_) throw channel_->report_failure(error, FailureCause::communication);
    const auto verdict = alone_ ? alone_->verdict() : std::nullopt;
    if (verdict) throw verdict->error_of(0);  // which aborted the transfer
    throw;
  } catch (const Error& error) {
    if (!channel_) throw;
    if (error.code() != ExitCode::interrupted || !agreed_stop_) throw channel_->report_failure(error);
    channel_->finish();
    throw;
  } catch (const std::exception& error) {
    if (channel_) throw channel_->report_failure(run_error("{}", error.what()));
    throw;
  }
  if (channel_) channel_->finish();
}

}  // namespace mulligan
