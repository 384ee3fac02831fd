#include "lab/ensemble/score_ensemble.h"

#include <algorithm>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/parallel.h"
#include "framework/core/printable.h"
#include "framework/core/steady_time.h"
#include "framework/eval/evaluator.h"
#include "framework/report/run_log.h"
#include "framework/run/evaluate_loaded.h"
#include "framework/run/run_plugins.h"
#include "framework/run/strict_rules.h"
#include "lab/ensemble/members.h"

namespace mulligan::ensemble {
namespace {

// Runs one model over a stretch of tokens and gives its logits.
struct Scorer {
  // Gets the index of a scored token in the stretch, its logits, and its target. Many threads call it.
  using TokenListener =
      std::function<void(std::size_t token, std::span<const float> logits, std::size_t answer)>;

  Evaluator& evaluator;
  std::span<const std::uint16_t> tokens;
  std::size_t vocabulary;
  int threads;

  // Returns the end of the stretch. If logits are not finite, the error names `who`.
  EvalPosition run(const EvalPosition& from, std::size_t until_row, const ByteCounter* counter,
                   const std::string& who, const TokenListener& listener) {
    EvalPosition end = from;
    std::size_t seen = 0;
    const auto row = [&](const EvalSpan& span, std::span<const float>, std::span<const float> logits) {
      const auto scored = static_cast<std::size_t>(span.length - span.score_begin);
      constexpr std::size_t block = 16;
      parallel_for((scored + block - 1) / block, threads, [&](std::size_t piece) {
        for (std::size_t i = piece * block; i < std::min(scored, (piece + 1) * block); ++i) {
          const std::size_t place = static_cast<std::size_t>(span.score_begin) + i;
          listener(seen + i, logits.subspan(place * vocabulary, vocabulary),
                   tokens[static_cast<std::size_t>(span.start) + place + 1]);
        }
      });
      seen += scored;
    };
    try {
      evaluator.score(
          tokens, counter, 1, 0, row, [&](const EvalPosition& position, std::size_t) { end = position; },
          from, until_row);
    } catch (const std::invalid_argument&) {
      throw run_error("the logits of {} are not finite, so it has no probabilities; no score is given.", who);
    }
    return end;
  }
};

// Predictions of single models and the sums of the members, over all stretches.
struct Tally {
  std::vector<calibration::Prediction> centre, reference;
  AverageSums members;
  EvalSums counted;  // tokens and bytes
};

struct Stretches {
  std::size_t rows, rows_per_stretch, tokens_per_stretch;
};

Stretches cut(const Evaluator& evaluator, std::size_t token_count, const EnsembleOptions& options,
              std::size_t vocabulary) {
  const EvalConfig& eval = evaluator.options().eval;
  const auto pass_tokens = static_cast<std::size_t>(eval.sequence_length * eval.packed_sequences);
  const std::size_t bytes =
      ProbabilityAverage::bytes_per_token(vocabulary, static_cast<std::size_t>(options.members));
  const std::size_t memory = static_cast<std::size_t>(options.chunk_mebibytes) << 20;
  const std::size_t passes = std::max<std::size_t>(1, memory / bytes / pass_tokens);
  const std::size_t rows = eval_rows(static_cast<std::int64_t>(token_count), eval).size();
  const std::size_t needed = (rows + evaluator.rows_per_pass() - 1) / evaluator.rows_per_pass();
  const std::size_t used = std::min(passes, std::max<std::size_t>(1, needed));
  return {rows, used * evaluator.rows_per_pass(), used * pass_tokens};
}

Tally score_all(Evaluator& evaluator, const ValidationSet& validation, Members& members,
                const RunConfig& config, RunLog& log) {
  const EnsembleOptions& options = config.ensemble->options;
  const auto vocabulary = static_cast<std::size_t>(config.model.vocabulary);
  const Stretches stretches = cut(evaluator, validation.tokens.size(), options, vocabulary);
  ProbabilityAverage average(stretches.tokens_per_stretch, vocabulary,
                             static_cast<std::size_t>(options.members));
  Scorer scorer{evaluator, validation.tokens, vocabulary, static_cast<int>(config.run.threads)};
  std::vector<calibration::Prediction> found(stretches.tokens_per_stretch);
  Tally tally;
  Progress progress(&log,
                    {.what = "scoring members",
                     .total = static_cast<double>((stretches.rows + stretches.rows_per_stretch - 1) /
                                                  std::max<std::size_t>(1, stretches.rows_per_stretch)) *
                              static_cast<double>(options.members + 2)});
  const auto single = [&](const EvalPosition& from, std::size_t until, const ByteCounter* counter,
                          const char* who, std::vector<calibration::Prediction>& into) {
    const EvalPosition end = scorer.run(
        from, until, counter, who, [&](std::size_t token, std::span<const float> logits, std::size_t answer) {
          found[token] = calibration::choose(logits, answer).prediction;
        });
    const auto tokens = static_cast<std::ptrdiff_t>(end.sums.tokens - from.sums.tokens);
    into.insert(into.end(), found.begin(), found.begin() + tokens);
    progress.advance();
    return end;
  };
  EvalPosition position;
  while (position.row < stretches.rows) {
    const EvalPosition from = position;
    const std::size_t until = from.row + stretches.rows_per_stretch;
    members.make_centre();
    position = single(from, until, validation.counter(), "the model", tally.centre);
    members.make(MLG_ENSEMBLE_REFERENCE);
    single(from, until, nullptr, "the reference", tally.reference);
    for (std::int64_t member = 0; member < options.members; ++member) {
      members.make(member);
      scorer.run(from, until, nullptr, fmt::format("member {}", member),
                 [&](std::size_t token, std::span<const float> logits, std::size_t answer) {
                   average.add(static_cast<std::size_t>(member), token, logits, answer);
                 });
      progress.advance();
    }
    average.take(static_cast<std::size_t>(position.sums.tokens - from.sums.tokens), tally.members);
  }
  tally.counted = position.sums;
  return tally;
}

void fill(EnsembleScore& score, const Tally& tally) {
  const auto tokens = static_cast<double>(tally.counted.tokens);
  score.tokens = tally.counted.tokens;
  score.bytes = tally.counted.bytes;
  score.centre = calibration::measure_calibration(tally.centre);
  score.reference = calibration::measure_calibration(tally.reference);
  score.ensemble = calibration::measure_calibration(tally.members.predictions);
  for (const AverageSums::Member& member : tally.members.members) {
    score.member_loss_nats.push_back(member.loss_nats / tokens);
    score.member_accuracy.push_back(static_cast<double>(member.right) / tokens);
  }
  score.mean_loss_nats = tally.members.mean_loss_nats / tokens;
  score.ambiguity_nats = tally.members.ambiguity_nats / tokens;
  score.disagreement =
      static_cast<double>(tally.members.disagreements) / tokens / static_cast<double>(score.members);
}

std::string settings_text(const PluginConfig& config) {
  std::string text;
  for (const Setting& setting : config.settings().all())
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", setting.name, to_toml(setting.value));
  return text;
}

// Under strict rules the bytes of all members count.
void require_counted(const RunConfig& config, const MemberBytes& stored) {
  if (config.ledger.rules != LedgerRules::strict) return;
  const EnsembleOptions& options = config.ensemble->options;
  if (!options.count_members) {
    throw config_error(
        "ledger.rules = \"strict\": the score of an ensemble is not that of "
        "the run's artifact; let the bytes of all members count with --set "
        "ensemble.count_members=true, or score it under --set ledger.rules=open.");
  }
  const std::uint64_t bytes = stored.all(options.members);
  if (config.ledger.artifact_bytes == 0 || bytes <= static_cast<std::uint64_t>(config.ledger.artifact_bytes))
    return;
  throw config_error(
      "ledger.rules = \"strict\": {} members take {} bytes, stored, "
      "more than ledger.artifact_bytes = {}; take fewer members or bits.",
      options.members, grouped(static_cast<std::int64_t>(bytes)), grouped(config.ledger.artifact_bytes));
}

}  // namespace

double EnsembleScore::bpb(double loss_nats) const {
  return bits_per_byte(loss_nats * static_cast<double>(tokens), bytes);
}

EnsembleScore score_ensemble(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                             const WeightLoader& load, const ScoreOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  resolve_run_plugins(loaded, host, PluginUse::ensemble);
  const RunConfig& config = loaded.config;
  const PluginConfig& keys = loaded.plugin("ensemble");
  const Ensemble plugin(load_plugin(host, MLG_ENSEMBLE, config.ensemble->table), keys);
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  require_computing(backend, "nothing can be scored");
  RunLog log(options, {});
  LoadedModel model(backend, config);
  EnsembleScore score;
  score.plugin = plugin.plugin().name();
  score.settings = settings_text(keys);
  score.members = config.ensemble->options.members;
  score.seed = config.ensemble->options.seed;
  score.stored = member_bytes(plugin, model.layouts(), config.model);
  require_counted(config, score.stored);
  ValidationSet validation = open_validation(config, origin, log);
  const auto wanted = static_cast<std::size_t>(options.tokens) + 1;
  if (validation.tokens.size() > wanted) validation.tokens.resize(wanted);

  BoundEvaluator scoring(model.store(), config.model, model.layouts(),
                         {config.eval, scored_order(config.model), validation.segment_start(), true});
  model.load(load);
  log.print("scoring {} members of '{}' by {} ({}) over {} tokens on {}", score.members, origin.name,
            score.plugin, score.settings, validation.tokens.size() - 1, backend.info().description);

  Members members(model, config.model, plugin, static_cast<std::uint64_t>(score.seed),
                  static_cast<int>(config.run.threads));
  const Tally tally = score_all(scoring.evaluator, validation, members, config, log);
  if (tally.counted.tokens == 0) {
    throw data_error(
        "no validation token was scored: there are {} tokens, fewer than one evaluation batch; set "
        "eval.drop_remainder = false.",
        validation.tokens.size());
  }
  require_equal_bytes(validation, tally.counted);
  fill(score, tally);
  score.data = validation.data;
  EvalResult whole;
  whole.tokens = tally.counted.tokens;
  whole.data = validation.data;
  require_whole_score(config.ledger, whole);
  score.seconds = seconds_since(start);
  return score;
}

}  // namespace mulligan::ensemble
