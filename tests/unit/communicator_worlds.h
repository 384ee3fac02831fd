// The communicator plugins of this build, each on the backends that it serves, for tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "framework/ranks/plugin_communicator.h"
#include "tests/support/plugins.h"
#include "tests/support/stub.h"
#include "tests/support/thread_group.h"

namespace mulligan {

struct CommunicatorWorld {
  std::string plugin;
  // "cpu"; "emulated": the cuda backend's emulated device, which works at once; "emulated_stream": the same on a stream
  // of the driver's stub; "stub": the stub's memory and a stream, no kernels.
  std::string backend;
  int most_ranks;
};
inline void PrintTo(const CommunicatorWorld& world, std::ostream* out) {
  *out << world.plugin << "_" << world.backend;
}

inline std::vector<CommunicatorWorld> communicator_worlds() {
  std::vector<CommunicatorWorld> worlds;
#ifdef MULLIGAN_HAS_GLOO
  worlds.insert(worlds.end(), {{"gloo", "cpu", 4}, {"gloo", "emulated", 2}});
#endif
  worlds.insert(worlds.end(), {{"nccl", "stub", 4}, {"nccl", "emulated_stream", 2}});
  return worlds;
}

// Ranks must not throw.
inline void expect_ranks(int size, const std::function<void(HostGroup&)>& body) {
  for (const std::string& sentence : run_ranks(size, body)) EXPECT_EQ(sentence, "") << size << " ranks";
}

inline std::unique_ptr<Backend> make_backend(const CommunicatorWorld& world) {
  if (world.backend == "cpu") return make_cpu_backend(1);
  if (world.backend == "stub") return make_stub_backend();
  std::string keys = "device = \"emulated\"\n";
  if (world.backend == "emulated_stream") keys += "emulated_driver = \"" + stub_driver() + "\"\n";
  return make_plugin<Backend>(MLG_BACKEND, "cuda", keys);
}

inline std::unique_ptr<Communicator> make_communicator(const CommunicatorWorld& world, HostGroup& group,
                                                       Backend& backend, const std::string& keys = "",
                                                       const CommunicatorOptions& options = {}) {
  std::string all_keys = keys;
  if (world.plugin == "nccl") all_keys += "\nlibrary = \"" + stub_nccl_library() + "\"";
  return make_plugin_communicator(make_plugin<CommunicatorPlugin>(MLG_COMMUNICATOR, world.plugin, all_keys),
                                  group, backend, options);
}

// A rank of that world with a collective made ready, of a tensor of ones.
struct WorldRank {
  WorldRank(const CommunicatorWorld& world, HostGroup& group, const std::string& keys = "",
            std::int64_t count = 1000, Collective kind = Collective::all_reduce)
      : backend(make_backend(world)),
        store(*backend),
        communicator(make_communicator(world, group, *backend, keys)) {
    store.create("x", TensorType(MLG_F32, {count}));
    store.upload("x", std::vector<float>(static_cast<std::size_t>(count), 1));
    batch = communicator->prepare(store, {{kind, "x", "x", count, 0}});
  }
  std::unique_ptr<Backend> backend;
  TensorStore store;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<TransferBatch> batch;
};

}  // namespace mulligan
