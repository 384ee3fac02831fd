#include "framework/run/run_ranks.h"

#include <chrono>
#include <set>
#include <utility>

#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/dist/control_channel.h"
#include "framework/dist/roll_call.h"
#include "framework/report/machine.h"
#include "framework/run/run_communicator.h"
#include "framework/run/run_plugins.h"

namespace mulligan {
namespace {

// A transfer failed, mostly because of another rank.
class TransferFailure : public Error {
 public:
  explicit TransferFailure(const Error& error) : Error(error) {}
};

// A batch whose failures are known as such, and that books the time that this rank waits for it.
class WatchedBatch final : public TransferBatch {
 public:
  WatchedBatch(std::unique_ptr<TransferBatch> batch, RankProgress& progress)
      : batch_(std::move(batch)), progress_(progress) {}
  void submit() override {
    guarded([this] { batch_->submit(); });
  }
  void join() override {
    guarded([this] { batch_->join(); });
  }

 private:
  template <typename Work>
  void guarded(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    try {
      work();
    } catch (const Error& error) {
      throw TransferFailure(error);
    }
    progress_.waited_nanoseconds += static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  }
  std::unique_ptr<TransferBatch> batch_;
  RankProgress& progress_;
};

}  // namespace

// A communicator that a verdict aborts, and whose transfers the others watch.
class RunRanks::Watched final : public Communicator {
 public:
  Watched(RunRanks& ranks, std::unique_ptr<Communicator> communicator)
      : ranks_(ranks), communicator_(std::move(communicator)) {
    ranks_.watched_.push_back(this);
    ranks_.watch();
  }
  ~Watched() override {
    std::erase(ranks_.watched_, this);
    ranks_.watch();
  }
  TransferCount transfers() const override {
    try {
      return communicator_->transfers();
    } catch (const Error& error) {
      throw TransferFailure(error);
    }
  }
  HostGroup& group() override { return communicator_->group(); }
  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override {
    return std::make_unique<WatchedBatch>(communicator_->prepare(store, std::move(transfers)),
                                          ranks_.channel_->progress());
  }
  void abort() override { communicator_->abort(); }

 private:
  RunRanks& ranks_;
  std::unique_ptr<Communicator> communicator_;
};

RunRanks::RunRanks() : given_(make_single_group()) {}

RunRanks::RunRanks(std::unique_ptr<HostGroup> group) : given_(std::move(group)) {}

RunRanks::RunRanks(const std::string& launcher, const std::function<void(const std::string&)>& log)
    : environment_(find_launch(process_environment(), launcher)) {
  if (environment_.world_size == 1) {
    given_ = make_single_group();
    return;
  }
  ControlOptions options = control_options(process_environment());
  options.log = log;
  channel_ = meet(environment_, std::move(options));
}

RunRanks::~RunRanks() = default;

HostGroup& RunRanks::group() {
  if (channel_) return *channel_;
  return *given_;
}

// Called with no verdict's callback under way, which the channel sees to.
void RunRanks::watch() {
  channel_->on_verdict({});
  channel_->count_transfers({});
  if (watched_.empty()) return;
  channel_->count_transfers([watched = watched_] {
    TransferCount all;
    for (const Communicator* communicator : watched) {
      const TransferCount one = communicator->transfers();
      all.submitted += one.submitted;
      all.completed += one.completed;
    }
    return all;
  });
  channel_->on_verdict([watched = watched_](const Verdict&) {
    for (Communicator* communicator : watched) communicator->abort();
  });
}

std::unique_ptr<Communicator> RunRanks::communicator(LoadedConfig& loaded, PluginHost& host,
                                                     Backend& backend) {
  CommunicatorOptions options;
  options.name = fmt::format("communicator {}", ++communicators_);
  options.interface_name = environment_.interface_name;
  auto made = make_run_communicator(loaded, host, group(), backend, options);
  if (!channel_) return made;
  return std::make_unique<Watched>(*this, std::move(made));
}

void RunRanks::require_same_run(const LoadedConfig& loaded, PluginHost& host) {
  if (alone()) return;
  call_roll(group(), {{"commit of the program", build_commit()},
                      {"processor's instructions", instruction_set(), Fact::Rule::any}});
  nodes_ = 0;
  for (const std::string& local_rank : group().all_gather(std::to_string(group().local_rank()))) {
    if (local_rank == "0") ++nodes_;
  }
  // Setting by setting, so that the difference is named; places may be each machine's own.
  const std::map<std::string, std::string> settings = flat_settings(loaded);
  std::string own_keys;
  for (const auto& [key, value] : settings) own_keys += key + "\n";
  std::set<std::string> keys;
  for (const std::string& list : group().all_gather(own_keys)) {
    for (std::size_t begin = 0, end; (end = list.find('\n', begin)) != std::string::npos; begin = end + 1) {
      keys.insert(list.substr(begin, end - begin));
    }
  }
  std::vector<Fact> facts;
  for (const std::string& key : keys) {
    const bool place = key.starts_with("data.") || key.ends_with("directory") || key.ends_with(".path");
    const auto own = settings.find(key);
    facts.push_back({key, own == settings.end() ? "(not set)" : own->second,
                     place ? Fact::Rule::any : Fact::Rule::equal});
  }
  call_roll(group(), std::exchange(facts, {}));
  for (const PluginHandle& plugin : plugins_in_use(loaded, host)) {
    facts.push_back(
        {fmt::format("sha256 of {} '{}'", kind_word(plugin->kind()), plugin->name()), plugin->sha256()});
  }
  call_roll(group(), std::move(facts));
}

void RunRanks::require_same_data(const std::string& shards_sha256) {
  require_same({{"sha256 of the training shards", shards_sha256}});
}

void RunRanks::require_same(const std::vector<std::pair<std::string, std::string>>& facts) {
  if (alone()) return;
  std::vector<Fact> called;
  for (const auto& [name, value] : facts) called.push_back({name, value});
  call_roll(group(), std::move(called));
}

std::shared_ptr<const void> RunRanks::patience() {
  if (!channel_) return {};
  return std::make_shared<const LongWork>(channel_->progress());
}

void RunRanks::require_running() {
  if (!channel_) return;
  if (const auto verdict = channel_->verdict()) throw verdict->error_of(channel_->rank());
}

void RunRanks::note_step() {
  if (channel_) ++channel_->progress().steps;
}

void RunRanks::run(const std::function<void()>& work) {
  if (!channel_) return work();
  try {
    work();
  } catch (const TransferFailure& error) {
    throw channel_->report_failure(error, FailureCause::communication);
  } catch (const Error& error) {
    if (error.code() == ExitCode::interrupted && agreed_stop_) {
      channel_->finish();
      throw;
    }
    throw channel_->report_failure(error);
  } catch (const std::exception& error) {
    throw channel_->report_failure(run_error("{}", error.what()));
  }
  channel_->finish();
}

}  // namespace mulligan
