// Scores that free text claims.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mulligan::record {

// What was measured, and what else may stand in a text.
struct KnownFigures {
  double best_bpb = 0, best_loss = 0;  // of the seeds; 0: not known
  std::vector<double> scores;          // scores and their differences, of others as well
  std::vector<double> all;             // every figure and every setting
};

// The numbers of `text` (Markdown) that read as a better score than the best and are no known figure, to the
// digits that they have: those next to a word for a score (val_bpb, bits per byte, val_loss, nats per token),
// in its line, its row or its column; in headings, of two decimals and more; anywhere, of four decimals and
// more. Left out are differences ("better by 0.01 bpb", +0.002) and what is not a twentieth of the best,
// unless it is named val_bpb or val_loss; and in the last two cases numbers with another unit. As they are
// written, each once; a heading is also `heading` text as a whole.
std::vector<std::string> better_scores(std::string_view text, const KnownFigures& known,
                                       bool heading = false);

// Every number in `text`, such as a configuration.
std::vector<double> numbers_of(std::string_view text);

}  // namespace mulligan::record
