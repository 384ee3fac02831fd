#include "tools/doctor/run_doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/step/step_graphs.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {
namespace {

// The mean training loss of the last quarter of a run, of its last steps at most: in a short run the account's last
// steps are all of it, and their mean says nothing of where the loss is now.
std::optional<WindowMean> recent_loss(const LossAccount& account, std::int64_t steps) {
  const auto last = account.last_steps();
  if (!last) return last;
  return account.window(std::max(last->first, last->last - std::max<std::int64_t>(1, steps / 4)), last->last);
}

// Nothing of a loss that is not a cross entropy is held against one.
std::optional<Outcome> outcome_of(const ObservedRun& run, const StartRecord& record) {
  const int vocabulary = static_cast<int>(run.loaded.config.model.vocabulary);
  const bool comparable = run.phases.device().plugins.loss->is_cross_entropy();
  const auto trained = comparable ? recent_loss(run.losses, run.step) : std::nullopt;
  if (run.score) return Outcome{run.step, run.score->val_loss_nats, trained, vocabulary};
  if (!trained || !passed(record, "D01")) return {};
  Outcome outcome{run.step, trained->mean_nats, trained, vocabulary};
  outcome.of_training = true;
  return outcome;
}

Throughput throughput_of(const ObservedRun& run) {
  const RunConfig& config = run.loaded.config;
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
  const Backend::Info info = run.phases.backend().info();
  if (info.threads > 0 && run.ranks.alone())
    seen.peak_operations_per_second =
        cpu_peak(info.threads, config.phases.back().compute_dtype != Precision::fp32);
  return seen;
}

Samples samples_of(const ObservedRun& run, std::string (*tensor)(std::string_view)) {
  const TensorStore& store = run.phases.engine().store();
  return sample_parameters(run.parameters, [&](const PlannedParameter& parameter) {
    return values_of(store, tensor(parameter.name()));
  });
}

void describe_movement(const ObservedRun& run, const StartRecord& record, Movement& movement) {
  movement.steps = run.step - run.first_step;
  for (const OptimizerGroup& group : run.phases.groups().groups()) {
    movement.optimizers.push_back(group.name);
    movement.rates.push_back(group.base_lr);
  }
  movement.vocabulary = run.loaded.config.model.vocabulary;
  const double of_these_steps =
      run.step > 0 ? static_cast<double>(run.tokens * movement.steps) / static_cast<double>(run.step) : 0;
  for (const double share : record.token_shares) movement.expected.push_back(share * of_these_steps);
}

}  // namespace

// Of the first rank, whose rows, weights and device are like the others'.
void RunDoctor::before_first_step(ObservedRun& run) {
  if (run.loaded.config.doctor.level == DoctorLevel::off) return;
  run.phases.device().programs->refresh_scored_weights();  // by all ranks, which may have slices of them
  if (!run.ranks.first()) return;
  const auto patience = run.ranks.patience();
  const std::string before = run.ledger.enter("doctor");
  try {
    record_ = examine_start({run.loaded, run.host, run.parameters, run.phases.device(), run.rows,
                             run.validation, run.data, !run.resumed},
                            force_, [&](const std::string& line) { run.log.line(line); });
  } catch (const Error& error) {
    // A signal: the loop heeds it before its first step and leaves a checkpoint, as without the doctor.
    if (error.code() != ExitCode::interrupted) throw;
  }
  run.ledger.enter(before);
}

void RunDoctor::at_end(ObservedRun& run) {
  const RunConfig& config = run.loaded.config;
  if (config.doctor.level == DoctorLevel::off || !run.ranks.first()) return;
  RunEnd end;
  end.validated = outcome_of(run, record_);
  end.account = &run.losses;
  end.steps = run.step;
  end.throughput = throughput_of(run);
  const Samples now = samples_of(run, master_name);
  end.movement.emplace(Movement{.parameters = run.parameters, .before = record_.start, .after = now});
  describe_movement(run, record_, *end.movement);
  if (scores_averages(config)) {
    end.ema_decay = config.ema.decay;
    end.averages = samples_of(run, average_name);
  }
  examine_end(record_, end, [&](const std::string& line) { run.log.line(line); });
}

void RunDoctor::add_to_result(nlohmann::ordered_json& result) const {
  result["doctor"] = record_json(record_);
}

void RunDoctor::last_words(RunLog& log) const {
  say_failures(record_, [&](const std::string& line) { log.line(line); });
}

}  // namespace mulligan::doctor
