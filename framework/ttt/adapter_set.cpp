#include "framework/ttt/adapter_set.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <set>

#include "framework/core/stop_request.h"
#include "framework/graph/graph_recorder.h"

namespace mulligan {

PhiloxStream PhiloxDraws::stream(std::int64_t draw, const AdapterTensor& tensor) const {
  return PhiloxStream(seed_, fmt::format("ttt/{}/{}", draw, tensor.name));
}

constexpr double probe_bound = 0.05;  // of fill_at_random(), for adapters that start at zero

AdapterSet::AdapterSet(const BaseModel& model, const TttSetup& setup, std::int64_t documents,
                       const std::set<WindowShape>& shapes)
    : model_(model),
      setup_(setup),
      prefix_(fmt::format("ttt/batch{}", documents)),
      scalars_(setup.optimizer.scalar_count()),
      scalars_name_(prefix_ + "/scalars") {
  const bool fused =
      can_fuse_update(FusedKernels(model.store.backend()), setup.optimizer, TensorType(MLG_F32, {8, 8}));
  for (const WindowShape& shape : shapes) {
    throw_if_stopping();  // a long list of programs takes seconds
    windows_[shape] = std::make_unique<WindowProgram>(
        model, setup.adapters, prefix_, shape, setup.config.context_tokens,
        [this, fused](Graph& graph, auto gradients) { record_update(graph, gradients, fused); }, documents,
        setup.proposals());
  }
  Graph copies;
  for (const auto& tensor : tensors()) {
    if (std::ranges::find(groups_, tensor->group) == groups_.end()) groups_.push_back(tensor->group);
    const Value master = copies.external(tensor->master, tensor->type);
    if (tensor->copy.empty()) continue;
    copies.call("cast", {master, copies.external(tensor->copy, tensor->type.as(model.compute))});
  }
  refresh_ = make_program(model.store, std::move(copies), "refresh adapters");
  norms_ = make_program(model.store, build_norms(), "adapter norms");
  draws_ = make_program(model.store, build_draws(), prefix_ + "/draws");
}

// The update follows an adapter's gradient at once, so that gradients live in the arena for a moment only.
void AdapterSet::record_update(Graph& graph, std::span<const AdapterTaps::Gradient> gradients, bool fused) {
  std::vector<mlg_parameter> rows;
  std::vector<mlg_value> copies;
  std::vector<Value> handed;  // an optimiser names these alone: not tokens, targets, segments or scores
  for (const auto& [adapter, gradient] : gradients) {
    const Value master = graph.external(adapter->master, adapter->type);
    rows.push_back({adapter->name.c_str(), master.id, gradient.id, 1.0, 1.0});
    handed.insert(handed.end(), {master, gradient});
  }
  Value scalars;
  if (!scalars_.empty()) scalars = graph.external(scalars_name_, TensorType(MLG_F32, {std::ssize(scalars_)}));
  handed.push_back(scalars);
  for (const auto& [adapter, gradient] : gradients) {
    copies.push_back(
        adapter->copy.empty() ? 0 : graph.external(adapter->copy, adapter->type.as(model_.compute)).id);
    if (fused) handed.push_back(Value{copies.back()});
  }
  GraphRecorder recorder(graph, prefix_ + "/optimizer");
  recorder.restrict_to(handed);
  const std::vector<mlg_value> averages(rows.size(), 0);
  const mlg_update update{0, averages.data(), 0.0, copies.data()};
  setup_.optimizer.record(*recorder.table(), rows, scalars.id, fused ? &update : nullptr);
  states_.insert(recorder.states().begin(), recorder.states().end());
  for (std::size_t i = 0; i < rows.size() && !fused; ++i) {
    if (copies[i] != 0) graph.call("cast", {Value{rows[i].master}, Value{copies[i]}});
  }
}

std::vector<Program*> AdapterSet::programs() {
  std::vector<Program*> programs = {norms_.get(), refresh_.get(), draws_.get()};
  for (const auto& [shape, window] : windows_) programs.push_back(&window->program());
  return programs;
}

std::string AdapterSet::total(const std::string& name, const char* what) const {
  return fmt::format("{}/{}/{}", prefix_, what, name);
}

Graph AdapterSet::build_norms() const {
  Graph graph;
  const TensorType sum(MLG_F64, {1});
  for (const auto& tensor : tensors()) {
    const Value now = graph.external(tensor->master, tensor->type);
    graph.call("sum_squares_f64", {now, graph.external(total(tensor->group, "norm"), sum)});
    const Value drift = graph.external(total(tensor->group, "drift"), sum);
    if (!tensor->uniform) {
      graph.call("sum_squares_f64", {now, drift});
      continue;
    }
    const Value difference = graph.scratch(tensor->type, "drift");
    graph.call("axpby", {now, graph.external(tensor->start, tensor->type), difference},
               {{"alpha", 1.0}, {"beta", -1.0}, {"accumulate_y", 0.0}});
    graph.call("sum_squares_f64", {difference, drift});
  }
  return graph;
}

// The backend draws; only keys travel there. Call number i draws the first values of tensor number i; after these come the
// values of probes.
Graph AdapterSet::build_draws() const {
  Graph graph;
  const Value key = graph.external(prefix_ + "/draws/key", TensorType(MLG_I32, {4}));
  for (const bool probes : {false, true}) {
    for (const auto& tensor : tensors()) {
      graph.call("uniform_draws", {key, graph.external(tensor->master, tensor->type)},
                 {{"bound", tensor->uniform && !probes ? tensor->bound : probe_bound}});
    }
  }
  return graph;
}

void AdapterSet::draw(std::size_t call, const PhiloxStream& stream) {
  const std::array<std::int32_t, 4> key = stream.key();
  model_.store.upload(prefix_ + "/draws/key", std::as_bytes(std::span(key)));
  draws_->run_range(call, call + 1);
}

void AdapterSet::start(std::size_t index, std::int64_t number) {
  const AdapterTensor& tensor = *tensors()[index];
  if (!tensor.uniform) {
    model_.store.zero(tensor.master);
    return;
  }
  const std::vector<float> given = setup_.draws.values(number, tensor);
  if (given.empty())
    draw(index, setup_.draws.stream(number, tensor));
  else
    model_.store.upload(tensor.master, given);
  model_.store.copy(tensor.start, tensor.master);
}

void AdapterSet::empty_state() {
  for (const std::string& state : states_) model_.store.zero(state);
  step_ = 0;
}

void AdapterSet::create(std::int64_t draw) {
  reset(draw, {std::vector<double>(tensors().size(), 0.0), false});
}

// Towards the value that it started from. On the host: a rule does so between two batches, if ever.
void AdapterSet::shrink(const AdapterTensor& tensor, double keep) {
  std::vector<float> values = model_.store.download_as<float>(tensor.master), first(values.size(), 0.0F);
  if (tensor.uniform) first = model_.store.download_as<float>(tensor.start);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = first[i] + static_cast<float>(keep) * (values[i] - first[i]);
  model_.store.upload(tensor.master, values);
}

void AdapterSet::reset(std::int64_t draw, const Inheritance& inherits) {
  for (std::size_t i = 0; i < tensors().size(); ++i) {
    const double keep = inherits.keep[i];
    if (keep == 0)
      start(i, draw);
    else if (keep < 1)
      shrink(*tensors()[i], keep);
  }
  if (!inherits.keep_state) empty_state();
  refresh_->run();
}

std::vector<std::string> AdapterSet::inherited(const Inheritance& inherits) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tensors().size(); ++i) {
    if (inherits.keep[i] == 0) continue;
    names.push_back(tensors()[i]->master);
    if (tensors()[i]->uniform) names.push_back(tensors()[i]->start);
  }
  if (inherits.keep_state) names.insert(names.end(), states_.begin(), states_.end());
  return names;
}

void AdapterSet::clear() {
  for (const auto& tensor : tensors()) model_.store.zero(tensor->master);
  refresh_->run();
}

void AdapterSet::fill_at_random() {
  for (std::size_t i = 0; i < tensors().size(); ++i)
    draw(tensors().size() + i, PhiloxStream(0, "ttt/probe/" + tensors()[i]->name));
  refresh_->run();
}

void AdapterSet::update(WindowProgram& window, double lr) {
  if (!scalars_.empty()) {
    setup_.optimizer.scalars(plain_step(++step_, lr), scalars_);
    model_.store.upload(scalars_name_, scalars_);
  }
  window.update();
}

std::vector<AdapterNorm> AdapterSet::norms() {
  for (const std::string& group : groups_) {
    model_.store.zero(total(group, "norm"));
    model_.store.zero(total(group, "drift"));
  }
  norms_->run();
  std::vector<AdapterNorm> norms;
  for (const std::string& group : groups_) {
    const auto root = [&](const char* what) {
      return std::sqrt(model_.store.download_as<double>(total(group, what)).front());
    };
    norms.push_back({group, root("norm"), root("drift")});
  }
  return norms;
}

}  // namespace mulligan
