#include "framework/ranks/plugin_communicator.h"

#include <mulligan/communicator.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "framework/core/steady_time.h"
#include "framework/ranks/control_channel.h"
#include "framework/ranks/roll_call.h"

namespace mulligan {
namespace {

// Runs `body`; an exception becomes a sentence that is valid until this thread's next call.
template <typename Body>
mlg_error told(Body&& body) {
  thread_local std::string sentence;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    sentence = error.what();
    return sentence.c_str();
  }
}

static_assert(static_cast<int>(Collective::all_to_all) == MLG_ALL_TO_ALL &&
              static_cast<int>(Collective::reduce) == MLG_REDUCE);

// A stretch of device memory and the host's copy of it.
struct Staged {
  std::byte *device, *host;
  std::size_t bytes;
};

// Shared by the communicator and its batches.
struct Connection {
  std::unique_ptr<CommunicatorPlugin> plugin;
  HostGroup& group;
  Backend& backend;
  ControlChannel* channel;  // null: calls are not counted
  std::atomic<std::uint64_t> submitted = 0;

  // Failures of `work` are known as those of transfers, and the time that this rank waits is booked.
  template <typename Work>
  void transfer(Work&& work) {
    const CommunicatorCall call(channel);
    const SteadyTime start = std::chrono::steady_clock::now();
    try {
      work();
    } catch (const Error& error) {
      throw TransferFailure(error);
    }
    if (!channel) return;
    channel->progress().waited_nanoseconds += static_cast<std::uint64_t>(1e9 * seconds_since(start));
  }
};

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

class PluginBatch final : public TransferBatch {
 public:
  PluginBatch(Connection& connection, TensorStore& store, const std::vector<Transfer>& transfers, bool stages)
      : connection_(connection) {
    const int rank = connection.group.rank(), world_size = connection.group.world_size();
    if (connection.channel) facts_ = facts_of(store, transfers);
    std::vector<mlg_collective> list;
    for (const Transfer& transfer : transfers) {
      const TransferExtent extent = transfer_extent(store, transfer, rank, world_size);
      auto* from = static_cast<std::byte*>(store.address(transfer.from));
      auto* to = static_cast<std::byte*>(store.address(transfer.to));
      if (stages) {
        const bool reads = transfer.kind != Collective::broadcast || transfer.root == rank;
        stage(transfer, extent, reads, from, to);
      }
      list.push_back({static_cast<std::int32_t>(transfer.kind), store.type(transfer.from).dtype,
                      transfer.root, from + extent.from_offset, to + extent.to_offset, transfer.count});
    }
    const CommunicatorCall call(connection.channel);
    prepared_ = connection.plugin->prepare(list);
  }
  ~PluginBatch() override {
    const CommunicatorCall call(connection_.channel);
    prepared_.reset();
  }

  void submit() override {
    if (!facts_.empty()) call_roll(connection_.group, std::exchange(facts_, {}));
    connection_.transfer([this] {
      for (const Staged& one : downloads_) connection_.backend.download(one.host, one.device, one.bytes);
      ticket_ = connection_.plugin->submit(prepared_);
      connection_.submitted = ticket_;
    });
  }
  void join() override {
    if (ticket_ == 0) return;
    connection_.transfer([this] {
      connection_.plugin->join(std::exchange(ticket_, 0));
      for (const Staged& one : uploads_) connection_.backend.upload(one.device, one.host, one.bytes);
    });
  }

 private:
  // Puts buffers of the host in the place of the tensors, one where they are one.
  void stage(const Transfer& transfer, const TransferExtent& extent, bool reads, std::byte*& from,
             std::byte*& to) {
    const auto buffer = [&](std::size_t bytes) {
      // std::max_align_t: sums read whole elements.
      return buffers_.emplace_back(std::make_unique<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 1))
          .get();
    };
    const bool in_place = transfer.from == transfer.to;
    const std::size_t from_end = extent.from_offset + extent.from_bytes;
    const std::size_t to_end = extent.to_offset + extent.to_bytes;
    auto* host_from = reinterpret_cast<std::byte*>(buffer(in_place ? std::max(from_end, to_end) : from_end));
    auto* host_to = in_place ? host_from : reinterpret_cast<std::byte*>(buffer(to_end));
    const auto add = [](std::vector<Staged>& list, std::byte* device, std::byte* host, std::size_t offset,
                        std::size_t bytes) {
      if (bytes > 0) list.push_back({device + offset, host + offset, bytes});
    };
    if (reads) add(downloads_, from, host_from, extent.from_offset, extent.from_bytes);
    add(uploads_, to, host_to, extent.to_offset, extent.to_bytes);
    from = host_from;
    to = host_to;
  }

  Connection& connection_;
  std::vector<std::unique_ptr<std::max_align_t[]>> buffers_;
  std::vector<Staged> downloads_, uploads_;
  std::vector<Fact> facts_;  // until it is submitted
  CommunicatorPlugin::Prepared prepared_;
  std::uint64_t ticket_ = 0;  // of the submit() that is not joined yet
};

class PluginCommunicator final : public Communicator {
 public:
  PluginCommunicator(std::unique_ptr<CommunicatorPlugin> plugin, HostGroup& group, Backend& backend,
                     const CommunicatorOptions& options)
      : name_(options.name),
        interface_name_(options.interface_name),
        connection_{std::move(plugin), group, backend, options.channel},
        stages_(backend.queue().kind == MLG_QUEUE_NONE) {
    mlg_queue queue = backend.queue();
    if (stages_) queue = {MLG_QUEUE_HOST, nullptr, nullptr};
    describe_group();
    connection_.plugin->open(table_, queue, options.open_seconds);
    if (options.channel)
      options.channel->watch(
          this, [this] { return counted(); }, [this](const Verdict&) { abort(); });
  }
  ~PluginCommunicator() override {
    if (connection_.channel) connection_.channel->forget(this);
    const CommunicatorCall call(connection_.channel);
    connection_.plugin.reset();
  }

  HostGroup& group() override { return connection_.group; }
  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override {
    if (&store.backend() != &connection_.backend) {
      throw std::logic_error("a communicator moves tensors of its own backend only");
    }
    return std::make_unique<PluginBatch>(connection_, store, transfers, stages_);
  }
  TransferCount transfers() const override {
    const CommunicatorCall call(connection_.channel);
    return counted();
  }
  void abort() override { connection_.plugin->abort(); }

 private:
  void describe_group() {
    HostGroup& group = connection_.group;
    table_.rank = group.rank();
    table_.size = group.world_size();
    table_.local_rank = group.local_rank();
    table_.local_size = group.local_size();
    table_.interface_name = interface_name_.c_str();
    table_.self = this;
    table_.put = [](void* self, const char* key, const void* value, std::size_t bytes) {
      auto& own = *static_cast<PluginCommunicator*>(self);
      return told([&] {
        own.connection_.group.put(own.name_ + "/" + key, {static_cast<const char*>(value), bytes});
      });
    };
    table_.get = [](void* self, const char* key, void* value, std::size_t* bytes, double seconds) {
      auto& own = *static_cast<PluginCommunicator*>(self);
      return told([&] {
        const std::string found = own.connection_.group.get(own.name_ + "/" + key, seconds);
        std::memcpy(value, found.data(), std::min(*bytes, found.size()));
        *bytes = found.size();
      });
    };
  }
  // The channel's thread counts too, which is no call of this rank's.
  TransferCount counted() const {
    try {
      const auto [completed, begun] = connection_.plugin->poll();
      return {std::min<std::uint64_t>(connection_.submitted, begun), completed};
    } catch (const Error& error) {
      throw TransferFailure(error);
    }
  }

  std::string name_, interface_name_;
  mlg_group table_{};  // the group as the plugin sees it; outlives the plugin's instance
  Connection connection_;
  bool stages_;
};

}  // namespace

std::unique_ptr<Communicator> make_plugin_communicator(std::unique_ptr<CommunicatorPlugin> plugin,
                                                       HostGroup& group, Backend& backend,
                                                       const CommunicatorOptions& options) {
  const CommunicatorCall call(options.channel);
  return std::make_unique<PluginCommunicator>(std::move(plugin), group, backend, options);
}

}  // namespace mulligan
