#include "framework/train/loss_books.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mulligan {
namespace {

constexpr std::int64_t loss_ring_steps = 100;  // single losses kept for means over the last steps

}  // namespace

LossBooks::LossBooks(std::int64_t log_every)
    : account_(static_cast<std::size_t>(std::max(loss_ring_steps, log_every))) {}

std::optional<UnsoundStep> LossBooks::collect(const std::vector<StepMetrics>& read,
                                              const std::string& phase) {
  for (const StepMetrics& metrics : read) {
    const StepMade made = uncollected_.front();
    const auto targets = static_cast<std::uint64_t>(made.targets);
    const double loss_nats = metrics.loss_sum_nats / static_cast<double>(targets);
    if (made.updated && (!std::isfinite(loss_nats) || !std::isfinite(metrics.gradient_norm))) {
      return UnsoundStep{collected_ + 1, loss_nats, metrics.gradient_norm};
    }
    uncollected_.pop_front();
    const std::int64_t step = collected_++;
    if (!made.updated) {
      account_.skip(step);
      continue;
    }
    account_.add(step, metrics.loss_sum_nats, targets, phase);
    gradient_norm_ = metrics.gradient_norm;
    step_nats_.push_back(loss_nats);
    last_nats_ = loss_nats;
    if (account_.run().steps_counted == 1) first_nats_ = loss_nats;
  }
  return std::nullopt;
}

void LossBooks::add_to(StepRecord& record, bool hf_compat) const {
  const double none = std::numeric_limits<double>::quiet_NaN();  // where no step was counted
  const auto window = account_.window(record.window_first, record.window_last), last = account_.last_steps();
  record.loss_nats = any_counted() ? last_nats_ : none;
  record.gradient_norm = gradient_norm_;
  record.window_loss_nats = window ? window->mean_nats : none;
  record.run_loss_nats = any_counted() ? account_.run().mean_nats() : none;
  record.steps_counted = account_.run().steps_counted;
  for (const auto& [phase, sums] : account_.phases())
    record.phase_loss_nats.emplace_back(phase, sums.mean_nats());
  record.last_first = last ? last->first : record.step;
  record.last_last = record.step;
  record.last_loss_nats = last ? last->mean_nats : none;
  record.steps_skipped = account_.state().steps_skipped;
  if (hf_compat) record.train_loss_hf = account_.train_loss_hf_nats();
}

void LossBooks::save_to(CheckpointManifest& manifest) const {
  manifest.loss = account_.state();
  manifest.progress.initial_loss_nats = first_nats_;
}

void LossBooks::restore(const CheckpointManifest& manifest) {
  account_.restore(manifest.loss);
  collected_ = manifest.step;
  first_nats_ = manifest.progress.initial_loss_nats;
  last_nats_ = manifest.loss.ring.empty() ? 0 : manifest.loss.ring.back();
}

}  // namespace mulligan
