#include "tests/support/plugin_runner.h"

#include <mulligan/kernel.hpp>

namespace mulligan::plugin_test {
std::unique_ptr<Backend> make_backend(const PluginHandle& plugin, int threads) {
  std::unique_ptr<Backend> backend = make_test_backend(threads);
  if (plugin) backend->add_kernels(*plugin);
  return backend;
}

void upload_floats(TensorStore& store, const std::string& name, const std::vector<float>& values) {
  if (store.type(name).dtype == MLG_BF16) {
    store.upload(name, std::vector<sdk::bfloat16>(values.begin(), values.end()));
  } else {
    store.upload(name, values);
  }
}

std::vector<float> download_floats(const TensorStore& store, const std::string& name) {
  if (store.type(name).dtype != MLG_BF16) return store.download_as<float>(name);
  const std::vector<sdk::bfloat16> stored = store.download_as<sdk::bfloat16>(name);
  return {stored.begin(), stored.end()};
}

Execution::Execution(Backend& backend, Graph graph)
    : store_(backend), program_(backend, std::move(graph), "the test"), arena_(backend) {
  store_.create_externals(program_.graph());
  arena_.bind({&program_}, store_);
}

void Execution::run() {
  program_.run();
  store_.backend().synchronize();
}

OptimizerRunner::OptimizerRunner(const std::string& plugin, const std::string& toml,
                                 const std::vector<Parameter>& parameters, int threads,
                                 std::unique_ptr<Backend> backend)
    : backend_(backend ? std::move(backend) : make_test_backend(threads)),
      optimizer_(make_plugin<Optimizer>(MLG_OPTIMIZER, plugin, toml)) {
  backend_->add_kernels(*test_plugin_host().load(MLG_OPTIMIZER, plugin));
  Graph graph;
  std::vector<mlg_parameter> group;
  for (const Parameter& p : parameters) {
    group.push_back({p.name.c_str(), graph.external("master/" + p.name, p.master).id,
                     graph.external("gradient/" + p.name, p.master.as(MLG_F32)).id, p.lr_multiplier,
                     p.weight_decay_multiplier});
  }
  const Value scalars = graph.external("scalars", TensorType(MLG_F32, {optimizer_->scalar_count()}));
  GraphRecorder recorder(graph, "state");
  optimizer_->record(*recorder.table(), group, scalars.id);
  if (optimizer_->has_evaluation_weights()) {
    std::vector<mlg_value> evaluation;
    for (const Parameter& p : parameters)
      evaluation.push_back(graph.external("evaluation/" + p.name, p.master.as(MLG_F32)).id);
    optimizer_->record_evaluation(*recorder.table(), group, evaluation);
  }
  execution_ = std::make_unique<Execution>(*backend_, std::move(graph));
  for (const Parameter& p : parameters) {
    if (!p.initial.empty()) upload_floats(execution_->store(), "master/" + p.name, p.initial);
  }
}

void OptimizerRunner::step(const std::map<std::string, std::vector<float>>& gradients, double lr,
                           double momentum_factor, double weight_decay_factor) {
  for (const auto& [name, values] : gradients) execution_->store().upload("gradient/" + name, values);
  std::vector<float> numbers(optimizer_->scalar_count());
  optimizer_->scalars({++step_, lr, 0, 0.0, momentum_factor, weight_decay_factor}, numbers);
  execution_->store().upload("scalars", numbers);
  execution_->run();
}

void OptimizerRunner::resume(const std::string& name, const std::vector<float>& values, std::int64_t steps) {
  upload_floats(execution_->store(), "state/" + name, values);
  step_ = steps;
}

std::vector<float> OptimizerRunner::evaluation(const std::string& parameter) const {
  return download_floats(execution_->store(), "evaluation/" + parameter);
}

std::vector<float> OptimizerRunner::master(const std::string& parameter) const {
  return download_floats(execution_->store(), "master/" + parameter);
}

std::vector<float> OptimizerRunner::state(const std::string& name) const {
  return download_floats(execution_->store(), "state/" + name);
}

DType OptimizerRunner::state_dtype(const std::string& name) const {
  return execution_->store().type("state/" + name).dtype;
}

std::vector<float> OptimizerRunner::scalars(std::int64_t step, double lr) const {
  std::vector<float> values(optimizer_->scalar_count());
  optimizer_->scalars(plain_step(step, lr), values);
  return values;
}

LossResult run_loss(const std::string& plugin, DType dtype, double softcap, std::int64_t columns,
                    const std::vector<float>& logits, const std::vector<std::int32_t>& targets,
                    const std::vector<float>& upstream, bool in_place) {
  const PluginHandle handle = test_plugin_host().load(MLG_LOSS, plugin);
  const std::unique_ptr<Backend> backend = make_backend(handle);
  const auto loss = make_plugin<Loss>(MLG_LOSS, plugin);
  const auto rows = static_cast<std::int64_t>(targets.size());
  const TensorType per_row(MLG_F32, {rows}), matrix(dtype, {rows, columns});

  Graph graph;
  mlg_loss_backward backward{};
  mlg_loss_forward& forward = backward.forward;
  forward.logits = graph.external("logits", matrix).id;
  forward.targets = graph.external("targets", per_row.as(MLG_I32)).id;
  forward.token_loss = graph.external("token_loss", per_row).id;
  forward.softcap = softcap;
  GraphRecorder recorder(graph, "state");
  loss->record_forward(*recorder.table(), forward);
  graph.call("cast", {Value{forward.saved[0]}, graph.external("saved", per_row)});
  backward.upstream = graph.external("upstream", per_row).id;
  backward.logits_gradient = in_place ? forward.logits : graph.external("gradient", matrix).id;
  loss->record_backward(*recorder.table(), backward);

  Execution execution(*backend, std::move(graph));
  upload_floats(execution.store(), "logits", logits);
  execution.store().upload("targets", targets);
  execution.store().upload("upstream", upstream);
  execution.run();
  return {download_floats(execution.store(), "token_loss"), download_floats(execution.store(), "saved"),
          download_floats(execution.store(), in_place ? "logits" : "gradient")};
}

}  // namespace mulligan::plugin_test
