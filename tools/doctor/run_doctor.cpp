#include "tools/doctor/run_doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/eval/evaluator.h"
#include "framework/run/weights.h"
#include "framework/step/step_graphs.h"
#include "tools/doctor/examine.h"
#include "tools/doctor/model_checks.h"
#include "tools/doctor/outcome_checks.h"

namespace mulligan::doctor {
namespace {

constexpr std::uint64_t sampled_tokens = std::uint64_t{1} << 20;
constexpr std::int64_t probed_tokens = 64;
// Forward passes of a CPU that take longer are left to `mulligan doctor`.
constexpr double affordable_operations = 3e10;

void add(std::vector<Finding>& to, std::vector<Finding> more) {
  std::ranges::move(more, std::back_inserter(to));
}

void say(RunLog& log, const std::vector<Finding>& findings, CheckOutcome least) {
  for (const Finding& f : findings) {
    if (f.verdict < least) continue;
    log.line(fmt::format("warning: doctor {} {}: {}: {}; {}", verdict_name(f.verdict), f.id, f.title,
                         f.message, f.hint));
  }
}

// Rows as they come, and as the device got them.
struct SeenRows {
  std::vector<Batch> given, received;
};
SeenRows see_rows(const ObservedRun& run) {
  SeenRows seen;
  TrainingEngine& engine = run.phases.engine();
  const LoaderPosition here = run.rows.position();
  const auto on_device = [&](const char* name) {
    return engine.store().download_as<std::int32_t>(fmt::format("{}/{}", step_tensor::batch, name));
  };
  for (int i = 0; i < 2; ++i) {
    seen.given.push_back(run.rows.next());
    static_cast<void>(engine.probe_loss(seen.given.back()));
    seen.received.push_back(seen.given.back());
    seen.received.back().tokens = on_device("tokens");
    seen.received.back().targets = on_device("targets");
  }
  run.rows.restore(here);
  return seen;
}

// The run's own evaluation, where one pass of it takes moments.
std::optional<Finding> own_evaluation(const ObservedRun& run, const Batch& row) {
  TrainingDevice& device = run.phases.device();
  Evaluator* evaluator = device.programs->evaluator();
  if (!evaluator || !run.validation) return {};
  const EvalConfig& eval = evaluator->options().eval;
  const std::int64_t pass = eval.sequence_length * eval.packed_sequences;
  double parameters = 0;
  for (const PlannedParameter& parameter : run.parameters)
    parameters += static_cast<double>(parameter.layout.spec.type.elements());
  const Backend& backend = *device.plugins.backend;
  const bool on_cpu = backend.info().threads > 0;
  if (on_cpu && 2 * parameters * static_cast<double>(pass) > affordable_operations) return {};
  const std::vector<std::uint16_t>& all = run.validation->tokens;
  const std::span<const std::uint16_t> tokens(
      all.data(), std::min<std::size_t>(all.size(), static_cast<std::size_t>(pass) + 1));
  if (eval.drop_remainder && tokens.size() <= static_cast<std::size_t>(pass)) return {};
  return check_repeated_score([&] { return evaluator->score(tokens, nullptr).loss_nats; },
                              [&] { static_cast<void>(device.programs->engine().probe_loss(row)); },
                              backend.repeats());
}

SeenData see_data_of(const ObservedRun& run) {
  const RunConfig& config = run.loaded.config;
  std::optional<Tokenizer> tokenizer;
  if (!config.data.tokenizer.empty()) tokenizer = Tokenizer::load(config.data.tokenizer);
  DataSides sides{run.data.shards,
                  {},
                  static_cast<int>(config.model.vocabulary),
                  tokenizer ? &*tokenizer : nullptr,
                  sampled_tokens};
  if (run.validation) sides.validation = run.validation->files;
  if (config.data.documents != DataDocuments::joined) sides.bos_id = run.data.bos_id;
  return see_data(sides);
}

// On plugins of its own, so that the run's memory stays what its plan says.
std::vector<Finding> model_findings(const ObservedRun& run, const Batch& row, double floor_nats) {
  const RunConfig& config = run.loaded.config;
  const RunPlugins plugins = make_phase_plugins(run.loaded, run.host, run.phases.device().section);
  Backend& backend = *plugins.backend;
  const ComputeTypes types = compute_types(config.phases.front());
  const auto vocabulary = static_cast<int>(config.model.vocabulary);
  std::vector<ParameterSpec> specs;
  for (const PlannedParameter& parameter : run.parameters) specs.push_back(parameter.layout.spec);
  const Weights weights = weights_of(run.phases.engine().store(), run.parameters);

  std::vector<Finding> findings =
      check_loss_values(backend, *plugins.loss, vocabulary, config.model.softcap, types.activations);
  const bool fresh = !run.resumed, drawn = fresh && config.init.from.empty();
  if (fresh) {
    add(findings, check_weights(specs, weights, drawn ? WeightOrigins::drawn : WeightOrigins::trained));
  } else {  // the run's own, whose checkpoint has their sum
    findings.push_back(check_weights(specs, weights, WeightOrigins::trained)[1]);  // D06
  }
  const std::int64_t tokens =
      std::min<std::int64_t>(probed_tokens, static_cast<std::int64_t>(row.tokens.size()));
  const Batch cut = cut_row(row, tokens, masking_options(config.model, run.data.bos_id));
  EvaluationProbe evaluation(backend, config, types, weights, cut);
  findings.push_back(check_memory(evaluation, backend.repeats()));
  const double nats = evaluation.mean_loss();
  if (drawn) {
    findings.push_back(judge_initial_loss(nats, config.model, specs));
  } else if (fresh) {
    findings.push_back(judge_trained_loss(nats, vocabulary, floor_nats));
  }
  findings.push_back(check_modes(backend, *plugins.loss, config, types, weights, cut, nats));
  return findings;
}

// The mean training loss of the last quarter of a run, of its last steps at most: in a short run the account's last
// steps are all of it, and their mean says nothing of where the loss is now.
std::optional<WindowMean> recent_loss(const LossAccount& account, std::int64_t steps) {
  const auto last = account.last_steps();
  if (!last) return last;
  return account.window(std::max(last->first, last->last - std::max<std::int64_t>(1, steps / 4)), last->last);
}

Throughput throughput_of(const ObservedRun& run) {
  Throughput seen;
  seen.tokens = run.tokens;
  seen.steps = run.step;
  seen.tokens_per_second = run.tokens_per_second;
  seen.train_seconds = run.training_seconds;
  for (const auto& [phase, seconds] : run.ledger.phases()) seen.run_seconds += seconds;
  for (const PlannedParameter& parameter : run.parameters) {
    if (parameter.layout.spec.matrix && parameter.name() != "tok_emb.weight")
      seen.matrix_parameters += static_cast<double>(parameter.layout.spec.type.elements());
  }
  const mlg_device_info info = run.phases.backend().info();
  if (info.threads > 0 && run.ranks.alone())
    seen.peak_operations_per_second =
        cpu_peak(info.threads, run.loaded.config.phases.back().compute_dtype != MLG_F32);
  return seen;
}

Samples samples_of(const ObservedRun& run, std::string (*tensor)(std::string_view)) {
  const TensorStore& store = run.phases.engine().store();
  return sample_parameters(run.parameters, [&](const PlannedParameter& parameter) {
    return download_values(store, tensor(parameter.name()));
  });
}

}  // namespace

void RunDoctor::examine_start(const ObservedRun& run) {
  const RunConfig& config = run.loaded.config;
  const auto start = std::chrono::steady_clock::now();
  data_ = see_data_of(run);
  add(findings_, data_.findings);
  start_ = samples_of(run, master_name);
  const SeenRows rows = see_rows(run);
  const auto masking = masking_options(config.model, run.data.bos_id);
  findings_.push_back(masking ? check_masked_targets(rows.received, *masking)
                              : check_targets(rows.received, data_.repeat_share));
  add(findings_, model_findings(run, rows.given.front(), loss_floor(config.model, data_.bigram_nats)));
  if (const auto own = own_evaluation(run, rows.given.back())) findings_.push_back(*own);
  if (level_ == DoctorLevel::all) {
    Examination beyond;
    beyond.stages = {"forward", "train"};
    add(findings_, examine(run.loaded, run.host, beyond));
  }
  seconds_ = seconds_since(start);
  say(run.log, findings_, CheckOutcome::warn);
  run.log.line(fmt::format("doctor: {} checks in {:.2f} s, the worst {}", findings_.size(), seconds_,
                           verdict_name(worst(findings_))));
  const auto failed = std::ranges::find(findings_, CheckOutcome::fail, &Finding::verdict);
  if (failed == findings_.end()) return;
  if (!force_) {
    throw run_error(
        "the run was not started, for check {} ({}) failed: {}; {}, or start it with --force, which is "
        "recorded.",
        failed->id, failed->title, failed->message, failed->hint);
  }
  forced_ = true;
  run.log.line("warning: the run goes on in spite of that (--force)");
}

// Of the first rank, whose rows, weights and device are like the others'.
void RunDoctor::before_first_step(const ObservedRun& run) {
  level_ = run.loaded.config.doctor.level;
  if (level_ == DoctorLevel::off) return;
  run.phases.device().programs->refresh_scored_weights();  // by all ranks, which may have slices of them
  if (!run.ranks.first()) return;
  const auto patience = run.ranks.patience();
  const std::string before = run.ledger.enter("doctor");
  try {
    examine_start(run);
  } catch (const Error& error) {
    // A signal: the loop heeds it before its first step and leaves a checkpoint, as without the doctor.
    if (error.code() != ExitCode::interrupted) throw;
    level_ = DoctorLevel::off;
    findings_.clear();
  }
  run.ledger.enter(before);
}

void RunDoctor::at_end(const ObservedRun& run) {
  const RunConfig& config = run.loaded.config;
  if (level_ == DoctorLevel::off || !run.ranks.first()) return;
  std::vector<Finding> found;
  // Nothing of a loss that is not a cross entropy is held against one.
  const bool comparable = run.phases.device().plugins.loss->is_cross_entropy();
  Outcome outcome{.steps = run.step,
                  .last_steps = comparable ? recent_loss(run.losses, run.step) : std::nullopt,
                  .vocabulary = static_cast<int>(config.model.vocabulary),
                  .floor_nats = loss_floor(config.model, data_.bigram_nats),
                  .unigram_nats = data_.unigram_nats,
                  .of_training = !run.score};
  const auto of_logits = std::ranges::find(findings_, "D01", &Finding::id);
  const bool sound = of_logits != findings_.end() && of_logits->verdict == CheckOutcome::pass;
  if (run.score || (outcome.last_steps && sound)) {
    outcome.val_nats = run.score ? run.score->val_loss_nats : outcome.last_steps->mean_nats;
    found.push_back(judge_learning(outcome));
    if (run.score) found.push_back(judge_validation_floor(outcome));
  }
  found.push_back(judge_account(run.losses, run.step));
  found.push_back(judge_throughput(throughput_of(run)));
  const Samples now = samples_of(run, master_name);
  Movement movement{.parameters = run.parameters, .before = start_, .after = now};
  movement.steps = run.step - run.first_step;
  for (const OptimizerGroup& group : run.phases.device().groups.groups()) {
    movement.optimizers.push_back(group.name);
    movement.rates.push_back(group.base_lr);
  }
  movement.vocabulary = config.model.vocabulary;
  const double of_these_steps =
      run.step > 0 ? static_cast<double>(run.tokens * movement.steps) / static_cast<double>(run.step) : 0;
  for (const double share : data_.shares) movement.expected.push_back(share * of_these_steps);
  found.push_back(find_frozen_parameters(movement));
  found.push_back(judge_proportion(movement));
  if (scores_averages(config))
    found.push_back(judge_average(movement, samples_of(run, average_name), config.ema.decay));
  say(run.log, found, CheckOutcome::warn);
  add(findings_, std::move(found));
}

void RunDoctor::add_to_result(nlohmann::ordered_json& result) const {
  nlohmann::ordered_json json = findings_json(findings_);
  json["level"] = word_of(level_);
  json["forced"] = forced_;
  json["seconds"] = seconds_;
  result["doctor"] = json;
}

void RunDoctor::last_words(RunLog& log) const {
  std::vector<Finding> failed;
  std::ranges::copy_if(findings_, std::back_inserter(failed),
                       [](const Finding& f) { return f.verdict == CheckOutcome::fail; });
  say(log, failed, CheckOutcome::fail);
}

}  // namespace mulligan::doctor
