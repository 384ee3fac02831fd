#include "framework/step/optimizer_groups.h"

#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/graph/graph_recorder.h"

namespace mulligan {

OptimizerGroups::OptimizerGroups(const RunConfig& config, const RunPlugins& plugins,
                                 const std::vector<PlannedParameter>& parameters) {
  for (std::size_t i = 0; i < config.optimizers.size(); ++i) {
    OptimizerGroup group;
    group.name = config.optimizers[i].name;
    group.base_lr = config.optimizers[i].lr;
    group.optimizer = plugins.optimizers[i].get();
    group.schedule = plugins.optimizer_schedules[i];
    group.scalars.resize(group.optimizer->scalar_count());
    group.scalars_tensor = fmt::format("scalars/{}", group.name);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (parameters[p].optimizer == i) group.parameters.push_back(p);
    }
    groups_.push_back(std::move(group));
  }
}

Graph OptimizerGroups::record_update(const std::vector<PlannedParameter>& parameters, int world_size) {
  Graph graph;
  for (OptimizerGroup& group : groups_) {
    std::vector<mlg_parameter> rows;
    for (const std::size_t index : group.parameters) {
      const PlannedParameter& parameter = parameters[index];
      const TensorType type = parameter.updated_type(world_size);
      const Value master =
          graph.external(parameter.updated_master(world_size), type.as(parameter.layout.master));
      const Value gradient = graph.external(parameter.updated_gradient(world_size), type);
      rows.push_back({parameter.name().c_str(), master.id, gradient.id, parameter.lr_multiplier,
                      parameter.weight_decay_multiplier});
    }
    Value scalars;
    if (!group.scalars.empty()) {
      const auto count = static_cast<std::int64_t>(group.scalars.size());
      scalars = graph.external(group.scalars_tensor, TensorType(MLG_F32, {count}));
    }
    GraphRecorder recorder(graph, fmt::format("optimizer/{}", group.name));
    try {
      group.optimizer->record(*recorder.table(), rows, scalars.id);
    } catch (const Error& error) {
      throw config_error("[optimizer.{}]: {}", group.name, error.what());
    }
    group.states = recorder.states();
    const std::size_t prefix = fmt::formatted_size("optimizer/{}/", group.name);
    for (const std::string& state : group.states) {
      const bool declared = recorder.surviving().contains(state);
      if (group.optimizer->survives_warmup(std::string_view(state).substr(prefix), declared)) {
        group.surviving.push_back(state);
      }
    }
  }
  return graph;
}

void OptimizerGroups::set_rates(const mlg_progress& progress, double lr_multiplier) {
  progress_ = progress;
  for (OptimizerGroup& group : groups_) {
    group.rate = group.schedule->rate(progress, group.base_lr);
    group.rate.lr *= lr_multiplier;
    if (group.rate.batch_factor == batch_factor()) continue;
    throw config_error(
        "[optimizer.{}]: its schedule, {}, asks for {} times the batch in step {}, that of [optimizer.{}] "
        "for {} times; all groups share one batch, so let the run's [schedule] alone change it.",
        group.name, group.schedule->plugin().description(), group.rate.batch_factor, progress.step + 1,
        groups_.front().name, batch_factor());
  }
}

void OptimizerGroups::upload_scalars(TensorStore& store, std::int64_t step) {
  for (OptimizerGroup& group : groups_) {
    if (group.scalars.empty()) continue;
    group.optimizer->scalars({step, group.rate.lr, progress_.total_steps, progress_.budget_fraction,
                              group.rate.momentum_factor, group.rate.weight_decay_factor},
                             group.scalars);
    store.upload(group.scalars_tensor, group.scalars);
  }
}

}  // namespace mulligan
