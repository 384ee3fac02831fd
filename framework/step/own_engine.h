// OwnEngine: a training engine with all that it refers to, for steps outside of a run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/ranks/communicator.h"
#include "framework/run/run_plugins.h"
#include "framework/step/engine.h"

namespace mulligan {

struct OwnEngine {
  // Arguments as of TrainingEngine; `config` must outlive this object. The programs' memory is bound. Throws Error.
  OwnEngine(const RunConfig& config, const std::string& section, RunPlugins own, std::int64_t ring,
            std::unique_ptr<Communicator> ranks = make_self_communicator())
      : plugins(std::move(own)),
        parameters(plan_parameters(config)),
        groups(config, plugins, parameters),
        communicator(std::move(ranks)),
        engine(config, section, plugins, parameters, groups, *communicator, ring),
        arena(*plugins.backend) {
    arena.bind(engine.programs(), engine.store());
  }

  RunPlugins plugins;
  std::vector<PlannedParameter> parameters;
  OptimizerGroups groups;
  std::unique_ptr<Communicator> communicator;
  TrainingEngine engine;
  SharedArena arena;
};

}  // namespace mulligan
