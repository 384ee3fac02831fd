// A communicator in a world of one: what can be known without other ranks.
#include <vector>

#include "framework/check/kind_checks.h"
#include "framework/ranks/plugin_communicator.h"

namespace mulligan {
namespace {

constexpr std::int64_t kCount = 1021;

std::vector<float> sample_values() {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 300.5f;
  return values;
}

struct World {
  World(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make)
      : backend(make(1)), store(*backend), group(make_single_group()) {
    communicator =
        make_plugin_communicator(std::make_unique<CommunicatorPlugin>(plugin, config), *group, *backend);
    store.create("from", TensorType(MLG_F32, {kCount}));
    store.create("to", TensorType(MLG_F32, {kCount}));
    store.upload("from", sample_values());
  }
  void transfer(Collective kind, const char* to) {
    const auto batch = communicator->prepare(store, {{kind, "from", to, kCount, 0}});
    batch->run();
  }
  std::unique_ptr<Backend> backend;
  TensorStore store;
  std::unique_ptr<HostGroup> group;
  std::unique_ptr<Communicator> communicator;
};

}  // namespace

void check_communicator(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                        CheckList& list) {
  list.add("one rank gets back what it gives, in place and not", [&]() -> std::string {
    World world(plugin, config, make);
    std::uint64_t batches = 0;
    for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                  Collective::all_to_all, Collective::broadcast, Collective::reduce}) {
      for (const char* to : {"to", "from"}) {
        const bool in_place = std::string(to) == "from";
        if (kind == (in_place ? Collective::all_to_all : Collective::reduce)) continue;
        world.store.zero("to");
        world.transfer(kind, to);
        ++batches;
        const std::string problem =
            first_difference("the result", world.store.download_as<float>(to), sample_values());
        if (!problem.empty()) return fmt::format("collective {}: {}", static_cast<int>(kind), problem);
      }
    }
    const std::uint64_t completed = world.communicator->transfers().completed;
    return completed == batches ? "" : fmt::format("poll() counts {} of {} batches", completed, batches);
  });
  list.add("nothing to move is moved", [&]() -> std::string {
    World world(plugin, config, make);
    const auto batch =
        world.communicator->prepare(world.store, {{Collective::all_reduce, "from", "to", 0, 0}});
    batch->run();
    return first_difference("the tensor", world.store.download_as<float>("to"), std::vector<float>(kCount));
  });
  list.add("after abort() every call fails", [&]() -> std::string {
    World world(plugin, config, make);
    world.communicator->abort();
    try {
      world.transfer(Collective::all_reduce, "to");
    } catch (const Error&) {
      return "";
    }
    return "a transfer after abort() went through";
  });
}

}  // namespace mulligan
