#include "framework/ttt/ttt_saver.h"

#include "framework/core/stop_request.h"
#include "framework/run/resumable_evaluation.h"

namespace mulligan {

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
  save_if_asked(nullptr);
}

void TttSaver::between_batches(const TttRun& run) {
  save_if_asked(&run);
}

void TttSaver::between_chunks() {
  if (!state_) return throw_if_stopping();
  if (stop_signal() != 0 && state_->periodic()) throw stopped_error(*state_);
  state_->book(attempt_seconds());
}

void TttSaver::save_if_asked(const TttRun* run) {
  if (!state_) return throw_if_stopping();
  const bool stop = stop_signal() != 0;
  if (stop || state_->due()) {
    if (run) progress_.standing = run->standing();
    save_ttt(*state_, progress_, attempt_seconds());
    if (run) progress_.standing.reset();  // its memory
  }
  if (stop) throw stopped_error(*state_);
  state_->book(attempt_seconds());
}

void TttSaver::finish() {
  if (state_) state_->finish();
}

}  // namespace mulligan
