#include "tools/doctor/training_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"

namespace mulligan::doctor {

Finding check_targets(const std::vector<Batch>& rows, double repeat_share) {
  std::size_t positions = 0, wrong = 0, copies = 0, all = 0;
  std::size_t wrong_row = 0, wrong_at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Batch& row = rows[r];
    const std::size_t piece =
        row.piece_tokens > 0 ? static_cast<std::size_t>(row.piece_tokens) : row.tokens.size();
    for (std::size_t t = 0; t < row.tokens.size(); ++t) {
      ++all;
      copies += row.targets[t] == row.tokens[t];
      if ((t + 1) % piece == 0) continue;  // its target is not in the row
      ++positions;
      if (row.targets[t] == row.tokens[t + 1]) continue;
      if (wrong++ > 0) continue;
      wrong_row = r;
      wrong_at = t;
    }
  }
  const double share = all == 0 ? 0 : static_cast<double>(copies) / static_cast<double>(all);
  // Short rows scatter.
  const double most = std::min(0.5, 3 * repeat_share + 0.05);
  Finding f = begin_finding(
      "D19", "targets of the training rows",
      fmt::format("any other than the next token fails; fails above {:.1f} % copies", 100 * most));
  f.measured = fmt::format(
      "{} of {} targets are not the next token; {:.2f} % equal their input, {:.2f} % of the corpus repeat",
      wrong, positions, 100 * share, 100 * repeat_share);
  const bool copied = share > most;
  if (wrong == 0 && !copied) return f;
  return failed(std::move(f),
                copied ? fmt::format("targets equal inputs: {:.1f} % of them", 100 * share)
                       : fmt::format("the target at position {} of row {} is {}, but the next token is {}",
                                     wrong_at, wrong_row, rows[wrong_row].targets[wrong_at],
                                     rows[wrong_row].tokens[wrong_at + 1]),
                "targets must be the inputs one position on; a loss on anything else says nothing");
}

Finding check_masked_targets(const std::vector<Batch>& rows, const MaskingOptions& masking) {
  std::int64_t targets = 0, wanted = 0, masked = 0, visible = 0, elsewhere = 0;
  for (const Batch& row : rows) {
    std::int64_t starts = 0;  // of documents, which are never chosen
    for (std::size_t t = 0; t < row.tokens.size(); ++t) {
      const bool target = row.targets[t] >= 0;
      targets += target;
      masked += target && row.tokens[t] == masking.token;
      visible += target && row.tokens[t] == row.targets[t];
      elsewhere += !target && row.tokens[t] == masking.token;
      starts += (target ? row.targets[t] : row.tokens[t]) == masking.bos_id;
    }
    const auto tokens = static_cast<std::int64_t>(row.tokens.size());
    wanted += std::min(chosen_tokens(masking.share, tokens), tokens - starts);
  }
  const auto share_of_targets = [&](std::int64_t count) {
    return targets == 0 ? 0 : static_cast<double>(count) / static_cast<double>(targets);
  };
  const double shown = 1 - masking.mask_share - masking.random_share,
               most = shown + 0.05 + 3 / std::sqrt(static_cast<double>(std::max<std::int64_t>(targets, 1)));
  Finding f = begin_finding("D19", "targets of the training rows",
                            fmt::format("another number fails; fails above {:.1f} % visible", 100 * most));
  f.measured =
      fmt::format("{} targets, {} wanted; {:.1f} % of them are the mask token, {:.1f} % stay visible",
                  targets, wanted, 100 * share_of_targets(masked), 100 * share_of_targets(visible));
  if (targets == wanted && elsewhere == 0 && share_of_targets(visible) <= most) return f;
  return failed(std::move(f),
                targets != wanted ? fmt::format("{} tokens of the rows are targets, not {}", targets, wanted)
                : elsewhere > 0   ? fmt::format("{} tokens are hidden and are not targets", elsewhere)
                                  : fmt::format("{} of {} targets can be read off the row", visible, targets),
                "a model that sees what it shall fill in learns to copy; look at the loader");
}

namespace {

// Of a loader after its last row.
Finding check_end_of_stream(Loader& loader, Finding f) {
  f.threshold = "fails where there is a row after the last";
  f.measured = fmt::format("{} rows, read once", loader.spans_per_epoch());
  Batch row;
  try {
    loader.next(row);
  } catch (const Error&) {
    return f;
  }
  return failed(std::move(f), "a stream, which is read once, goes on after the end of the data",
                "what is not text of the shards must not be learned from; look at the loader");
}

}  // namespace

Finding check_end_of_data(const LoaderOptions& shown, std::int64_t planned_spans) {
  Finding f = begin_finding("D31", "end of the training data",
                            "fails where the row after the last is not the first again");
  LoaderOptions options = shown;
  options.masking.reset();  // of the text itself: what is hidden of a row differs each time it is read
  Loader loader(options);
  const std::int64_t spans = loader.spans_per_epoch();
  const std::int64_t group =
      std::max<std::int64_t>(loader.options().group_spans, loader.options().world_size);
  Batch first, row;
  loader.next(first);
  loader.restore(
      loader.position_after((spans - 1) / group * group));  // a shuffled pass may end within a group
  for (std::int64_t i = 0; i < group / loader.options().world_size; ++i) loader.next(row);
  if (options.order == DataOrder::stream) return check_end_of_stream(loader, std::move(f));
  const bool shuffled = options.order == DataOrder::shuffled;  // each pass begins with a row of its own
  if (shuffled) f.threshold = "fails where the row after the last is not counted";
  loader.next(row);
  f.measured = fmt::format("{} rows in one pass{}", spans,
                           planned_spans > 0
                               ? fmt::format(", {:.2f} passes planned",
                                             static_cast<double>(planned_spans) / static_cast<double>(spans))
                               : "");
  const bool same = shuffled || (row.tokens == first.tokens && row.targets == first.targets);
  const bool counted = loader.position().consumed_spans >= spans;
  if (same && counted) return f;
  return failed(std::move(f),
                same ? "the row after the end of the data is not counted as read"
                     : "the row after the end of the data is not the first row again",
                "what is not text of the shards must not be learned from; look at the loader");
}

}  // namespace mulligan::doctor
