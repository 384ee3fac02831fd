// Reads what the log of one run of a record states: logs of this program and of the challenge's scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/record/submission.h"

namespace mulligan::record {

// A score that a log states ("quantized_ttt_phased val_loss:2.76 val_bpb:1.069 eval_time:478452ms").
struct LogScore {
  std::string name;
  double val_bpb = 0;
  std::optional<double> val_loss, eval_seconds;
};

// What a log states. If it repeats a statement, the last one counts: a continued run repeats some.
struct LogClaims {
  std::string file;  // of the folder
  std::optional<std::int64_t> seed;
  std::optional<std::uint64_t> steps;
  std::optional<double> train_seconds, total_eval_seconds;
  std::optional<std::uint64_t> model_bytes, total_bytes;
  std::optional<std::uint64_t> code_bytes;  // compressed, if the log gives both sizes
  bool code_compressed = false;
  std::optional<std::uint64_t> code_uncompressed_bytes;  // if the log gives both
  Digests digests;                                       // in logs of this program
  std::vector<LogScore> scores;                          // of quantised models, in order
  std::vector<LogScore> other_scores;                    // under names of their own, such as "slot_exact"
};

// One for each run: with `by_seed` a line that states another seed begins the next run. A line may have a rank or a time before
// its statement.
std::vector<LogClaims> read_seed_log(std::string_view text, bool by_seed = false);

// The last lines of a log of this program: the result in the words of the challenge's scripts, with all digits.
// read_seed_log() finds in them what they state.
std::string summary_lines(const SeedResult& result);

}  // namespace mulligan::record
