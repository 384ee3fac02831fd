// The keys of [ttt]: how the validation set is scored with test-time training. ttt_config.cpp explains them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/words.h"

namespace mulligan {

enum class DocumentOrder { longest_first, shortest_first };
template <>
inline constexpr auto config_words<DocumentOrder> = std::array{"longest_first", "shortest_first"};

// What happens when the running bits per byte exceed those of the same windows without adaptation by the margin. off:
// nothing, and the passes for that score do not run. fallback: the remaining documents are scored with adapters at zero
// and no updates (legal: it depends on documents that were scored before).
enum class OnCollapse { off, warn, fallback };
template <>
inline constexpr auto config_words<OnCollapse> = std::array{"off", "warn", "fallback"};

// The order in which a score transform receives the tokens. Proposals depend on earlier tokens of that order.
// queue: in the order in which they are scored (of a lane). document: it forgets between documents. file: in
// the order of the shards, all at once, as the published record does: hints then know documents that are
// scored later, so no single order makes all scores one product of conditionals.
enum class TransformOrder { queue, document, file };
template <>
inline constexpr auto config_words<TransformOrder> = std::array{"queue", "document", "file"};

// Which chunks are also scored with other tokens after a cut, so that a score that reads later tokens is seen
// (framework/ttt/causality.h). sampled: as many as take 1 % of the time. full: all, at every cut.
enum class TttCheck { sampled, full, off };
template <>
inline constexpr auto config_words<TttCheck> = std::array{"sampled", "full", "off"};

// [ttt]
struct TttConfig {
  int64_t batch_documents = 64;  // documents adapted together; the remainder holds the longest
  DocumentOrder order = DocumentOrder::longest_first;
  int64_t context_tokens = 2048;  // longest window; a chunk is scored in the window that ends with it
  int64_t chunk_tokens = 48;      // tokens that are scored, then trained on, at once
  std::vector<double> chunk_limits, chunk_sizes;
  double document_fraction = 1.0;
  int64_t document_seed = 1337;
  int64_t prefix_documents =
      0;  // documents (in order of scoring) after which the base model is no longer trained; 0: never
  int64_t phases = 1;  // base-model passes within the prefix, at equal distances
  int64_t lanes =
      0;  // chains of batches that inherit adapters, each worked through by one rank; 0: one for each rank
  OnCollapse on_collapse = OnCollapse::warn;
  double collapse_margin = 0.005;  // bits per byte
  // Whether [ttt.base] trains masters of the dtypes that training had ([[parameters]] master_dtype), in which
  // small steps of a bf16 embedding round away, as in the record; else all are f32.
  bool base_keeps_dtypes = false;
  TttCheck check = TttCheck::sampled;
  std::string audit;  // file of the audit log; empty: none
};

}  // namespace mulligan
