#include "tools/doctor/rehearsal.h"

#include "framework/ranks/communicator.h"
#include "framework/step/snapshot.h"

namespace mulligan::doctor {

RunConfig shortened(RunConfig config, std::int64_t tokens) {
  config.train.micro_batches = 1;
  config.train.tokens_per_step = tokens;
  config.train.sequence_length = tokens;
  Phase phase = config.phases.back();
  phase.until = {};
  phase.micro_batches = 1;
  phase.sequence_length = tokens;
  phase.backend.reset();
  phase.lr_policy = LrPolicy::continued;
  phase.reset_optimizer = false;
  config.phases = {phase};
  return config;
}

Rehearsal::Rehearsal(const LoadedConfig& loaded, const RunConfig& config, PluginHost& host)
    : config_(config),
      loss_scaler_(config.loss_scale),
      plugins_(make_run_plugins(loaded, host)),
      parameters_(plan_parameters(config)),
      groups_(config, plugins_, parameters_),
      communicator_(make_self_communicator()),
      engine_(config, "backend", plugins_, parameters_, groups_, *communicator_, 4),
      arena_(*plugins_.backend) {
  arena_.bind(engine_.programs(), engine_.store());
  engine_.initialise(static_cast<std::uint64_t>(config.run.seed));
}

double Rehearsal::step(std::int64_t number, const Batch& row) {
  // Past warm-up and before decay in any usual schedule.
  constexpr double share = 0.3;
  groups_.set_rates({30, 100, share, share});
  const auto row_again = [&]() -> const Batch& { return row; };
  const Phase& phase = config_.phases.back();
  do {
    engine_.set_loss_scale(loss_scaler_.scale(phase));
  } while (!engine_.step(number, row_again) && loss_scaler_.note(false));
  engine_.record_metrics(number - 1);
  return engine_.read_metrics(number - 1, number).front().loss_sum_nats /
         static_cast<double>(row.target_count());
}

std::string Rehearsal::state_digest_of(TensorStore& store) const {
  return state_digest(store, engine_.whole_state(), "").sha256;
}

}  // namespace mulligan::doctor
