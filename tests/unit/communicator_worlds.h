// The communicator plugins of this build, each on the backends that it serves, for tests.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "framework/dist/plugin_communicator.h"
#include "tests/support/plugins.h"
#include "tests/support/stand_in.h"
#include "tests/support/thread_group.h"

namespace mulligan {

struct CommunicatorWorld {
  std::string plugin;
  std::string backend;  // "cpu", "emulated", "stand_in": memory of the stand-in driver
  int most_ranks;
};
inline void PrintTo(const CommunicatorWorld& world, std::ostream* out) {
  *out << world.plugin << "_" << world.backend;
}

inline std::vector<CommunicatorWorld> communicator_worlds() {
  std::vector<CommunicatorWorld> worlds{{"self", "cpu", 1}, {"self", "emulated", 1}};
#ifdef MULLIGAN_HAS_GLOO
  worlds.insert(worlds.end(), {{"gloo", "cpu", 4}, {"gloo", "emulated", 2}});
#endif
  worlds.push_back({"nccl", "stand_in", 4});
  return worlds;
}

inline std::unique_ptr<Backend> make_backend(const CommunicatorWorld& world) {
  if (world.backend == "cpu") return make_cpu_backend(1);
  if (world.backend == "stand_in") return make_stand_in_backend();
  return make_plugin<Backend>(PluginKind::backend, "cuda", "device = \"emulated\"");
}

inline std::unique_ptr<Communicator> make_communicator(const CommunicatorWorld& world, HostGroup& group,
                                                       Backend& backend, const std::string& keys = "",
                                                       const CommunicatorOptions& options = {}) {
  return make_plugin_communicator(
      make_plugin<CommunicatorPlugin>(PluginKind::communicator, world.plugin, keys), group, backend, options);
}

}  // namespace mulligan
