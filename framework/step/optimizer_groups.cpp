#include "framework/step/optimizer_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/core/error.h"
#include "framework/graph/graph_recorder.h"
#include "framework/step/step_graphs.h"

namespace mulligan {

std::map<std::string, TensorType> external_types(const Graph& graph) {
  std::map<std::string, TensorType> types;
  for (std::uint32_t id = 1; id <= graph.value_count(); ++id) {
    const Graph::ValueInfo& info = graph.info(Value{id});
    if (info.storage == Graph::Storage::external) types.emplace(info.name, info.type);
  }
  return types;
}

namespace {

constexpr const char* wrapper_scalars_tensor = "scalars_of_wrapper";

// The parameters of one call of an optimiser, and what it is asked to do besides.
struct RecordedRows {
  std::vector<mlg_parameter> rows;
  std::vector<mlg_value> averages, copies;
  mlg_update update{};
  bool asks() const {
    const auto any = [](const std::vector<mlg_value>& values) {
      return std::ranges::any_of(values, [](mlg_value value) { return value != 0; });
    };
    return update.gradient_scale != 0 || any(averages) || any(copies);
  }
};

RecordedRows declare_rows(Graph& graph, const std::vector<PlannedParameter>& units,
                          std::span<const std::size_t> chosen, int world_size, const UpdateExtras& extras) {
  RecordedRows recorded;
  for (const std::size_t index : chosen) {
    const PlannedParameter& unit = units[index];
    const TensorType type = unit.updated_type(world_size);
    const Value master = graph.external(unit.updated_master(world_size), type.as(unit.layout.master));
    const Value gradient = graph.external(unit.updated_gradient(world_size), type);
    recorded.rows.push_back(
        {unit.name().c_str(), master.id, gradient.id, unit.lr_multiplier, unit.weight_decay_multiplier});
    Value average, copy;
    if (!unit.is_gathered(world_size)) {
      const DType compute = extras.compute.of(unit.layout.spec);
      if (extras.ema_decay > 0) average = graph.external(average_name(unit.name()), type);
      if (extras.copies && compute != unit.layout.master)
        copy = graph.external(compute_name(unit.name()), type.as(compute));
    }
    recorded.averages.push_back(average.id);
    recorded.copies.push_back(copy.id);
  }
  Value scale;
  if (extras.scale_gradients) scale = graph.external(step_tensor::clip_scale, TensorType(MLG_F32, {1}));
  recorded.update = {scale.id, recorded.averages.data(), extras.ema_decay, recorded.copies.data()};
  return recorded;
}

struct RecordedStates {
  std::vector<std::string> all, surviving;
};

// Records the update of some units of a group, as one of `world_size` ranks makes it; no call for none.
RecordedStates record_rows(Graph& graph, const OptimizerGroup& group,
                           const std::vector<PlannedParameter>& units, std::span<const std::size_t> chosen,
                           int world_size, const UpdateExtras& extras, FusedKernels fused) {
  if (chosen.empty()) return {};
  const RecordedRows recorded = declare_rows(graph, units, chosen, world_size, extras);
  Value scalars;
  if (!group.scalars.empty()) {
    const auto count = static_cast<std::int64_t>(group.scalars.size());
    scalars = graph.external(group.scalars_tensor, TensorType(MLG_F32, {count}));
  }
  GraphRecorder recorder(graph, fmt::format("optimizer/{}", group.name), fused);
  try {
    group.optimizer->record(*recorder.table(), recorded.rows, scalars.id,
                            group.fused && recorded.asks() ? &recorded.update : nullptr);
  } catch (const Error& error) {
    throw config_error("[optimizer.{}]: {}", group.name, error.what());
  }
  return {recorder.states(), {recorder.surviving().begin(), recorder.surviving().end()}};
}

}  // namespace

OptimizerGroups::OptimizerGroups(const RunConfig& config, const RunPlugins& plugins,
                                 const std::vector<PlannedParameter>& parameters)
    : fused_kernels_(*plugins.backend), blends_(blends_scores(config)), wrapper_(plugins.wrapper.get()) {
  std::vector<std::string> names;
  for (const OptimizerConfig& optimizer : config.optimizers) names.push_back(optimizer.name);
  const bool apart =
      std::ranges::any_of(config.phases, [](const Phase& p) { return p.layercast != LayerCast::off; });
  units_ = UpdateUnits(
      parameters, names,
      [&](std::size_t optimizer) {
        return plugins.backend->fused_kernels() && plugins.optimizers[optimizer]->is_elementwise();
      },
      apart);
  const std::vector<PlannedParameter>& units = units_.parameters();
  for (std::size_t i = 0; i < config.optimizers.size(); ++i) {
    OptimizerGroup group;
    group.name = config.optimizers[i].name;
    group.base_lr = config.optimizers[i].lr;
    group.optimizer = plugins.optimizers[i].get();
    group.schedule = plugins.optimizer_schedules[i];
    group.scalars.resize(group.optimizer->scalar_count());
    group.scalars_tensor = fmt::format("scalars/{}", group.name);
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      if (units[unit].trained() && units[unit].optimizer == i) group.parameters.push_back(unit);
    }
    if (!group.parameters.empty()) {
      const ParameterLayout& first = units[group.parameters.front()].layout;
      group.fused = can_fuse_update(fused_kernels_, *group.optimizer, first.spec.type.as(first.master));
    }
    group.apart = keeps_other_states_apart(group);
    groups_.push_back(std::move(group));
  }
  if (!wrapper_) return;
  wrapper_scalars_.resize(wrapper_->scalar_count());
  for (const OptimizerGroup& group : groups_) {
    wrapper_rates_.push_back({group.name.c_str(), group.base_lr, group.base_lr});
  }
  try {
    set_wrapper_scalars(1);  // what it refuses is refused before the run begins
  } catch (const Error& error) {
    throw config_error("[wrapper]: {}", error.what());
  }
}

// Whether the optimiser, given the parameters that ranks could share one by one, keeps other states than given all at once
// (one for all, under the name of the first, say). States must not depend on the number of ranks, or no
// checkpoint could go from one number to another.
bool OptimizerGroups::keeps_other_states_apart(const OptimizerGroup& group) const {
  constexpr int several = 2;
  const auto states = [&](int world_size) {
    std::set<std::string> names;
    Graph graph;
    for (const std::vector<std::size_t>& call : calls_of(group, world_size)) {
      const RecordedStates recorded =
          record_rows(graph, group, units_.parameters(), call, 1, {}, fused_kernels_);
      names.insert(recorded.all.begin(), recorded.all.end());
    }
    return names;
  };
  return calls_of(group, several).size() > 1 && states(1) != states(several);
}

// The parameters of each call of a group's optimiser: each that is gathered by itself, then the rest.
std::vector<std::vector<std::size_t>> OptimizerGroups::calls_of(const OptimizerGroup& group,
                                                                int world_size) const {
  std::vector<std::vector<std::size_t>> calls;
  std::vector<std::size_t> rest;
  for (const std::size_t index : group.parameters) {
    const PlannedParameter& unit = units_.parameters()[index];
    const bool shared = unit.communication != Communication::replicated;
    if (unit.is_gathered(world_size) || (group.apart && shared)) {
      calls.push_back({index});
    } else {
      rest.push_back(index);
    }
  }
  if (!rest.empty()) calls.push_back(std::move(rest));
  return calls;
}

// A slice of a bank has whole matrices; one of a matrix has some of its rows, which is enough only where elements do
// not depend on each other.
void OptimizerGroups::refuse_what_cannot_be_shared(int world_size) const {
  for (const OptimizerGroup& group : groups_) {
    const bool averages = group.optimizer->has_evaluation_weights();
    for (const std::size_t index : group.parameters) {
      if (!averages || units_.parameters()[index].owner(world_size) == PlannedParameter::everybody) continue;
      throw config_error(
          "[optimizer.{}]: {} has evaluation weights, which communication = \"owner\" does not send to the ranks "
          "that do not update '{}'; set communication = \"replicated\" in its row of [[parameters]].",
          group.name, group.optimizer->plugin().description(), units_.parameters()[index].name());
    }
    if (group.optimizer->is_elementwise()) continue;
    for (const std::size_t index : group.parameters) {
      const PlannedParameter& unit = units_.parameters()[index];
      if (!unit.is_cut(world_size) || unit.layout.spec.type.rank != 2) continue;
      throw config_error(
          "[optimizer.{}]: {} does not work element by element, and communication = \"sharded\" would give each of {} "
          "ranks some rows of the matrix '{}'; set communication = \"owner\" in its row of [[parameters]].",
          group.name, group.optimizer->plugin().description(), world_size, unit.name());
    }
  }
}

Graph OptimizerGroups::record_update(const UpdateExtras& extras, int world_size, int rank) {
  Graph graph, elsewhere;  // elsewhere: what other ranks update, for the names and types of its states
  const std::vector<PlannedParameter>& units = units_.parameters();
  refuse_what_cannot_be_shared(world_size);
  UpdateExtras asked = extras;
  if (blends_) asked.ema_decay = 0, asked.copies = false;
  update_parts_.clear();
  for (OptimizerGroup& group : groups_) group.states = group.surviving = {};
  const auto record = [&](OptimizerGroup& group, std::span<const std::size_t> chosen) {
    const PlannedParameter& first = units[chosen.front()];
    Graph& into = first.is_updated_by(rank, world_size) ? graph : elsewhere;
    const RecordedStates states = record_rows(into, group, units, chosen, world_size, asked, fused_kernels_);
    add_states(group.states, states.all, into);
    add_states(group.surviving, states.surviving, into);
    if (first.owner(world_size) != PlannedParameter::everybody)
      note_owned_states(states.all, into, first.owner(world_size));
  };
  std::size_t begin = 0;
  // Gathered ones of all groups first; of a group that is recorded apart what is not gathered stays in its order.
  for (const bool gathered : {true, false}) {
    for (OptimizerGroup& group : groups_) {
      for (const std::vector<std::size_t>& call : calls_of(group, world_size)) {
        if (units[call.front()].is_gathered(world_size) != gathered) continue;
        record(group, call);
        if (!gathered) continue;
        update_parts_.push_back({begin, graph.calls().size(), call.front()});
        begin = graph.calls().size();
      }
    }
  }
  update_parts_.push_back({begin, graph.calls().size(), {}});
  if (begin > 0) note_cut_states(graph, world_size);
  return graph;
}

void OptimizerGroups::note_owned_states(const std::vector<std::string>& states, const Graph& graph,
                                        int owner) {
  const std::map<std::string, TensorType> types = external_types(graph);
  for (const std::string& state : states) {
    const SharedState& noted = cut_states_.emplace(state, SharedState{types.at(state), owner}).first->second;
    if (noted.owner == owner) continue;
    throw config_error(
        "an optimiser keeps its state '{}' for parameters that two ranks update; set communication = "
        "\"replicated\" in the rows of its parameters.",
        state);
  }
}

// The names under which checkpoints keep these externals of `graph`, each once.
void OptimizerGroups::add_states(std::vector<std::string>& to, const std::vector<std::string>& recorded,
                                 const Graph& graph) const {
  const std::map<std::string, TensorType> types = external_types(graph);
  for (const std::string& state : recorded) {
    if (std::ranges::find(to, state) != to.end()) continue;  // one of several calls
    const std::vector<UpdateUnits::Part> parts = units_.parts(state, types.at(state));
    for (const UpdateUnits::Part& part : parts) to.push_back(part.name);
    if (parts.empty()) to.push_back(state);
  }
}

// Of whole parameters, by every rank alike: the slices have been gathered.
Graph OptimizerGroups::record_wrapper() {
  Graph graph;
  wrapper_states_.clear();
  if (!wrapper_) return graph;
  std::vector<mlg_wrapped_parameter> rows;
  for (const PlannedParameter& unit : units_.parameters()) {
    if (!unit.trained()) continue;
    const TensorType type = unit.layout.spec.type.as(unit.layout.master);
    rows.push_back({unit.name().c_str(), graph.external(master_name(unit.name()), type).id,
                    graph.external(rest_name(unit.name()), type).id});
  }
  Value scalars;
  if (!wrapper_scalars_.empty()) {
    const auto count = static_cast<std::int64_t>(wrapper_scalars_.size());
    scalars = graph.external(wrapper_scalars_tensor, TensorType(MLG_F32, {count}));
  }
  GraphRecorder recorder(graph, "wrapper", fused_kernels_);
  try {
    wrapper_->record(*recorder.table(), rows, scalars.id);
  } catch (const Error& error) {
    throw config_error("[wrapper]: {}", error.what());
  }
  add_states(wrapper_states_, recorder.states(), graph);
  return graph;
}

void OptimizerGroups::set_wrapper_scalars(std::int64_t step) {
  wrapper_->scalars({step, progress_.total_steps, progress_.budget_fraction, wrapper_rates_.data(),
                     static_cast<std::uint32_t>(wrapper_rates_.size())},
                    wrapper_scalars_);
}

// The states as a run of one rank would have them: those of another type in `graph` are slices there.
void OptimizerGroups::note_cut_states(const Graph& graph, int world_size) {
  Graph alone;
  for (const OptimizerGroup& group : groups_) {
    for (const std::vector<std::size_t>& call : calls_of(group, 1)) {
      record_rows(alone, group, units_.parameters(), call, 1, {}, fused_kernels_);
    }
  }
  const std::map<std::string, TensorType> whole = external_types(alone), here = external_types(graph);
  for (const OptimizerGroup& group : groups_) {
    for (const std::string& state : group.states) {
      const auto cut = here.find(state);  // parts of a joined unit are not externals, and whole
      if (cut == here.end()) continue;
      const auto one = whole.find(state);
      if (one != whole.end() && one->second == cut->second) continue;
      TensorType slice = one == whole.end() ? TensorType() : one->second;
      if (slice.rank > 0) slice.dims[0] = (slice.dims[0] + world_size - 1) / world_size;
      if (one == whole.end() || slice != cut->second) {
        throw config_error(
            "[optimizer.{}]: its state '{}' is {} on one of {} ranks and {} "
            "on one rank alone, which is not a slice along the first dimension; "
            "set communication = \"replicated\" in the rows of its parameters.",
            group.name, state, cut->second.text(), world_size,
            one == whole.end() ? "missing" : one->second.text());
      }
      cut_states_.emplace(state, SharedState{one->second});
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
  if (wrapper_scalars_.empty()) return;
  for (std::size_t i = 0; i < groups_.size(); ++i) wrapper_rates_[i].lr = groups_[i].rate.lr;
  set_wrapper_scalars(step);
  store.upload(wrapper_scalars_tensor, wrapper_scalars_);
}

}  // namespace mulligan
