// Trainer: the doctor's checks before the first step and of what the run found.
#include "framework/core/error.h"
#include "framework/doctor/probe.h"
#include "framework/report/machine.h"
#include "framework/step/step_graphs.h"
#include "framework/train/trainer.h"

namespace mulligan {

// Of the first rank, whose rows, weights and device are like the others'.
void Trainer::examine_start(const TrainOptions& options, bool fresh) {
  if (config_.doctor.level == DoctorLevel::off) return;
  device_->programs->refresh_scored_weights();  // by all ranks, which may have slices of them
  if (!ranks_.first()) return;
  const auto patience = ranks_.patience();
  const std::string before = ledger_.enter("doctor");
  try {
    doctor_ = doctor::examine_start(
        {loaded_, host_, parameters_, *device_, *rows_, validation_.get(), data_, fresh}, options.force,
        [this](const std::string& line) { log_.line(line); });
  } catch (const Error& error) {
    // A signal: the loop heeds it before its first step and leaves a checkpoint, as without the doctor.
    if (error.code() != ExitCode::interrupted) throw;
  }
  ledger_.enter(before);
}

namespace {

// The mean training loss of the last quarter of a run, of its last steps at most: in a short run the account's last
// steps are all of it, and their mean says nothing of where the loss is now.
std::optional<WindowMean> recent_loss(const LossAccount& account, std::int64_t steps) {
  const auto last = account.last_steps();
  if (!last) return last;
  return account.window(std::max(last->first, last->last - std::max<std::int64_t>(1, steps / 4)), last->last);
}

}  // namespace

void Trainer::examine_end() {
  if (config_.doctor.level == DoctorLevel::off) return;
  doctor::RunEnd end;
  // Nothing of a loss that is no cross entropy is held against one.
  const auto trained =
      device_->plugins.loss->is_cross_entropy() ? recent_loss(account_, step_) : std::nullopt;
  if (result_.validation) {
    end.validated = doctor::Outcome{step_, result_.validation->val_loss_nats, trained,
                                    static_cast<int>(config_.model.vocabulary)};
  } else if (trained && doctor::passed(doctor_, "D01")) {
    end.validated =
        doctor::Outcome{step_, trained->mean_nats, trained, static_cast<int>(config_.model.vocabulary)};
    end.validated->of_training = true;
  }
  end.account = &account_;
  end.steps = step_;
  doctor::Throughput& seen = end.throughput;
  seen.tokens = tokens_;
  seen.steps = step_;
  seen.tokens_per_second = result_.tokens_per_second;
  seen.train_seconds = budget_.elapsed_seconds();
  for (const auto& [phase, seconds] : result_.seconds) seen.run_seconds += seconds;
  for (const PlannedParameter& parameter : parameters_) {
    if (parameter.layout.spec.matrix && parameter.name() != "tok_emb.weight")
      seen.matrix_parameters += static_cast<double>(parameter.layout.spec.type.elements());
  }
  const Backend::Info info = phases_.backend().info();
  if (info.threads > 0 && ranks_.alone())
    seen.peak_operations_per_second =
        doctor::processor_peak(info.threads, config_.phases.back().compute_dtype != Precision::fp32);
  const TensorStore& store = engine_->store();
  const doctor::Samples now = doctor::sample_parameters(parameters_, [&](const PlannedParameter& parameter) {
    return doctor::values_of(store, master_name(parameter.name()));
  });
  end.movement.emplace(doctor::Movement{.parameters = parameters_, .before = doctor_.start, .after = now});
  end.movement->steps = step_ - result_.first_step;
  for (const OptimizerGroup& group : device_->groups.groups()) {
    end.movement->optimizers.push_back(group.name);
    end.movement->rates.push_back(group.base_lr);
  }
  end.movement->vocabulary = config_.model.vocabulary;
  const double of_these_steps =
      step_ > 0 ? static_cast<double>(tokens_ * end.movement->steps) / static_cast<double>(step_) : 0;
  for (const double share : doctor_.token_shares) end.movement->expected.push_back(share * of_these_steps);
  if (config_.ema.decay > 0 && config_.eval.use_ema) {
    end.ema_decay = config_.ema.decay;
    end.averages = doctor::sample_parameters(parameters_, [&](const PlannedParameter& parameter) {
      return doctor::values_of(store, average_name(parameter.name()));
    });
  }
  doctor::examine_end(doctor_, end, [this](const std::string& line) { log_.line(line); });
}

}  // namespace mulligan
