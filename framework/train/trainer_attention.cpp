// Trainer: looks at how attention rounds, every metrics.attention_every steps.
#include "framework/train/trainer.h"

namespace mulligan {

// Of the first rank, whose weights are like the others'. The clock of training stands still meanwhile, from when
// the device has ended the steps that it was given.
void Trainer::look_at_attention() {
  if (!ranks_.first()) return;
  const auto patience = ranks_.patience();
  phases_.backend().synchronize();
  note_ended(pace_.all_ended());
  budget_.pause();
  const std::string before = ledger_.enter("doctor");
  if (attention_phase_ != phases_.index() || !attention_) {
    attention_.reset();  // its memory first
    attention_ = std::make_unique<doctor::AttentionLook>(loaded_, host_, device_->section, phases_.phase());
    attention_phase_ = phases_.index();
  }
  const LoaderPosition here = rows_->position();
  const Batch row = rows_->next();
  rows_->restore(here);
  metrics_->attention(attention_->look(doctor::weights_of(engine_->store(), parameters_), row, step_));
  ledger_.enter(before);
  budget_.resume();
}

}  // namespace mulligan
