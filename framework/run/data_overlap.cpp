#include "framework/run/data_overlap.h"

#include <fmt/format.h>

#include <limits>

#include "framework/core/error.h"
#include "framework/data/tokenizer_fit.h"
#include "framework/report/run_log.h"

namespace mulligan {

TextOverlap overlap_with_validation(const RunConfig& config, const std::vector<std::filesystem::path>& shards,
                                    const ValidationSet& validation, RunLog& log) {
  // A sample of fixed places says where else the text could stand, so strict rules read all of it.
  OverlapBudget budget;
  if (config.ledger.rules == LedgerRules::strict) budget.training = std::numeric_limits<std::uint64_t>::max();
  const TextOverlap overlap = measure_text_overlap(
      shards, validation.files, validation.tokenizer ? &*validation.tokenizer : nullptr, budget);
  log.print("overlap: {}", overlap.text());
  std::string excess = overlap.excess();
  const double unlearned =
      !validation.tokenizer ? 0
                            : share_of_pieces_not_learned(*validation.tokenizer, shards, validation.tokens);
  if (unlearned > 0.01 && excess.empty()) {
    excess = fmt::format(
        "{:.1f} % of the validation text's bytes are in pieces of the tokenizer that the training text has hardly any of, as if the tokenizer had been made of it (train one on the training text)",
        100 * unlearned);
  }
  if (config.ledger.rules == LedgerRules::strict && overlap.known() && overlap.passages == 0) {
    log.print(
        "warning: {}, so whether it is learned is not known, and under ledger.rules = \"strict\" the result "
        "will be refused as a record; take other data",
        overlap.text());
  }
  if (excess.empty()) return overlap;
  if (config.ledger.rules == LedgerRules::strict) {
    throw data_error(
        "{}, so under ledger.rules = \"strict\" there would be no result; prepare the data anew with "
        "mulligan prepare --drop-overlap, or name other training data in data.train",
        excess);
  }
  log.print(
      "warning: {}, so the score is partly of text that was learned from; mulligan prepare --drop-overlap "
      "leaves such documents out",
      excess);
  return overlap;
}

}  // namespace mulligan
