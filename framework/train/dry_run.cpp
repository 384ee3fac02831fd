#include "framework/train/dry_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/grouped.h"
#include "framework/dist/communicator.h"
#include "framework/eval/evaluator.h"
#include "framework/graph/program.h"
#include "framework/model/layer_order.h"
#include "framework/train/engine.h"
#include "framework/train/run.h"
#include "framework/train/step_graphs.h"

namespace mulligan {
namespace {

std::vector<DryRun::Tensor> describe(const RunConfig& config,
                                     const std::vector<PlannedParameter>& parameters) {
  std::vector<DryRun::Tensor> tensors;
  for (const PlannedParameter& parameter : parameters) {
    const TensorType& type = parameter.layout.spec.type;
    const OptimizerConfig& optimizer = config.optimizers[parameter.optimizer];
    DryRun::Tensor tensor;
    tensor.name = parameter.name();
    tensor.shape = fmt::format("[{}]", fmt::join(type.dims.begin(), type.dims.begin() + type.rank, ", "));
    tensor.elements = type.elements();
    tensor.master_dtype = dtype_name(parameter.layout.master);
    tensor.optimizer = optimizer.name;
    tensor.plugin = optimizer.table.plugin;
    tensor.lr_multiplier = parameter.lr_multiplier;
    tensor.weight_decay_multiplier = parameter.weight_decay_multiplier;
    tensor.communication = parameter.communication == Communication::sharded ? "sharded" : "replicated";
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// The programs of a run, planned one after the other; their persistent tensors by name.
class Planner {
 public:
  // `device` may be null: then no workspace is learnt.
  Planner(Backend& backend, Backend* device, std::int64_t segment_tokens, const Card& card)
      : backend_(backend), device_(device), segment_tokens_(segment_tokens), card_(card) {}

  Cost add(const char* name, Graph graph) {
    for (std::uint32_t id = 1; id <= graph.value_count(); ++id) {
      const Graph::ValueInfo& info = graph.info(Value{id});
      if (info.storage == Graph::Storage::external) tensors_[info.name] = info.type.bytes();
    }
    const Cost cost = graph_cost(graph, segment_tokens_, card_);
    if (device_)
      workspace_bytes_ = std::max(workspace_bytes_, Program(*device_, graph, name).workspace_bytes());
    const Program program(backend_, std::move(graph), name);
    arenas_.push_back({name, program.arena_bytes()});
    return cost;
  }

  void fill(DryRun& plan) const {
    plan.memory = memory_by_category(tensors_);
    plan.arenas = arenas_;
    std::int64_t largest = 0;
    for (const MemoryRow& arena : arenas_) largest = std::max(largest, arena.bytes);
    plan.memory.push_back({"arena (activations, shared by all programs)", largest});
    for (const MemoryRow& row : plan.memory) plan.memory_bytes += row.bytes;
    if (device_) plan.workspace_bytes = workspace_bytes_;
  }

 private:
  Backend& backend_;
  Backend* device_;
  std::int64_t workspace_bytes_ = 0;
  std::int64_t segment_tokens_;
  const Card& card_;
  std::map<std::string, std::int64_t> tensors_;
  std::vector<MemoryRow> arenas_;
};

void add_evaluation(Planner& planner, const RunConfig& config,
                    const std::vector<PlannedParameter>& parameters) {
  const bool averaged = config.ema.decay > 0 && config.eval.use_ema;
  EvaluatorOptions options;
  options.eval = config.eval;
  options.compute = to_dtype(config.train.compute_dtype);
  options.looping = config.model.loop.extra_passes > 0;
  if (averaged) planner.add("average refresh", build_average_refresh(parameters));
  planner.add("evaluate",
              Evaluator::build(config.model, averaged ? average_layouts(parameters) : layouts_of(parameters),
                               options));
}

// The configured backend where it can be started; otherwise none, and `note` says why.
RunPlugins device_plugins(const LoadedConfig& loaded, PluginHost& host, std::string& note) {
  try {
    RunPlugins plugins = make_run_plugins(loaded, host);
    if (plugins.backend->info().computes) return plugins;
    note = "the backend computes nothing";
  } catch (const Error& error) {
    note = error.what();
  }
  return {};
}

}  // namespace

DryRun dry_run(LoadedConfig& loaded, PluginHost& host, const DryRunOptions& options) {
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  if (options.ranks < 1 || config.train.micro_batches % options.ranks != 0) {
    throw config_error("train.micro_batches is {}, which {} ranks do not divide; choose a divisor.",
                       config.train.micro_batches, options.ranks);
  }
  const std::vector<PlannedParameter> parameters = plan_parameters(config);
  const RunPlugins plugins = make_run_plugins(loaded, host, "null");
  OptimizerGroups groups(config, plugins, parameters);

  DryRun plan;
  plan.parameters = parameter_count(model_parameters(config.model));
  plan.tensors = describe(config, parameters);
  plan.tokens_per_step = config.train.tokens_per_step;
  plan.ranks = options.ranks;
  plan.card = options.card;

  const RunPlugins device = device_plugins(loaded, host, plan.workspace_note);
  Planner planner(*plugins.backend, device.backend.get(), config.train.sequence_length, options.card);
  const std::int64_t tokens = tokens_per_micro_batch(config.train);
  const auto micro_batches = static_cast<double>(config.train.micro_batches / options.ranks);
  const LayerOrders orders = layer_orders_of(config.model);
  for (const bool looping : {false, true}) {
    if (!(looping ? orders.looped : orders.plain)) continue;
    const LayerOrder order = layer_order(config.model, looping);
    const auto layers = static_cast<std::int64_t>(order.encoder.size() + order.decoder.size());
    const Cost micro =
        planner.add(looping ? "looped micro step" : "micro step",
                    build_micro_step(config.model, parameters, *plugins.loss, tokens, looping));
    plan.steps.push_back({looping, layers, micro * micro_batches});
  }
  Cost rest = planner.add("clip", build_clip(parameters, config.train.clip_norm));
  rest += planner.add("update", groups.record_update(parameters, options.ranks));
  rest += planner.add("follow up", build_follow_up(parameters, config.ema.decay));
  planner.add("record", build_record(config.train.log_every));
  for (DryRun::Step& step : plan.steps) step.cost += rest;
  if (!config.data.validation.empty()) add_evaluation(planner, config, parameters);
  planner.fill(plan);
  return plan;
}

std::string format_dry_run(const DryRun& plan) {
  fmt::memory_buffer text;
  const auto line = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text.push_back('\n');
  };
  line("{:<28} {:<16} {:>12}  {:<6} {:<20} {:>6} {:>6}  {}", "tensor", "shape", "elements", "master",
       "optimiser", "lr x", "wd x", "communication");
  for (const DryRun::Tensor& t : plan.tensors) {
    line("{:<28} {:<16} {:>12}  {:<6} {:<20} {:>6} {:>6}  {}", t.name, t.shape, grouped(t.elements),
         t.master_dtype, fmt::format("{} ({})", t.optimizer, t.plugin), t.lr_multiplier,
         t.weight_decay_multiplier, t.communication);
  }
  line("");
  line("parameters: {}", grouped(plan.parameters));
  line("");
  line("memory of one of {} rank{}:", plan.ranks, plan.ranks == 1 ? "" : "s");
  for (const MemoryRow& row : plan.memory) line("  {:<44} {:>18} bytes", row.what, grouped(row.bytes));
  line("  {:<44} {:>18} bytes", "total", grouped(plan.memory_bytes));
  if (plan.workspace_bytes) {
    line("  {:<44} {:>18} bytes", "besides: workspace of the backend's kernels",
         grouped(*plan.workspace_bytes));
  } else {
    line("  workspace of the backend's kernels: not known ({})", plan.workspace_note);
  }
  line("scratch of each program (the arena holds the largest):");
  for (const MemoryRow& row : plan.arenas) line("  {:<44} {:>18} bytes", row.what, grouped(row.bytes));
  line("");
  line("one step of {} tokens on {} x {} ({:.0f} TFLOP/s bf16, {:.0f} fp32, {:.2f} TB/s each), per rank:",
       grouped(plan.tokens_per_step), plan.ranks, plan.card.description,
       plan.card.bf16_flops_per_second / 1e12, plan.card.fp32_flops_per_second / 1e12,
       plan.card.bytes_per_second / 1e12);
  for (const DryRun::Step& step : plan.steps) {
    line(
        "  {} ({} layers): {:.2f} TFLOP of matrix products, {:.2f} TFLOP of attention, {:.1f} GB of bytes "
        "moved",
        step.looping ? "looped order" : "plain order", step.layers, step.cost.matmul_flops / 1e12,
        step.cost.attention_flops / 1e12, step.cost.bytes / 1e9);
    line("    roofline: at least {:.2f} ms a step, at most {} tokens/s", 1e3 * step.cost.seconds,
         grouped(static_cast<std::int64_t>(static_cast<double>(plan.tokens_per_step) / step.cost.seconds)));
  }
  return fmt::to_string(text);
}

}  // namespace mulligan
