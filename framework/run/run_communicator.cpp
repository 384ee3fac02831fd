#include "framework/run/run_communicator.h"

#include <chrono>
#include <utility>

#include "framework/ranks/control_channel.h"
#include "framework/ranks/roll_call.h"
#include "framework/run/run_plugins.h"

namespace mulligan {
namespace {

constexpr const char* section = "communicator";

PluginConfig resolved(const PluginTable& table, const Plugin& plugin) {
  return resolve_plugin_keys(table, plugin.name(), key_specs(plugin.name(), plugin.keys()));
}

// Not one that this file chose for another backend.
bool is_written(const std::optional<PluginTable>& table) {
  return table && (table->host.at("plugin").origin.kind != Origin::Kind::defaulted || !table->path.empty() ||
                   !table->stored_path.empty());
}

}  // namespace

const char* default_communicator(const Backend& backend) {
  return backend.queue().kind == MLG_QUEUE_CUDA ? "nccl" : "gloo";
}

bool has_own_communicator(const LoadedConfig& loaded) {
  return is_written(loaded.config.communicator);
}

std::unique_ptr<Communicator> make_run_communicator(LoadedConfig& loaded, PluginHost& host, HostGroup& group,
                                                    Backend& backend, const CommunicatorOptions& options) {
  std::optional<PluginTable>& chosen = loaded.config.communicator;
  if (group.world_size() == 1 && !is_written(chosen)) return make_self_communicator();
  PluginTable table = is_written(chosen)
                          ? *chosen
                          : read_plugin_table(nullptr, section, loaded.file, default_communicator(backend));
  const PluginHandle handle = load_plugin(host, MLG_COMMUNICATOR, table);
  auto plugin = std::make_unique<CommunicatorPlugin>(handle, resolved(table, *handle));
  if (!chosen) {
    chosen = table;
    loaded.plugins.emplace(section, resolved(table, *handle));
  }
  return make_plugin_communicator(std::move(plugin), group, backend, options);
}

namespace {

// What a batch moves, transfer by transfer.
std::vector<Fact> facts_of(const TensorStore& store, const std::vector<Transfer>& transfers) {
  std::vector<Fact> facts{{"transfers of a batch", std::to_string(transfers.size())}};
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& one = transfers[i];
    facts.push_back({fmt::format("transfer {} of a batch", i + 1),
                     fmt::format("{} of {} {} from {} to {}, root {}, element {} on",
                                 collective_name(one.kind), one.count, dtype_name(store.type(one.from).dtype),
                                 one.from, one.to, one.root, one.offset)});
  }
  return facts;
}

// A batch whose failures are known as such, that books the time that this rank waits for it, and is compared
// with the other ranks' before its library sees it.
class WatchedBatch final : public TransferBatch {
 public:
  WatchedBatch(ControlChannel& channel, std::unique_ptr<TransferBatch> batch, std::vector<Fact> facts)
      : channel_(channel), batch_(std::move(batch)), facts_(std::move(facts)) {}
  ~WatchedBatch() override {
    const CommunicatorCall call(channel_.progress());
    batch_.reset();
  }
  void submit() override {
    if (!facts_.empty()) call_roll(channel_, std::exchange(facts_, {}));
    guarded([this] { batch_->submit(); });
  }
  void join() override {
    guarded([this] { batch_->join(); });
  }

 private:
  template <typename Work>
  void guarded(Work&& work) {
    const CommunicatorCall call(channel_.progress());
    const auto start = std::chrono::steady_clock::now();
    try {
      work();
    } catch (const Error& error) {
      throw TransferFailure(error);
    }
    channel_.progress().waited_nanoseconds += static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  }
  ControlChannel& channel_;
  std::unique_ptr<TransferBatch> batch_;
  std::vector<Fact> facts_;  // until it is submitted
};

}  // namespace

class WatchedCommunicators::Watched final : public Communicator {
 public:
  Watched(WatchedCommunicators& all, std::unique_ptr<Communicator> communicator)
      : all_(all), communicator_(std::move(communicator)) {
    all_.communicators_.push_back(this);
    all_.watch();
  }
  ~Watched() override {
    std::erase(all_.communicators_, this);
    all_.watch();
    const CommunicatorCall call(all_.channel_.progress());
    communicator_.reset();
  }
  TransferCount transfers() const override {
    const CommunicatorCall call(all_.channel_.progress());
    return counted();
  }
  // The same on the channel's thread.
  TransferCount counted() const {
    try {
      return communicator_->transfers();
    } catch (const Error& error) {
      throw TransferFailure(error);
    }
  }
  HostGroup& group() override { return communicator_->group(); }
  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override {
    std::vector<Fact> facts = facts_of(store, transfers);
    const CommunicatorCall call(all_.channel_.progress());
    return std::make_unique<WatchedBatch>(all_.channel_, communicator_->prepare(store, std::move(transfers)),
                                          std::move(facts));
  }
  void abort() override { communicator_->abort(); }

 private:
  WatchedCommunicators& all_;
  std::unique_ptr<Communicator> communicator_;
};

std::unique_ptr<Communicator> WatchedCommunicators::add(
    const std::function<std::unique_ptr<Communicator>()>& make) {
  std::unique_ptr<Communicator> made;
  {
    const CommunicatorCall call(channel_.progress());
    made = make();
  }
  return std::make_unique<Watched>(*this, std::move(made));
}

// While they change nobody counts or aborts, which the channel sees to.
void WatchedCommunicators::watch() {
  channel_.on_verdict({});
  channel_.count_transfers({});
  if (communicators_.empty()) return;
  channel_.count_transfers([all = communicators_] {
    TransferCount sum;
    for (const Watched* communicator : all) {
      const TransferCount one = communicator->counted();
      sum.submitted += one.submitted;
      sum.completed += one.completed;
    }
    return sum;
  });
  channel_.on_verdict([all = communicators_](const Verdict&) {
    for (Watched* communicator : all) communicator->abort();
  });
}

}  // namespace mulligan
