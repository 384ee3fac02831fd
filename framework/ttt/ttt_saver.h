// TttSaver: keeps an unfinished test-time training on disk, and the time of all its attempts.
#pragma once

#include <optional>

#include "framework/run/ledger.h"
#include "framework/ttt/ttt_run.h"
#include "framework/ttt/ttt_state.h"

namespace mulligan {

class TttSaver {
 public:
  // `clock` books this attempt's phases, ttt_setup among them; it must outlive this object.
  explicit TttSaver(Ledger& clock) : clock_(clock) {}
  // From here on a state is kept; what `options` finds is in progress(). Throws as ScoreState.
  void open(ScoreState::Options options);

  // What is done; the caller fills in the reference as it goes.
  TttProgress& progress() { return progress_; }
  // After each pass of the scoring without test-time training, and between two batches: books the time and
  // saves where that is due. Throws an Error of ExitCode::interrupted, once the state is saved, where a
  // signal asked for an end.
  void passed();
  void between_batches(const TttRun& run);
  // Between two chunks of a batch: where states are saved as time goes by, a signal is obeyed at once, and
  // the batch is left; else when it is done.
  void between_chunks();
  // Seconds of all attempts in a phase so far.
  double seconds(const std::string& phase);
  // The result is written: the state goes.
  void finish();

 private:
  PhaseSeconds attempt_seconds();
  void save_if_asked(const TttRun* run);

  Ledger& clock_;
  std::optional<ScoreState> state_;
  TttProgress progress_;
};

}  // namespace mulligan
