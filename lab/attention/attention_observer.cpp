#include "lab/attention/attention_observer.h"

#include "tools/doctor/probe.h"

namespace mulligan::doctor {

bool AttentionObserver::looks_after(const RunConfig& config, std::int64_t step) const {
  return config.metrics.attention_every > 0 && step % config.metrics.attention_every == 0;
}

// Of the first rank, whose weights are like the others'.
void AttentionObserver::after_step(ObservedRun& run) {
  if (!run.ranks.first()) return;
  const auto patience = run.ranks.patience();
  const std::string before = run.ledger.enter("doctor");
  if (phase_ != run.phases.index() || !look_) {
    look_.reset();  // its memory first
    look_ = std::make_unique<AttentionLook>(run.loaded, run.host, run.phases.device().section,
                                            run.phases.phase());
    phase_ = run.phases.index();
  }
  const LoaderPosition here = run.rows.position();
  const Batch row = run.rows.next();
  run.rows.restore(here);
  run.metrics->attention(look_->look(weights_of(run.phases.engine().store(), run.parameters), row, run.step));
  run.ledger.enter(before);
}

}  // namespace mulligan::doctor
