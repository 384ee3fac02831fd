#include "tools/cost/dry_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/graph/program.h"
#include "framework/model/layer_order.h"
#include "framework/ranks/communicator.h"
#include "framework/run/device_plan.h"
#include "framework/run/run_plugins.h"
#include "framework/step/training_programs.h"
#include "tools/cost/cost_text.h"

namespace mulligan {
namespace {

std::vector<DryRun::Tensor> describe(const RunConfig& config,
                                     const std::vector<PlannedParameter>& parameters) {
  std::vector<DryRun::Tensor> tensors;
  for (const PlannedParameter& parameter : parameters) {
    const TensorType& type = parameter.layout.spec.type;
    DryRun::Tensor tensor;
    tensor.name = parameter.name();
    tensor.shape = fmt::format("[{}]", fmt::join(type.dims.begin(), type.dims.begin() + type.rank, ", "));
    tensor.elements = type.elements();
    tensor.master_dtype = dtype_name(parameter.layout.master);
    tensor.optimizer = no_optimizer;
    if (parameter.trained()) {
      tensor.optimizer = config.optimizers[parameter.optimizer].name;
      tensor.plugin = config.optimizers[parameter.optimizer].table.plugin;
    }
    tensor.lr_multiplier = parameter.lr_multiplier;
    tensor.weight_decay_multiplier = parameter.weight_decay_multiplier;
    tensor.communication = word_of(parameter.communication);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

DryRun::ReadWeights read_weights(const RunConfig& config) {
  const ComputeTypes types = scored_types(config);
  DryRun::ReadWeights read;
  read.projection_dtype = dtype_name(types.projections);
  for (const ParameterSpec& spec : model_parameters(config.model)) {
    (spec.projection ? read.projection_elements : read.other_elements) += spec.type.elements();
    read.bytes += spec.type.as(types.of(spec)).bytes();
  }
  return read;
}

void plan_memory(DryRun& plan, TrainingPrograms& training, Backend* device) {
  const TensorStore& store = training.engine().store();
  std::map<std::string, std::int64_t> tensors;
  for (const std::string& name : store.names()) tensors[name] = store.reserved_bytes(name);
  plan.memory = memory_by_category(tensors);
  plan.memory.push_back({"arena (activations, shared by all programs)", training.memory().arena_bytes});
  for (const Program* program : training.programs()) {
    plan.arenas.push_back({program->name(), program->arena_bytes()});
  }
  if (device) {
    plan.workspace_bytes = workspace_on(*device, training.programs());
    plan.memory.push_back({"workspace of the backend's kernels", *plan.workspace_bytes});
  }
  for (const MemoryRow& row : plan.memory) plan.memory_bytes += row.bytes;
}

void plan_steps(DryRun& plan, const RunConfig& config, const StepPlan& steps) {
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    const Phase& phase = config.phases[i];
    const LayerOrder order = layer_order(config.model, phase.layer_order);
    DryRun::Step step{phase.name, static_cast<std::int64_t>(order.encoder.size() + order.decoder.size()), {}};
    for (const PlannedStep& program : steps.steps(i)) {
      if (program.runs_per_step == 0) continue;
      const Cost cost = graph_cost(program.program->graph(), phase.sequence_length, plan.card);
      step.cost += cost * static_cast<double>(program.runs_per_step);
    }
    plan.steps.push_back(std::move(step));
  }
}

}  // namespace

void require_divisor(const RunConfig& config, int ranks) {
  if (ranks >= 1 && config.train.micro_batches % ranks == 0) return;
  throw config_error("train.micro_batches is {}, which {} ranks do not divide; choose a divisor.",
                     config.train.micro_batches, ranks);
}

DryRun dry_run(LoadedConfig& loaded, PluginHost& host, const DryRunOptions& options) {
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  require_divisor(config, options.ranks);
  const std::vector<PlannedParameter> parameters = plan_parameters(config);
  DryRun plan;
  const RunPlugins device = device_plugins(loaded, host, plan.workspace_note);
  const RunPlugins plugins = make_run_plugins(loaded, host, "null");
  if (device.backend) plugins.backend->act_for(*device.backend);
  OptimizerGroups groups(config, plugins, parameters);

  plan.parameters = parameter_count(model_parameters(config.model));
  plan.read_weights = read_weights(config);
  plan.stages = model_stages(config.model);
  plan.tensors = describe(config, parameters);
  plan.tokens_per_step = config.train.tokens_per_step;
  plan.ranks = options.ranks;
  plan.card = options.card;

  const std::unique_ptr<Communicator> ranks = make_planned_communicator(options.ranks);
  TrainingPrograms training(config, {}, plugins, parameters, groups, *ranks,
                            config.data.validation.empty() ? std::nullopt : std::optional<int>(1));
  plan_memory(plan, training, device.backend.get());
  plan_steps(plan, config, training.engine().plan());
  return plan;
}

std::string format_dry_run(const DryRun& plan) {
  TextLines text;
  const auto optimizer_of = [](const DryRun::Tensor& t) {
    return t.plugin.empty() ? t.optimizer : fmt::format("{} ({})", t.optimizer, t.plugin);
  };
  std::size_t names = 28, optimizers = 20;
  for (const DryRun::Tensor& t : plan.tensors) {
    names = std::max(names, t.name.size());
    optimizers = std::max(optimizers, optimizer_of(t).size());
  }
  text.line("{:<{}} {:<16} {:>12}  {:<6} {:<{}} {:>6} {:>6}  {}", "tensor", names, "shape", "elements",
            "master", "optimiser", optimizers, "lr x", "wd x", "communication");
  for (const DryRun::Tensor& t : plan.tensors) {
    text.line("{:<{}} {:<16} {:>12}  {:<6} {:<{}} {:>6} {:>6}  {}", t.name, names, t.shape,
              grouped(t.elements), t.master_dtype, optimizer_of(t), optimizers, t.lr_multiplier,
              t.weight_decay_multiplier, t.communication);
  }
  text.line("");
  text.line("parameters: {}", grouped(plan.parameters));
  text.line("weights as they are read to score: {} bytes (projections: {} elements in {}; {} others)",
            grouped(plan.read_weights.bytes), grouped(plan.read_weights.projection_elements),
            plan.read_weights.projection_dtype, grouped(plan.read_weights.other_elements));
  for (const StageList& stage : plan.stages) {
    if (!stage.elements.empty()) text.line("stage {}: {}", stage.stage, fmt::join(stage.elements, ", "));
  }
  text.line("");
  text.line("memory of one of {} rank{}:", plan.ranks, plan.ranks == 1 ? "" : "s");
  for (const MemoryRow& row : plan.memory) text.line("{}", memory_line(row));
  text.line("{} = {:.2f} GiB", memory_line({"total", plan.memory_bytes}), gibibytes(plan.memory_bytes));
  if (!plan.workspace_bytes) {
    text.line("  in addition, workspace of the backend's kernels: not known ({})", plan.workspace_note);
  }
  text.line("scratch of each program (the arena holds the largest):");
  for (const MemoryRow& row : plan.arenas) text.line("{}", memory_line(row));
  text.line("");
  text.line(
      "one step of {} tokens on {} x {} ({:.0f} TFLOP/s bf16, {:.0f} fp32, {:.2f} TB/s each), per rank:",
      grouped(plan.tokens_per_step), plan.ranks, plan.card.description,
      plan.card.bf16_flops_per_second / 1e12, plan.card.fp32_flops_per_second / 1e12,
      plan.card.bytes_per_second / 1e12);
  for (const DryRun::Step& step : plan.steps) {
    text.line(
        "  phase {} ({} layers): {:.2f} TFLOP of matmuls, "
        "{:.2f} TFLOP of attention, {:.1f} GB of bytes moved",
        step.phase, step.layers, step.cost.matmul_flops / 1e12, step.cost.attention_flops / 1e12,
        step.cost.bytes / 1e9);
    text.line("    roofline: at least {:.2f} ms a step, at most {} tokens/s", 1e3 * step.cost.seconds,
              token_rate(plan.tokens_per_step, step.cost.seconds));
  }
  return text.take();
}

}  // namespace mulligan
