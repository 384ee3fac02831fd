#include "framework/train/step_reports.h"

#include <fmt/format.h>

namespace mulligan {

StepRecord StepReports::window(const Trained& now) const {
  StepRecord record;
  record.window_first = last_.steps;
  record.window_last = record.step = now.steps;
  record.tokens = now.tokens;
  return record;
}

void StepReports::write(StepRecord record, TrainingClock& clock, double lr_factor) {
  record.elapsed_seconds = clock.elapsed_seconds();
  const double seconds = record.elapsed_seconds - last_seconds_;
  record.step_seconds = seconds / static_cast<double>(record.step - last_.steps);
  record.slowest_step_seconds = clock.take_slowest_step_seconds();
  record.tokens_per_second = static_cast<double>(record.tokens - last_.tokens) / seconds;
  outputs_.metrics().step(record);
  const double remaining = clock.remaining_seconds(record.step);
  outputs_.log().print(
      "step {:>6}  loss {:.4f} nats (mean {:.4f})  norm {:.3f}  lr x{:.3f}  {:.0f} tokens/s  {:.1f} s  {:.1f} %{}",
      record.step, record.loss_nats, record.window_loss_nats, record.gradient_norm, lr_factor,
      record.tokens_per_second, record.elapsed_seconds, 100 * record.budget_fraction,
      remaining > 0 ? fmt::format("  {} left", clock_text(remaining)) : "");
  outputs_.log().require_written();
  last_ = {record.step, record.tokens};
  last_seconds_ = record.elapsed_seconds;
}

void StepReports::save_to(CheckpointProgress& progress) const {
  progress.reported_step = last_.steps;
  progress.reported_at_seconds = last_seconds_;
}

void StepReports::restore(const CheckpointManifest& manifest, std::int64_t step_tokens) {
  const std::int64_t steps = manifest.progress.reported_step;
  last_ = {steps, manifest.tokens - (manifest.step - steps) * step_tokens};
  last_seconds_ = manifest.progress.reported_at_seconds;
}

}  // namespace mulligan
