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

// fallback is legal, since it depends on documents that were scored before.
enum class OnCollapse { off, warn, fallback };
template <>
inline constexpr auto config_words<OnCollapse> = std::array{"off", "warn", "fallback"};

// The order in which a score transform receives the tokens. Proposals depend on earlier tokens of that order. With file,
// hints know documents that are scored later, so no single order makes all scores one product of conditionals.
enum class TransformOrder { queue, document, file };
template <>
inline constexpr auto config_words<TransformOrder> = std::array{"queue", "document", "file"};

// Which chunks are also scored with other tokens after a cut (framework/ttt/causality.h).
enum class TttCheck { sampled, full, off };
template <>
inline constexpr auto config_words<TttCheck> = std::array{"sampled", "full", "off"};

// [ttt]
struct TttConfig {
  int64_t batch_documents = 64;
  DocumentOrder order = DocumentOrder::longest_first;
  int64_t context_tokens = 2048;
  int64_t chunk_tokens = 48;
  std::vector<double> chunk_limits, chunk_sizes;
  double document_fraction = 1.0;
  int64_t document_seed = 1337;
  int64_t prefix_documents = 0;  // in order of scoring; 0: the base model is never trained
  int64_t phases = 1;
  int64_t lanes = 0;  // each worked through by one rank; 0: one for each rank
  OnCollapse on_collapse = OnCollapse::warn;
  double collapse_margin = 0.005;  // bits per byte
  bool base_keeps_dtypes = false;  // small steps of a bf16 embedding then round away, as in the record
  TttCheck check = TttCheck::sampled;
  std::string audit;
};

}  // namespace mulligan
