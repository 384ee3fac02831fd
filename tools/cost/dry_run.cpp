#include "tools/cost/dry_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/graph/program.h"
#include "framework/model/elements/stages.h"
#include "framework/model/parameters.h"
#include "framework/ranks/communicator.h"
#include "framework/run/device_plan.h"
#include "framework/run/run_plugins.h"
#include "framework/step/training_programs.h"

namespace mulligan {
namespace {

DryRun::Step plan_step(const RunConfig& config, const Phase& phase, const std::vector<PlannedStep>& programs,
                       const Card& card) {
  DryRun::Step step{executed_layers(config, phase), {}};
  for (const PlannedStep& planned : programs) {
    if (planned.runs_per_step == 0) continue;
    const Cost cost = graph_cost(planned.program->graph(), phase.sequence_length, card);
    step.cost += cost * static_cast<double>(planned.runs_per_step);
  }
  return step;
}

void add_tensors(TextLines& text, const RunConfig& config, const std::vector<PlannedParameter>& tensors) {
  const auto optimizer_of = [&](const PlannedParameter& tensor) -> std::string {
    if (!tensor.trained()) return no_optimizer;
    const OptimizerConfig& optimizer = config.optimizers[tensor.optimizer];
    if (optimizer.table.plugin.empty()) return optimizer.name;
    return fmt::format("{} ({})", optimizer.name, optimizer.table.plugin);
  };
  std::size_t names = 28, optimizers = 20;
  for (const PlannedParameter& tensor : tensors) {
    names = std::max(names, tensor.name().size());
    optimizers = std::max(optimizers, optimizer_of(tensor).size());
  }
  text.line("{:<{}} {:<16} {:>12}  {:<6} {:<{}} {:>6} {:>6}  {}", "tensor", names, "shape", "elements",
            "master", "optimiser", optimizers, "lr x", "wd x", "communication");
  for (const PlannedParameter& tensor : tensors) {
    const TensorType& type = tensor.layout.spec.type;
    text.line("{:<{}} {:<16} {:>12}  {:<6} {:<{}} {:>6} {:>6}  {}", tensor.name(), names,
              fmt::format("[{}]", fmt::join(type.dims.begin(), type.dims.begin() + type.rank, ", ")),
              grouped(type.elements()), dtype_name(tensor.layout.master), optimizer_of(tensor), optimizers,
              tensor.lr_multiplier, tensor.weight_decay_multiplier, word_of(tensor.communication));
  }
}

}  // namespace

void require_divisor(const RunConfig& config, int ranks) {
  if (ranks >= 1 && config.train.micro_batches % ranks == 0) return;
  throw config_error("train.micro_batches is {}, which {} ranks do not divide; choose a divisor.",
                     config.train.micro_batches, ranks);
}

std::int64_t executed_layers(const RunConfig& config, const Phase& phase) {
  const LayerOrder order = layer_order(config.model, phase.layer_order);
  return static_cast<std::int64_t>(order.encoder.size() + order.decoder.size());
}

DryRun dry_run(LoadedConfig& loaded, PluginHost& host, const DryRunOptions& options) {
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  require_divisor(config, options.ranks);
  const std::vector<PlannedParameter> parameters = plan_parameters(config);
  std::string note;
  const RunPlugins device = device_plugins(loaded, host, note);
  const RunPlugins plugins = make_run_plugins(loaded, host, "null");
  if (device.backend) plugins.backend->act_for(*device.backend);
  OptimizerGroups groups(config, plugins, parameters);
  const std::unique_ptr<Communicator> ranks = make_self_communicator(options.ranks);
  TrainingPrograms training(config, {}, plugins, parameters, groups, *ranks,
                            config.data.validation.empty() ? std::nullopt : std::optional<int>(1));

  const TensorStore& store = training.engine().store();
  std::map<std::string, std::int64_t> tensors;
  for (const std::string& name : store.names()) tensors[name] = store.reserved_bytes(name);
  std::optional<std::int64_t> workspace;
  if (device.backend) workspace = workspace_on(*device.backend, training.programs());
  DryRun plan{{tensors, training.memory().arena_bytes, workspace}, note};
  for (const Program* program : training.programs())
    plan.arenas.push_back({program->name(), program->arena_bytes()});
  plan.tensors = parameters;
  plan.parameters = parameter_count(model_parameters(config.model));
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    plan.steps.push_back(
        plan_step(config, config.phases[i], training.engine().plan().steps(i), options.card));
  }
  return plan;
}

std::string format_dry_run(const RunConfig& config, const DryRunOptions& options, const DryRun& plan) {
  TextLines text;
  add_tensors(text, config, plan.tensors);
  text.line("");
  text.line("parameters: {}", grouped(plan.parameters));
  text.line("elements: {}", fmt::join(active_elements(config.model), ", "));
  text.line("");
  text.line("memory of one of {} rank{}:", options.ranks, options.ranks == 1 ? "" : "s");
  add_memory(text, plan, "total", plan.workspace_note);
  text.line("scratch of each program (the arena holds the largest):");
  for (const MemoryRow& row : plan.arenas) text.line("{}", memory_line(row));
  text.line("");
  const Card& card = options.card;
  const std::int64_t tokens = config.train.tokens_per_step;
  text.line(
      "one step of {} tokens on {} x {} ({:.0f} TFLOP/s bf16, {:.0f} fp32, {:.2f} TB/s each), per rank:",
      grouped(tokens), options.ranks, card.description, card.bf16_flops_per_second / 1e12,
      card.fp32_flops_per_second / 1e12, card.bytes_per_second / 1e12);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& [layers, cost] = plan.steps[i];
    text.line(
        "  phase {} ({} layers): {:.2f} TFLOP of matmuls, "
        "{:.2f} TFLOP of attention, {:.1f} GB of bytes moved",
        config.phases[i].name, layers, cost.matmul_flops / 1e12, cost.attention_flops / 1e12,
        cost.bytes / 1e9);
    text.line("    roofline: at least {:.2f} ms a step, at most {} tokens/s", 1e3 * cost.seconds,
              token_rate(tokens, cost.seconds));
  }
  return text.take();
}

}  // namespace mulligan
