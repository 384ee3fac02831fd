// Reads what the log of one run of a record states, of this program's and of the challenge's scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/record/submission.h"

namespace mulligan::record {

// A score that a log ends with ("quantized_ttt_phased val_loss:2.76 val_bpb:1.069 eval_time:478452ms").
struct LogScore {
  std::string name;
  double val_bpb = 0;
  std::optional<double> val_loss, eval_seconds;
};

// What a log says. Of a statement made more than once the last counts: a run that was continued repeats some.
struct LogClaims {
  std::optional<std::int64_t> seed, steps;
  std::optional<double> train_seconds, total_eval_seconds;
  std::optional<std::uint64_t> model_bytes, total_bytes;
  std::optional<std::uint64_t> code_bytes;  // as counted: compressed where the log gives both
  bool code_compressed = false;
  std::optional<std::uint64_t> code_uncompressed_bytes;  // where the log gives both
  std::optional<Budgets> budgets;  // of this program's logs alone, as all up to the scores
  std::optional<RecordDigests> digests;
  std::optional<RecordData> data;
  std::string overlap;                              // what training said of it, in its words
  std::optional<double> before_bpb, quantised_bpb;  // the table at the end, five decimals
  std::optional<double> printed_bpb;                // the line of test-time training, five decimals
  std::optional<std::uint64_t> tokens, bytes;
  std::string artifact_sha256;
  std::vector<LogScore> scores;        // of quantised models, in order
  std::vector<LogScore> other_scores;  // under names of their own, such as "slot_exact"
  std::string
      contradiction;  // what of this program's own statements stands there in two ways; empty: nothing
};

// The parts of a log that several runs share, each from the line on that says its seed; the first also has what
// stands before. One part where the log says one seed or none.
std::vector<std::string> runs_of_log(std::string_view bytes);

// Lines may have a rank or a time before their statement; text of two bytes a character (UTF-16) is read as well.
LogClaims read_seed_log(std::string_view bytes);

// The last lines of a log: the result in the words of the challenge's scripts, to the last digit. What they
// say is what read_seed_log() finds.
std::string summary_lines(const SeedResult& result, const Budgets& budgets, const RecordDigests& digests,
                          const RecordData& data = {});

}  // namespace mulligan::record
