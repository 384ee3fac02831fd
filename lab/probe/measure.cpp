#include "lab/probe/difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>
#include <set>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/core/stop_request.h"
#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/eval/generate.h"
#include "framework/model/elements/masking/config.h"
#include "framework/report/run_log.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"

namespace mulligan::probe {
namespace {

using Sequence = std::vector<std::int32_t>;

// `count` stretches of `length` tokens at equal distances.
std::vector<Sequence> stretches(std::span<const std::uint16_t> tokens, std::size_t count,
                                std::size_t length) {
  if (tokens.size() < length || tokens.size() - length + 1 < count) {
    throw data_error(
        "the validation set has {} tokens, too few for {} different sequences of {}; probe shorter ones with "
        "--length and --tokens, or smaller batches.",
        tokens.size(), count, length);
  }
  std::vector<Sequence> result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = count == 1 ? 0 : i * (tokens.size() - length) / (count - 1);
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
    result.emplace_back(from, from + static_cast<std::ptrdiff_t>(length));
  }
  return result;
}

void require_finite(std::span<const float> logits) {
  if (std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) return;
  throw run_error("the model's logits are not finite, so its weights are broken; nothing is compared.");
}

// The programs of one batch size: for the logits of whole sequences, and for texts that grow.
struct BatchPrograms {
  BatchPrograms(TensorStore& store, const RunConfig& config, const std::vector<ParameterLayout>& layouts,
                std::int64_t batch, const ProbeOptions& options)
      : whole(store, config.model, layouts, scored_order(config.model),
              {batch, options.length, BatchShape::Wanted::last_sequence}),
        arena(store.backend()) {
    std::vector<Program*> programs = {&whole.program()};
    if (options.tokens > 0) {
      next.emplace(store, config.model, layouts, scored_order(config.model), options.prompt + options.tokens,
                   batch);
      for (Program* program : next->programs()) programs.push_back(program);
    }
    arena.bind(programs, store);
  }
  BatchProgram whole;
  std::optional<NextToken> next;
  SharedArena arena;
};

// Number of the sequence `offset` places after `at` in a batch, round the end of `all`.
std::size_t in_batch(std::size_t at, std::size_t offset, std::size_t all) {
  return (at + offset) % all;
}

void measure_logits(BatchPrograms& programs, const std::vector<Sequence>& sequences,
                    const ProbeOptions& options, BatchMeasurement& result) {
  const auto batch = static_cast<std::size_t>(result.batch);
  for (std::size_t s = 0; s < static_cast<std::size_t>(options.sequences); ++s) {
    std::vector<std::span<const std::int32_t>> texts;
    for (std::size_t i = 1; i < batch; ++i) texts.emplace_back(sequences[in_batch(s, i, sequences.size())]);
    texts.emplace_back(sequences[s]);
    for (auto& text : texts) text = text.first(static_cast<std::size_t>(options.length));
    const std::span<const float> logits = programs.whole.logits(texts);
    require_finite(logits);
    result.logits.insert(result.logits.end(), logits.begin(), logits.end());
  }
}

void measure_continuations(BatchPrograms& programs, const std::vector<Sequence>& sequences,
                           std::int64_t vocabulary, const ProbeOptions& options, Progress& progress,
                           BatchMeasurement& result) {
  const auto batch = static_cast<std::size_t>(result.batch);
  const auto wanted = static_cast<std::size_t>(options.sequences);
  const auto prompt = static_cast<std::size_t>(options.prompt);
  for (std::size_t s = 0; s < wanted; s += batch) {
    std::vector<Sequence> texts;
    for (std::size_t i = 0; i < batch; ++i) {
      const Sequence& from = sequences[in_batch(s, i, sequences.size())];
      texts.emplace_back(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(prompt));
    }
    for (std::int64_t step = 0; step < options.tokens; ++step) {
      throw_if_stopping();
      const std::span<const float> logits = programs.next->logits({texts.begin(), texts.end()});
      require_finite(logits);
      for (std::size_t i = 0; i < batch; ++i) {
        const auto row =
            logits.subspan(i * static_cast<std::size_t>(vocabulary), static_cast<std::size_t>(vocabulary));
        texts[i].push_back(choose_token(row, {.temperature = 0}, 0));
      }
      progress.advance();
    }
    for (std::size_t i = 0; i < std::min(batch, wanted - s); ++i) {
      result.continued.emplace_back(texts[i].begin() + static_cast<std::ptrdiff_t>(prompt), texts[i].end());
    }
  }
}

void count_weights(LoadedModel& model, Measurement& result) {
  std::set<std::string> counted;
  const auto bytes = [&](const std::string& name) {
    return counted.insert(name).second ? model.store().type(name).bytes() : 0;
  };
  for (const ParameterLayout& layout : model.layouts()) {
    (layout.spec.projection ? result.projection_elements : result.other_elements) +=
        layout.spec.type.elements();
    result.weight_bytes += layout.spec.type.as(layout.compute).bytes();
    result.held_bytes += bytes(master_name(layout.spec.name)) + bytes(layout.read_name());
  }
}

void measure_score(LoadedModel& model, const RunConfig& config, ValidationSet& validation,
                   Measurement& result) {
  BoundEvaluator scoring(model.store(), config.model, model.layouts(),
                         {config.eval, scored_order(config.model), validation.segment_start()});
  RunRanks alone;
  const auto start = std::chrono::steady_clock::now();
  const EvalResult score = evaluate(scoring.evaluator, validation, alone.group());
  if (score.bytes > 0) result.val_bpb = score.val_bpb;
  result.scored_tokens_per_second = static_cast<double>(score.tokens) / seconds_since(start);
}

void check(const ProbeOptions& options) {
  if (options.batches.empty())
    throw config_error("--batches names no batch size; name some, for example 1,3,8.");
  if (options.prompt > options.length && options.tokens > 0) {
    throw config_error("--prompt is {}, but a sequence has {} tokens; probe longer ones with --length.",
                       options.prompt, options.length);
  }
}

struct ProbePrecision {
  const char* name;
  DType compute;
  LayerCast layercast;
};
constexpr ProbePrecision precisions[] = {{"fp32", MLG_F32, LayerCast::off},
                                         {"bf16", MLG_BF16, LayerCast::off},
                                         {"fp16", MLG_F16, LayerCast::off},
                                         {"layercast-bf16", MLG_F32, LayerCast::bf16},
                                         {"layercast-fp16", MLG_F32, LayerCast::fp16}};

const ProbePrecision& find_precision(const std::string& name) {
  const auto* found = std::ranges::find(precisions, name, &ProbePrecision::name);
  if (found != std::end(precisions)) return *found;
  throw config_error("there is no precision '{}'; there are {}.", name,
                     fmt::join(precisions | std::views::transform(&ProbePrecision::name), ", "));
}

}  // namespace

void require_precision(const std::string& name) {
  find_precision(name);
}

Measurement measure(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                    const WeightLoader& load, const std::string& name, const ProbeOptions& options) {
  const ProbePrecision& precision = find_precision(name);
  check(options);
  loaded.config.phases.back().compute_dtype = precision.compute;
  loaded.config.phases.back().layercast = precision.layercast;
  require_next_token(loaded.config.model, "the probe scores and generates text token by token");
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  require_computing(backend, "nothing can be compared");
  RunLog log(options, {});
  ValidationSet validation = load_validation(config.data, config.model.vocabulary, config.eval.tokens);
  for (const std::string& note : require_data_of(origin, validation.data, config.data)) log.line(note);
  const std::int64_t most = std::max(options.sequences, *std::ranges::max_element(options.batches));
  const std::vector<Sequence> sequences =
      stretches(validation.tokens, static_cast<std::size_t>(most), static_cast<std::size_t>(options.length));

  Measurement result;
  result.precision = name;
  result.device = backend.info().description;
  result.vocabulary = config.model.vocabulary;
  LoadedModel model(backend, config, LoadedModel::Masters::scored);
  model.load(load);
  count_weights(model, result);
  log.print("{} on {}: weights of {} bytes", name, result.device, result.weight_bytes);
  std::int64_t steps = 0;
  std::vector<std::int64_t> batches = options.batches;
  if (options.first_batch_alone) batches.resize(1);
  for (const std::int64_t batch : batches) steps += (options.sequences + batch - 1) / batch * options.tokens;
  Progress progress(&log, {.what = "probing " + name, .unit = "passes", .total = static_cast<double>(steps)});
  for (const std::int64_t batch : batches) {
    BatchMeasurement& measured = result.batches.emplace_back();
    measured.batch = batch;
    BatchPrograms programs(model.store(), config, model.layouts(), batch, options);
    measure_logits(programs, sequences, options, measured);
    measure_continuations(programs, sequences, config.model.vocabulary, options, progress, measured);
  }
  if (options.evaluate) measure_score(model, config, validation, result);
  return result;
}

}  // namespace mulligan::probe
