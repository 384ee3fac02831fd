#include "tools/doctor/model_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "framework/graph/call_access.h"
#include "framework/graph/row_rules.h"
#include "framework/model/elements/masking/config.h"
#include "framework/model/parameters.h"

namespace mulligan::doctor {
namespace {

constexpr std::int64_t row_tokens = 96;
constexpr const char* look_at_forward_kernel =
    "compare this kernel of the backend, or of what replaces it ([[backend.kernels]]), with docs/kernels.md";

struct Tolerance {
  double of_rms, of_value;
};

// How far a result is from what was expected.
struct Distance {
  double worst = 0;    // of what is allowed: above 1 is off
  double of_rms = 0;   // that element's, in rms of the expected result
  std::size_t at = 0;  // the element
  double cosine = 1;
};
Distance distance(const std::vector<double>& seen, const std::vector<double>& expected,
                  const Tolerance& allowed) {
  double squares = 0, seen_squares = 0, dot = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    squares += expected[i] * expected[i];
    seen_squares += seen[i] * seen[i];
    dot += seen[i] * expected[i];
  }
  constexpr double tiny = 1e-30;
  const double rms = std::sqrt(squares / static_cast<double>(expected.size())) + tiny;
  Distance found;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = std::abs(seen[i] - expected[i]);
    const double limit = allowed.of_rms * rms + allowed.of_value * std::abs(expected[i]);
    // A number that is none is as far off as can be.
    const double share = std::isfinite(off) ? off / limit : std::numeric_limits<double>::infinity();
    if (share > found.worst) found = {share, off / rms, i, 1};
  }
  found.cosine = dot / (std::sqrt(squares * seen_squares) + tiny);
  return found;
}

std::int64_t row_of(const TensorType& type, std::size_t element) {
  return static_cast<std::int64_t>(element) / (type.elements() / type.dims[0]);
}

// The number of the last call that writes each tensor: what lies there afterwards is that call's.
std::map<std::uint32_t, std::size_t> last_writers(const Graph& graph, const CallAccess& access) {
  std::map<std::uint32_t, std::size_t> last;
  for (std::size_t i = 0; i < graph.calls().size(); ++i) {
    const Call& call = graph.calls()[i];
    const std::vector<Access> uses = access.of(call);
    for (std::size_t a = 0; a < uses.size(); ++a) {
      if (call.arguments[a] && uses[a].written) last[graph.root(call.arguments[a]).id] = i;
    }
  }
  return last;
}

// What a product with a parameter is called, by a part of the parameter's name in one of the families.
constexpr std::pair<std::string_view, std::string_view> products[] = {
    {".attn.c_q.", "q"},    {".attn.q.", "q"},         {".q_proj.", "q"},       {".attn.c_k.", "k"},
    {".attn.k.", "k"},      {".k_proj.", "k"},         {".attn.c_v.", "v"},     {".attn.v.", "v"},
    {".v_proj.", "v"},      {".attn.proj.", "o_proj"}, {".o_proj.", "o_proj"},  {".mlp.fc.", "up"},
    {".up_proj.", "up"},    {".mlp.proj.", "down"},    {".down_proj.", "down"}, {"gate_w", "gate"},
    {".gate_proj.", "gate"}};

// Names each call of a forward pass by what it makes and the layer of the last parameter that was read: "o_proj of layer 0".
std::vector<std::string> tap_names(const Graph& graph, const ModelConfig& model,
                                   const std::vector<ParameterLayout>& layouts) {
  std::map<std::string, ParameterSpec, std::less<>> parameters;
  for (const ParameterLayout& layout : layouts) parameters[layout.read_name()] = layout.spec;
  std::map<std::uint32_t, std::string> rewritten;  // weights that a call scaled or joined
  const auto parameter_of = [&](Value value) -> std::string {
    if (!value) return {};
    const Value root = graph.root(value);
    if (const auto known = rewritten.find(root.id); known != rewritten.end()) return known->second;
    const auto found = parameters.find(graph.info(root).name);
    if (found == parameters.end()) return {};
    const Graph::ValueInfo& info = graph.info(value);
    const std::vector<BankMatrix> matrices = bank_matrices(found->second);
    const bool part = info.storage == Graph::Storage::view && !matrices.empty() && info.type.elements() > 0;
    return part ? matrices.at(static_cast<std::size_t>(info.offset / info.type.elements())).name
                : found->second.name;
  };
  std::vector<std::string> names;
  std::string layer;  // " of layer 0"
  for (const Call& call : graph.calls()) {
    std::string read;
    for (const Value argument : call.arguments) {
      if (const std::string parameter = parameter_of(argument); !parameter.empty())
        read += (read.empty() ? "" : ", ") + parameter;
    }
    if (call.kernel == "scale_rows_fwd") rewritten[graph.root(call.arguments[2]).id] = read;
    if (call.kernel == "concat_rows_fwd") rewritten[graph.root(call.arguments[4]).id] = read;
    if (!read.empty()) layer.clear();
    for (const std::string_view prefix : {"blocks.", "model.layers."}) {
      const std::size_t at = read.find(prefix), begin = at + prefix.size();
      if (at != std::string::npos) layer = " of layer " + read.substr(begin, read.find('.', begin) - begin);
    }
    const KernelRows* known = rows_of_kernel(call.kernel);
    std::string made(known ? known->label : "");
    if (made.empty()) {
      for (const auto& [part, product] : products)
        if (read.find(part) != std::string::npos)
          made += fmt::format("{}{}", made.empty() ? "" : ", ", product);
      if (!made.empty() && read.ends_with(".bias")) made += " (post-bias)";
      if (call.kernel.ends_with("matmul") && read == head_parameter(model)) made = "logits";
    }
    // What the head multiplies is the final norm.
    if (made == "logits" && !names.empty() && names.back().starts_with("norm")) names.back() = "final_norm";
    names.push_back((made.empty() ? call.kernel : made) + layer);
  }
  return names;
}

// What `reference` makes of a call whose arguments hold what `memory` has: by the number of the argument.
std::map<std::size_t, std::vector<double>> results_of(Backend& reference, const Call& call,
                                                      const std::vector<Access>& uses,
                                                      const PoisonedRun& memory) {
  const auto name_of = [](std::size_t argument) { return fmt::format("{}", argument); };
  Graph graph;
  std::vector<Value> arguments;
  for (const Value value : call.arguments) {
    arguments.push_back(value ? graph.external(name_of(arguments.size()), memory.graph().type(value))
                              : Value{});
  }
  graph.call(call.kernel, arguments, call.attributes);
  PoisonedRun run(reference, graph, "doctor/reference");
  for (std::size_t a = 0; a < uses.size(); ++a) {
    if (!arguments[a] || !uses[a].read) continue;
    const std::vector<double> held = memory.numbers(call.arguments[a]);
    if (run.type(name_of(a)).dtype == MLG_I32) {
      run.set(name_of(a), std::vector<std::int32_t>(held.begin(), held.end()));
    } else {
      run.set(name_of(a), std::vector<float>(held.begin(), held.end()));
    }
  }
  run.run();
  std::map<std::size_t, std::vector<double>> results;
  for (std::size_t a = 0; a < uses.size(); ++a) {
    if (arguments[a] && uses[a].written) results[a] = run.numbers(arguments[a]);
  }
  return results;
}

Finding check_operations(Backend& backend, Backend& reference, const RunConfig& config,
                         ComputeTypes compute) {
  const Tolerance allowed =
      compute.activations == MLG_F32 ? Tolerance{2e-5, 2e-5} : Tolerance{2e-2, 1.0 / 128};
  Finding f = begin_finding(
      "D14", "operations of the forward pass against the cpu backend",
      fmt::format("fails above {:.0e} of the rms and {:.0e} of the value", allowed.of_rms, allowed.of_value));
  // Attention over 1 to 130 keys: more than a tile of any kernel.
  constexpr std::int64_t keys = 130, short_segment = 13;
  EvaluationProbe probe(backend, config, compute, vivid_weights(config.model),
                        drawn_row({keys, 1, short_segment}, config.model.vocabulary, 1));
  probe.run();

  const PoisonedRun& memory = probe.memory();
  const Graph& graph = memory.graph();
  const std::vector<std::string> taps =
      tap_names(graph, config.model, parameter_layouts(config.model, compute));
  const CallAccess access(backend), known(reference);
  const auto last = last_writers(graph, access);
  const auto unchanged_since = [&](Value value, std::size_t call) {
    const auto writer = last.find(graph.root(value).id);
    return writer == last.end() || writer->second <= call;
  };
  std::size_t compared = 0;
  Distance worst;
  std::string worst_tap = "none";
  for (std::size_t i = 0; i < graph.calls().size() && worst.worst <= 1; ++i) {
    const Call& call = graph.calls()[i];
    const std::vector<Access> uses = access.of(call);
    const bool readable =
        std::ranges::all_of(call.arguments, [&](Value value) { return !value || unchanged_since(value, i); });
    // A call that changes what it reads has left no input to repeat it with.
    const bool changes = std::ranges::any_of(uses, [](const Access& use) { return use.read && use.written; });
    if (!known.knows(call.kernel) || !readable || changes) continue;
    ++compared;
    for (const auto& [argument, expected] : results_of(reference, call, uses, memory)) {
      const Value result = call.arguments[argument];
      const Distance found = distance(memory.numbers(result), expected, allowed);
      if (found.worst <= worst.worst) continue;
      worst = found;
      worst_tap = taps[i];
      if (found.worst <= 1) continue;
      f.note(
          CheckOutcome::fail,
          fmt::format(
              "the first operation that is off is {} ({}, call {}): position {}, {:.3g} of the rms, cos {:.5f}",
              taps[i], call.kernel, i, row_of(graph.type(result), found.at), found.of_rms, found.cosine),
          look_at_forward_kernel);
    }
  }
  f.measured = fmt::format("{} of {} calls compared; furthest off: {}, {:.2g} of the rms", compared,
                           graph.calls().size(), worst_tap, worst.of_rms);
  return f;
}

Finding check_causality(Backend& backend, const RunConfig& config, ComputeTypes compute) {
  const bool masked = predicts_masked(config.model);  // sees its whole segment, but no other
  Finding f = masked ? begin_finding("D14", "segments apart", "any bit of an earlier segment's logits fails")
                     : begin_finding("D14", "causality", "any bit of an earlier position's logits fails");
  // A segment that goes on after the middle, and others before it.
  constexpr std::int64_t others = 25;
  const std::int64_t kept = masked ? others : 64;
  Batch row = drawn_row({others - 1, 1, row_tokens - others}, config.model.vocabulary, 2);
  EvaluationProbe probe(backend, config, compute, vivid_weights(config.model), row);
  probe.run();
  const std::vector<double> before = probe.logits();
  for (auto t = static_cast<std::size_t>(kept); t < row.tokens.size(); ++t)
    row.tokens[t] = static_cast<std::int32_t>((row.tokens[t] + 1 + static_cast<std::int64_t>(t)) %
                                              config.model.vocabulary);
  probe.set(row);
  probe.run();
  const std::vector<double> after = probe.logits();
  std::size_t moved = 0, first = 0;
  for (auto i = static_cast<std::size_t>(kept * config.model.vocabulary); i-- > 0;) {
    if (after[i] == before[i] || (std::isnan(after[i]) && std::isnan(before[i]))) continue;
    ++moved;
    first = i;
  }
  f.measured = fmt::format("{} logits of the first {} of {} positions moved", moved, kept, row_tokens);
  if (moved == 0) return f;
  return failed(
      std::move(f),
      fmt::format("logits of position {} changed with tokens from position {} on",
                  first / static_cast<std::size_t>(config.model.vocabulary), kept),
      "attention, or what mixes positions, reads what it may not: a loss by such a model is not a score");
}

Finding check_head(Backend& backend, const RunConfig& config, ComputeTypes compute) {
  Finding f = begin_finding("D14", "output head", "any other token's logit fails");
  Weights weights = vivid_weights(config.model);
  const Batch row = drawn_row({row_tokens / 2, 1, row_tokens / 2 - 1}, config.model.vocabulary, 1);
  EvaluationProbe probe(backend, config, compute, weights, row);
  probe.run();
  const std::vector<double> before = probe.logits();
  std::int32_t unused = 0;  // no input, so that a tied head moves by the head alone
  while (std::ranges::find(row.tokens, unused) != row.tokens.end()) ++unused;
  const auto v = static_cast<std::size_t>(config.model.vocabulary);
  if (static_cast<std::size_t>(unused) >= v) {
    f.measured = "not looked at";
    return judged(f, CheckOutcome::skip, "every token of so small a vocabulary is an input",
                  "none is needed; every operation is compared as well");
  }
  const std::string head = head_parameter(config.model);
  const auto width = static_cast<std::size_t>(config.model.width);
  for (std::size_t i = 0; i < width; ++i) weights[head][static_cast<std::size_t>(unused) * width + i] += 0.5F;
  probe.set(weights);
  probe.run();
  const std::vector<double> after = probe.logits();
  std::size_t own = 0, others = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i] != before[i]) ++(i % v == static_cast<std::size_t>(unused) ? own : others);
  }
  f.measured = fmt::format("{} logits of the token moved, {} of others", own, others);
  if (own > 0 && others == 0) return f;
  return failed(
      std::move(f),
      fmt::format("changing the row of token {} in {} moved {} of its own logits and {} of other tokens",
                  unused, head, own, others),
      look_at_forward_kernel);
}

}  // namespace

std::vector<Finding> check_forward(Backend& backend, Backend& reference, const RunConfig& config,
                                   ComputeTypes compute) {
  return {check_operations(backend, reference, config, compute), check_causality(backend, config, compute),
          check_head(backend, config, compute)};
}

}  // namespace mulligan::doctor
