// Checks of test-time-training plugins.

#include <algorithm>

#include "framework/check/adapter_probe.h"
#include "framework/check/kind_checks.h"
#include "framework/check/poisoned_run.h"
#include "framework/plugin/ttt.h"

namespace mulligan {
namespace {

constexpr TapKind kinds[] = {TapKind::q,      TapKind::k,        TapKind::v,   TapKind::attention_output,
                             TapKind::mlp_up, TapKind::mlp_down, TapKind::head};

std::vector<AdapterShape> shapes() {
  std::vector<AdapterShape> all;
  for (const TapKind kind : kinds) all.insert(all.end(), {{kind, 2, 3, 5, 7}, {kind, 1, 4, 6, 3}});
  return all;
}

std::string gradient_problem(Backend& backend, const TttPlugin& plugin, const AdapterShape& shape) {
  AdapterProbe probe(backend, plugin, shape);
  if (probe.adapters() == 0) return {};
  AdapterInputs inputs = probe.sample_inputs();
  probe.set(inputs);
  const AdapterOutputs at = probe.run();
  const auto compare = [&](const std::string& what, std::vector<float>& varied,
                           const std::vector<float>& gradient) {
    const std::vector<float> start = varied;
    const std::string problem =
        compare_with_differences(fmt::format("{} at tap '{}'", what, tap_kind_name(shape.kind)), start,
                                 gradient, [&](const std::vector<float>& values) {
                                   varied = values;
                                   probe.set(inputs);
                                   return weighed_sum(inputs.output_gradient, probe.run().output);
                                 });
    varied = start;
    return problem;
  };
  for (std::size_t i = 0; i < inputs.adapters.size(); ++i) {
    const std::string problem =
        compare(fmt::format("gradients[{}]", i), inputs.adapters[i], at.adapter_gradients[i]);
    if (!problem.empty()) return problem;
  }
  std::string problem = compare("input_gradient", inputs.block_input, at.input_gradient);
  if (problem.empty())
    problem = compare("output_gradient, as it is left for the layer", inputs.layer_output, at.layer_gradient);
  return problem;
}

std::string for_all(const std::function<std::string(const AdapterShape&)>& body) {
  return first_problem(shapes(), body);
}

// Batches of four documents: one has ended, and the loss of another rises.
std::string plan_problem(const TttPlugin& plugin) {
  const mlg_ttt_tensor tensors[] = {{"q", "A", 0, MLG_START_UNIFORM}, {"head", "B", -1, MLG_START_ZERO}};
  const double losses[4][3] = {{3, 2.9, 2.8}, {3, 3.1, 3.2}, {0.01, 12, 5}, {2, 0, 0}};
  for (std::int64_t chunk = -1; chunk < 3; ++chunk) {
    mlg_ttt_document documents[4];
    for (int i = 0; i < 4; ++i) documents[i] = {losses[i], i < 3 ? chunk + 1 : 1, i < 3};
    mlg_ttt_chunk booked{7, chunk, 4, 2 * (chunk + 1), 4, documents, nullptr, 0};
    if (chunk < 0) booked = {7, -1, 4, 0, 0, nullptr, tensors, 2};
    struct Answer {
      double weights[4] = {1, 1, 1, 1}, keep[2] = {0, 0};
      mlg_ttt_step step{1, 1.0, weights, keep, 0};
    } first, second;
    plugin.plan(booked, first.step);
    const std::string allocates = allocation_problem("plan()", [&] { plugin.plan(booked, second.step); });
    if (!allocates.empty()) return allocates;
    if (first.step.gradient_steps != second.step.gradient_steps ||
        first.step.lr_factor != second.step.lr_factor || first.step.keep_state != second.step.keep_state ||
        !std::ranges::equal(first.weights, second.weights) || !std::ranges::equal(first.keep, second.keep))
      return fmt::format("chunk {} of batch 8 has two answers", chunk + 1);
  }
  return {};
}

void check_taps(const TttPlugin& plugin, const BackendMaker& make, CheckList& list) {
  const std::unique_ptr<Backend> backend = make(1);
  list.add("has adapters at a tap", [&] {
    std::size_t adapters = 0;
    for (const AdapterShape& shape : shapes()) adapters += AdapterProbe(*backend, plugin, shape).adapters();
    return adapters > 0 ? std::string() : std::string("it declares none at any kind of tap");
  });
  list.add("every gradient is written, whatever memory held before", [&] {
    return for_all(
        [&](const AdapterShape& shape) { return adapter_outputs_problem(*backend, plugin, shape); });
  });
  list.add("gradients equal finite differences", [&] {
    return for_all([&](const AdapterShape& shape) { return gradient_problem(*backend, plugin, shape); });
  });
  list.add("plan() is possible, the same again and without allocation", [&] { return plan_problem(plugin); });
  if (!make.is_cpu) return;
  add_thread_check(list, make, [&](Backend& other) {
    return for_all([&](const AdapterShape& shape) {
      AdapterProbe one(*backend, plugin, shape), many(other, plugin, shape);
      if (one.adapters() == 0) return std::string();
      one.set(one.sample_inputs());
      many.set(one.sample_inputs());
      const NamedResults first = one.run().named(shape.kind);
      const std::string problem = first_difference(first, one.run().named(shape.kind));
      if (!problem.empty()) return problem + ", from one run to the next";
      return first_difference(first, many.run().named(shape.kind));
    });
  });
  list.add("no allocation on the step path", [&] {
    return for_all([&](const AdapterShape& shape) {
      AdapterProbe probe(*backend, plugin, shape);
      if (probe.adapters() == 0) return std::string();
      probe.set(probe.sample_inputs());
      probe.run();
      return kernel_allocation_problem([&] { probe.memory().run_calls_only(); });
    });
  });
}

void check_base_update(const TttPlugin& plugin, CheckList& list) {
  list.add("base_update gives sound numbers", [&] {
    const mlg_base_update numbers = plugin.base_update();
    if (numbers.chunk_tokens < 1 || numbers.batch_rows < 1 || numbers.epochs < 1)
      return std::string("chunk_tokens, batch_rows and epochs must be at least 1");
    const bool sound = numbers.momentum >= 0 && numbers.momentum <= 1 && numbers.clip_norm >= 0;
    return sound ? std::string() : std::string("momentum must lie in [0, 1], clip_norm at or above 0");
  });
  list.add("learning rates are finite, not negative and the same again", [&] {
    for (const std::int64_t count : {1, 2, 3, 10, 1000}) {
      for (std::int64_t index = 0; index < count; ++index) {
        if (plugin.base_rate(index, count) != plugin.base_rate(index, count))
          return fmt::format("chunk {} of {} has two rates", index + 1, count);
      }
    }
    return std::string();
  });
}

}  // namespace

void check_adapters(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                    CheckList& list) {
  const TttPlugin rule(plugin, config);
  list.add("has adapters, or an update of the base model", [&] {
    return rule.has_adapters() || rule.has_base_update() ? std::string()
                                                         : std::string("its table has neither");
  });
  if (rule.has_adapters()) check_taps(rule, make, list);
  if (rule.has_base_update()) check_base_update(rule, list);
}

}  // namespace mulligan
