// Keeps an unfinished test-time training on disk (ScoreState).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "framework/core/safetensors.h"
#include "framework/run/ledger.h"
#include "framework/run/score_state.h"
#include "framework/ttt/ttt_report.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

// An unfinished test-time training on disk (ScoreState).
struct TttProgress {
  // The scoring without test-time training comes first: its losses by stream position, and the next row. Its
  // row stays at the number of rows once it is done.
  std::vector<float> reference;
  std::size_t reference_row = 0;
  bool reference_done = false;
  std::vector<float> windows;           // TttScorer::score_without(); empty before it is done
  std::optional<TttStanding> standing;  // absent before the first batch is done
};

void save_ttt(ScoreState& state, const TttProgress& progress, const PhaseSeconds& seconds);
// Throws data_error, naming the file, where it is no such state.
TttProgress read_ttt(const SafetensorsFile& file);

// TttSaver: keeps an unfinished test-time training on disk, and the time of all its attempts.
class TttSaver {
 public:
  // `clock` books this attempt's phases, ttt_setup among them; it must outlive this object.
  explicit TttSaver(Ledger& clock) : clock_(clock) {}
  // From here on a state is kept; what `options` finds is in progress(). Throws as ScoreState.
  void open(ScoreState::Options options);

  // What is done; the caller fills in the reference as it goes.
  TttProgress& progress() { return progress_; }
  // After each pass of the scoring without test-time training: books the time and saves where that is due.
  // Throws an Error of ExitCode::interrupted, once the state is saved, where a signal asked for an end.
  void passed();
  // Between two batches: keeps what is done in memory, unless the last such copy is so young that copying
  // would take a noticeable share of the time; else as passed().
  void between_batches(const TttScorer& run);
  // Between two chunks of a batch, where a signal is obeyed at once: as interrupted().
  void between_chunks();
  // A signal ends the scoring wherever it is: saves what is kept and not on disk yet, and throws the Error
  // that says where. Returns where no state is kept.
  void interrupted();
  // Seconds of all attempts in a phase so far.
  double seconds(const std::string& phase);
  // The result is written: the state goes.
  void finish();

 private:
  PhaseSeconds attempt_seconds();
  void save();

  Ledger& clock_;
  std::optional<ScoreState> state_;
  TttProgress progress_;
  bool unsaved_ = false;     // progress_ has what the disk has not
  double kept_at_ = 0;       // when the last copy was made, and
  double keep_seconds_ = 0;  // what it took
};

}  // namespace mulligan
