#include "framework/ttt/ttt_text.h"

#include <fmt/format.h>

namespace mulligan {
namespace {

// Bits per byte, or nats per token where bytes are not counted.
double score(const ScoreSums& sums) {
  return sums.bytes > 0 ? sums.bpb() : sums.mean_loss_nats();
}
const char* score_name(const ScoreSums& sums) {
  return sums.bytes > 0 ? "val_bpb" : "val_loss";
}

}  // namespace

std::string batch_text(const TttBatchReport& batch, std::size_t batches) {
  std::string text = fmt::format("batch {} of {} ({} documents of up to {} tokens): running {} {:.5f}",
                                 batch.queue + 1, batches, batch.documents, batch.longest_tokens,
                                 score_name(batch.running), score(batch.running));
  if (batch.reference.tokens > 0) text += fmt::format(", without {:.5f}", score(batch.reference));
  for (const AdapterNorm& norm : batch.norms) {
    text += fmt::format(", |{}| {:.4g} drift {:.4g}", norm.name, norm.norm, norm.drift);
  }
  return batch.adapted ? text : text + ", adapters off";
}

std::string phase_text(const TttPhaseReport& phase) {
  std::string text = fmt::format("phase {}: base model trained on {} documents ({} tokens), {} steps",
                                 phase.phase, phase.documents, phase.tokens, phase.steps.size());
  if (!phase.steps.empty()) {
    text +=
        fmt::format(", loss {:.5f} -> {:.5f}", phase.steps.front().loss_nats, phase.steps.back().loss_nats);
  }
  return text + fmt::format(", {:.1f} s", phase.seconds);
}

std::string bins_text(const TttReport& report) {
  std::string text = fmt::format("{:>17} {:>10} {:>10} {:>12}", "document tokens", "documents", "tokens",
                                 score_name(report.sums));
  if (report.reference.tokens > 0) text += fmt::format(" {:>10} {:>10}", "without", "gain");
  for (const TttLengthBin& bin : report.bins) {
    text +=
        fmt::format("\n{:>17} {:>10} {:>10} {:>12.5f}", fmt::format("{} to {}", bin.shortest, bin.longest),
                    bin.documents, bin.sums.tokens, score(bin.sums));
    if (bin.reference.tokens > 0) {
      text +=
          fmt::format(" {:>10.5f} {:>10.5f}", score(bin.reference), score(bin.reference) - score(bin.sums));
    }
  }
  return text;
}

}  // namespace mulligan
