#include "framework/ttt/ttt_saver.h"

#include "framework/core/stop_request.h"
#include "framework/run/resumable_evaluation.h"

namespace mulligan {
namespace {

// Copies take at most one second of so many.
constexpr double shortest_gap = 50;

}  // namespace

void TttSaver::open(ScoreState::Options options) {
  state_.emplace(std::move(options));
  if (state_->found()) progress_ = read_ttt(*state_->found());
}

PhaseSeconds TttSaver::attempt_seconds() {
  const std::string now = clock_.enter("ttt_setup");  // books what has passed
  clock_.enter(now);
  PhaseSeconds seconds;
  for (const auto& [phase, amount] : clock_.phases()) seconds[phase] = amount;
  return seconds;
}

double TttSaver::seconds(const std::string& phase) {
  double seconds = attempt_seconds()[phase];
  if (!state_) return seconds;
  const auto earlier = state_->earlier_seconds().find(phase);
  return earlier == state_->earlier_seconds().end() ? seconds : seconds + earlier->second;
}

void TttSaver::passed() {
  unsaved_ = true;
  if (stop_signal() != 0) interrupted();
  if (!state_) return throw_if_stopping();
  if (state_->due()) save();
  state_->book(attempt_seconds());
}

void TttSaver::between_batches(const TttRun& run) {
  if (!state_) return throw_if_stopping();
  const double now = steady_seconds();
  if (now - kept_at_ >= shortest_gap * keep_seconds_) {
    progress_.standing.reset();  // its memory
    progress_.standing = run.standing();
    unsaved_ = true;
    kept_at_ = steady_seconds();
    keep_seconds_ = kept_at_ - now;
  }
  between_chunks();
  if (unsaved_ && state_->due()) save();
}

void TttSaver::between_chunks() {
  if (!state_) return throw_if_stopping();
  if (stop_signal() != 0) interrupted();
  state_->book(attempt_seconds());
}

void TttSaver::interrupted() {
  if (!state_) return;
  if (unsaved_) save();
  throw stopped_error(*state_);
}

void TttSaver::save() {
  save_ttt(*state_, progress_, attempt_seconds());
  unsaved_ = false;
}

void TttSaver::finish() {
  if (state_) state_->finish();
}

}  // namespace mulligan
