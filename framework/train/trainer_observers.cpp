// Trainer: what its observers see, and when.
#include <algorithm>

#include "framework/train/trainer.h"

namespace mulligan {

ObservedRun Trainer::observed() {
  return {.loaded = loaded_,
          .host = host_,
          .ranks = ranks_,
          .parameters = parameters_,
          .phases = phases_,
          .rows = *rows_,
          .validation = validation_.get(),
          .data = data_,
          .losses = account_,
          .metrics = ranks_.first() && metrics_ ? &*metrics_ : nullptr,
          .ledger = ledger_,
          .log = log_,
          .resumed = !result_.resumed_from.empty(),
          .first_step = result_.first_step,
          .step = step_,
          .tokens = tokens_,
          .training_seconds = budget_.elapsed_seconds(),
          .tokens_per_second = result_.tokens_per_second,
          .score = result_.validation ? &*result_.validation : nullptr};
}

void Trainer::run_clock() {
  budget_.resume();
  for (const auto& observer : observers_) {
    ObservedRun run = observed();
    observer->clock_starts(run);
  }
}

void Trainer::stop_clock() {
  budget_.pause();
  for (const auto& observer : observers_) observer->clock_stops();
}

// The training clock stands still meanwhile, from when the device has ended the steps that it was given.
void Trainer::let_observers_look() {
  const auto looks = [&](const auto& observer) { return observer->looks_after(config_, step_); };
  if (std::ranges::none_of(observers_, looks)) return;
  phases_.backend().synchronize();
  note_ended(pace_.all_ended());
  stop_clock();
  for (const auto& observer : observers_) {
    ObservedRun run = observed();
    if (looks(observer)) observer->after_step(run);
  }
  run_clock();
}

}  // namespace mulligan
