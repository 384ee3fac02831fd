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

namespace {

std::map<std::string, TensorType> external_types(const Graph& graph) {
  std::map<std::string, TensorType> types;
  for (std::uint32_t id = 1; id <= graph.value_count(); ++id) {
    const Graph::ValueInfo& info = graph.info(Value{id});
    if (info.storage == Graph::Storage::external) types.emplace(info.name, info.type);
  }
  return types;
}

// Records the update of some parameters of a group, as one of `world_size` ranks makes it; no call for none.
struct RecordedStates {
  std::vector<std::string> all, surviving;
};
RecordedStates record_rows(Graph& graph, const OptimizerGroup& group,
                           const std::vector<PlannedParameter>& parameters,
                           std::span<const std::size_t> chosen, int world_size) {
  if (chosen.empty()) return {};
  std::vector<mlg_parameter> rows;
  for (const std::size_t index : chosen) {
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
  const std::string prefix = fmt::format("optimizer/{}", group.name);
  GraphRecorder recorder(graph, prefix);
  try {
    group.optimizer->record(*recorder.table(), rows, scalars.id);
  } catch (const Error& error) {
    throw config_error("[optimizer.{}]: {}", group.name, error.what());
  }
  RecordedStates states{recorder.states(), {}};
  for (const std::string& state : states.all) {
    const bool declared = recorder.surviving().contains(state);
    if (group.optimizer->survives_warmup(std::string_view(state).substr(prefix.size() + 1), declared)) {
      states.surviving.push_back(state);
    }
  }
  return states;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& names) {
  to.insert(to.end(), names.begin(), names.end());
}

}  // namespace

Graph OptimizerGroups::record_update(const std::vector<PlannedParameter>& parameters, int world_size) {
  Graph graph;
  const auto record = [&](OptimizerGroup& group, std::span<const std::size_t> chosen) {
    const RecordedStates states = record_rows(graph, group, parameters, chosen, world_size);
    append(group.states, states.all);
    append(group.surviving, states.surviving);
  };
  std::size_t begin = 0;
  for (OptimizerGroup& group : groups_) {
    for (const std::size_t index : group.parameters) {
      if (!parameters[index].is_cut(world_size)) continue;
      record(group, {&index, 1});
      update_parts_.push_back({begin, graph.calls().size(), index});
      begin = graph.calls().size();
    }
  }
  for (OptimizerGroup& group : groups_) {
    std::vector<std::size_t> whole;
    for (const std::size_t index : group.parameters) {
      if (!parameters[index].is_cut(world_size)) whole.push_back(index);
    }
    record(group, whole);
  }
  update_parts_.push_back({begin, graph.calls().size(), {}});
  if (begin > 0) note_cut_states(graph, parameters);
  return graph;
}

// The states as a run of one rank would have them: those of another type in `graph` are slices there.
void OptimizerGroups::note_cut_states(const Graph& graph, const std::vector<PlannedParameter>& parameters) {
  Graph alone;
  for (const OptimizerGroup& group : groups_) record_rows(alone, group, parameters, group.parameters, 1);
  const std::map<std::string, TensorType> whole = external_types(alone), here = external_types(graph);
  for (const OptimizerGroup& group : groups_) {
    for (const std::string& state : group.states) {
      const TensorType& type = whole.at(state);
      if (here.at(state) != type) cut_states_.emplace(state, type);
    }
  }
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
