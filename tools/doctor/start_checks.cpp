#include "tools/doctor/start_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/eval/evaluator.h"
#include "framework/step/step_graphs.h"
#include "tools/doctor/corpus_checks.h"
#include "tools/doctor/examine.h"
#include "tools/doctor/loss_checks.h"
#include "tools/doctor/model_checks.h"
#include "tools/doctor/movement.h"
#include "tools/doctor/training_checks.h"

namespace mulligan::doctor {
namespace {

constexpr std::uint64_t sampled_tokens = std::uint64_t{1} << 20;
constexpr std::int64_t probed_tokens = 64;
// Forward passes of a CPU that take longer are left to `mulligan doctor`.
constexpr double affordable_operations = 3e10;

void add(std::vector<Finding>& to, std::vector<Finding> more) {
  std::ranges::move(more, std::back_inserter(to));
}

// Rows as they come, and as the device got them.
struct SeenRows {
  std::vector<Batch> given, received;
};
SeenRows see_rows(const RunSubject& subject) {
  SeenRows seen;
  TrainingEngine& engine = subject.device.programs->engine();
  const LoaderPosition here = subject.rows.position();
  const auto on_device = [&](const char* name) {
    return engine.store().download_as<std::int32_t>(fmt::format("{}/{}", step_tensor::batch, name));
  };
  for (int i = 0; i < 2; ++i) {
    seen.given.push_back(subject.rows.next());
    static_cast<void>(engine.probe_loss(seen.given.back()));
    seen.received.push_back(seen.given.back());
    seen.received.back().tokens = on_device("tokens");
    seen.received.back().targets = on_device("targets");
  }
  subject.rows.restore(here);
  return seen;
}

// The run's own evaluation, where one pass of it takes moments.
std::optional<Finding> own_evaluation(const RunSubject& subject, const Batch& row) {
  Evaluator* evaluator = subject.device.programs->evaluator();
  if (!evaluator || !subject.validation) return {};
  const EvalConfig& eval = evaluator->options().eval;
  const std::int64_t pass = eval.sequence_length * eval.packed_sequences;
  double parameters = 0;
  for (const PlannedParameter& parameter : subject.parameters)
    parameters += static_cast<double>(parameter.layout.spec.type.elements());
  const Backend& backend = *subject.device.plugins.backend;
  const bool on_cpu = backend.info().threads > 0;
  if (on_cpu && 2 * parameters * static_cast<double>(pass) > affordable_operations) return {};
  const std::vector<std::uint16_t>& all = subject.validation->tokens;
  const std::span<const std::uint16_t> tokens(
      all.data(), std::min<std::size_t>(all.size(), static_cast<std::size_t>(pass) + 1));
  EvaluatorOptions options = evaluator->options();
  if (options.eval.drop_remainder && tokens.size() <= static_cast<std::size_t>(pass)) return {};
  return check_repeated_score([&] { return evaluator->score(tokens, nullptr).loss_nats; },
                              [&] { static_cast<void>(subject.device.programs->engine().probe_loss(row)); },
                              backend.repeats());
}

SeenData see_data_of(const RunSubject& subject) {
  const RunConfig& config = subject.loaded.config;
  std::optional<Tokenizer> tokenizer;
  if (!config.data.tokenizer.empty()) tokenizer = Tokenizer::load(config.data.tokenizer);
  DataSides sides{subject.data.shards,
                  {},
                  static_cast<int>(config.model.vocabulary),
                  tokenizer ? &*tokenizer : nullptr,
                  sampled_tokens};
  if (subject.validation) sides.validation = subject.validation->files;
  if (config.data.documents != DataDocuments::joined) sides.bos_id = subject.data.bos_id;
  return see_data(sides);
}

// On plugins of its own, so that the run's memory stays what its plan says.
std::vector<Finding> model_findings(const RunSubject& subject, const Batch& row, double floor_nats) {
  const RunConfig& config = subject.loaded.config;
  const RunPlugins plugins = make_phase_plugins(subject.loaded, subject.host, subject.device.section);
  Backend& backend = *plugins.backend;
  const ComputeTypes types = compute_types(config.phases.front());
  const DType compute = types.activations;
  const auto vocabulary = static_cast<int>(config.model.vocabulary);
  std::vector<ParameterSpec> specs;
  for (const PlannedParameter& parameter : subject.parameters) specs.push_back(parameter.layout.spec);
  const Weights weights = weights_of(subject.device.programs->engine().store(), subject.parameters);

  std::vector<Finding> findings =
      check_loss_values(backend, *plugins.loss, vocabulary, config.model.softcap, compute);
  const std::optional<double> excess =
      loss_excess(backend, *plugins.loss, vocabulary, config.model.softcap, compute);
  const bool drawn = subject.fresh && config.init.from.empty();
  if (subject.fresh) {
    add(findings, check_weights(specs, weights, drawn ? WeightOrigins::drawn : WeightOrigins::trained));
  } else {  // the run's own, whose checkpoint has their sum
    findings.push_back(check_values(specs, weights, WeightOrigins::trained));
  }
  const std::int64_t tokens =
      std::min<std::int64_t>(probed_tokens, static_cast<std::int64_t>(row.tokens.size()));
  const Batch cut = cut_row(row, tokens, masking_options(config.model, subject.data.bos_id));
  EvaluationProbe evaluation(backend, config, tokens, types);
  evaluation.set(weights);
  evaluation.set(cut);
  findings.push_back(check_memory(evaluation, backend.repeats()));
  if (drawn) {
    findings.push_back(judge_initial_loss(evaluation.mean_loss(), config.model, specs));
  } else if (subject.fresh) {
    findings.push_back(judge_trained_loss(evaluation.mean_loss(), vocabulary, floor_nats));
  }
  MicroStepProbe training(backend, *plugins.loss, config, tokens, types);
  training.set(weights);
  training.set(cut);
  training.run();
  findings.push_back(judge_modes(training.mean_loss(), evaluation.mean_loss(), excess, compute));
  return findings;
}

const char* level_name(DoctorLevel level) {
  return level == DoctorLevel::off ? "off" : level == DoctorLevel::start ? "start" : "all";
}

void say_findings(const std::vector<Finding>& findings, const Say& say) {
  for (const Finding& f : findings) {
    if (f.verdict == CheckOutcome::pass) continue;
    say(fmt::format("warning: doctor {} {}: {}: {}; {}", verdict_name(f.verdict), f.id, f.title, f.message,
                    f.hint));
  }
}

}  // namespace

nlohmann::ordered_json record_json(const StartRecord& record) {
  nlohmann::ordered_json json = findings_json(record.findings);
  json["level"] = level_name(record.level);
  json["forced"] = record.forced;
  json["seconds"] = record.seconds;
  return json;
}

StartRecord examine_start(const RunSubject& subject, bool force, const Say& say) {
  StartRecord record;
  record.level = subject.loaded.config.doctor.level;
  if (record.level == DoctorLevel::off) return record;
  const auto start = std::chrono::steady_clock::now();
  SeenData data = see_data_of(subject);
  record.floor_nats = loss_floor(subject.loaded.config.model, data.bigram_nats);
  record.unigram_nats = data.unigram_nats;
  record.token_shares = std::move(data.shares);
  add(record.findings, std::move(data.findings));
  record.start = sample_parameters(subject.parameters, [&](const PlannedParameter& parameter) {
    return values_of(subject.device.programs->engine().store(), master_name(parameter.name()));
  });
  const SeenRows rows = see_rows(subject);
  const auto masking = masking_options(subject.loaded.config.model, subject.data.bos_id);
  record.findings.push_back(masking ? check_masked_targets(rows.received, *masking)
                                    : check_targets(rows.received, data.repeat_share));
  add(record.findings, model_findings(subject, rows.given.front(), record.floor_nats));
  if (const auto own = own_evaluation(subject, rows.given.back())) record.findings.push_back(*own);
  if (record.level == DoctorLevel::all) {
    Examination beyond;
    beyond.stages = {Stage::forward, Stage::train};
    add(record.findings, examine(subject.loaded, subject.host, beyond));
  }
  record.seconds = seconds_since(start);
  say_findings(record.findings, say);
  say(fmt::format("doctor: {} checks in {:.2f} s, the worst {}", record.findings.size(), record.seconds,
                  verdict_name(worst(record.findings))));
  const auto failed = std::ranges::find(record.findings, CheckOutcome::fail, &Finding::verdict);
  if (failed == record.findings.end()) return record;
  if (!force) {
    throw run_error(
        "the run was not started, for check {} ({}) failed: {}; {}, or start it with --force, which is "
        "recorded.",
        failed->id, failed->title, failed->message, failed->hint);
  }
  record.forced = true;
  say("warning: the run goes on in spite of that (--force)");
  return record;
}

void examine_end(StartRecord& record, const RunEnd& end, const Say& say) {
  if (record.level == DoctorLevel::off) return;
  std::vector<Finding> findings;
  if (end.validated) {
    Outcome outcome = *end.validated;
    outcome.floor_nats = record.floor_nats;
    outcome.unigram_nats = record.unigram_nats;
    findings.push_back(judge_learning(outcome));
    if (!outcome.of_training) findings.push_back(judge_validation_floor(outcome));
  }
  if (end.account) findings.push_back(judge_account(*end.account, end.steps));
  findings.push_back(judge_throughput(end.throughput));
  if (end.movement) {
    findings.push_back(find_frozen_parameters(*end.movement));
    findings.push_back(judge_proportion(*end.movement));
    if (end.averages) findings.push_back(judge_average(*end.movement, *end.averages, end.ema_decay));
  }
  say_findings(findings, say);
  add(record.findings, std::move(findings));
}

bool passed(const StartRecord& record, std::string_view id) {
  const auto found = std::ranges::find(record.findings, id, &Finding::id);
  return found != record.findings.end() && found->verdict == CheckOutcome::pass;
}

void say_failures(const StartRecord& record, const Say& say) {
  std::vector<Finding> failed;
  std::ranges::copy_if(record.findings, std::back_inserter(failed),
                       [](const Finding& f) { return f.verdict == CheckOutcome::fail; });
  say_findings(failed, say);
}

}  // namespace mulligan::doctor
