// What mulligan_evaluate does: an artifact, a tokenizer and validation shards become a score.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "framework/artifact/artifact_file.h"
#include "framework/artifact/evaluation_settings.h"
#include "framework/data/byte_count.h"
#include "framework/plugin/transform.h"
#include "framework/ttt/score_book.h"

namespace mulligan {

// The shards' tokens, and what counts their bytes.
class ScoredText {
 public:
  // The tokenizer's pieces count bytes, or tables that lie next to the shards under their published names, where the
  // artifact was not counted by the pieces. Throws
  // data_error for bad files and another tokenizer than the artifact's.
  ScoredText(const Artifact& artifact, const EvaluationSettings& settings,
             const std::filesystem::path& tokenizer, const std::vector<std::filesystem::path>& shards);

  std::vector<std::uint16_t> tokens;
  std::unique_ptr<ByteCounter> bytes;
  int bos_id = 1;
};

// Null: there is none.
std::unique_ptr<Transform> score_transform(const EvaluationSettings& settings);

// Without test-time training.
ScoreSums score_plain(const Artifact& artifact, const EvaluationSettings& settings, const ScoredText& text);
// With it, by `ranks` processes that share its documents. Returns in the first of them; the others end here.
ScoreSums score_adapting(const Artifact& artifact, const EvaluationSettings& settings, ScoredText& text,
                         std::int64_t ranks);
// Starts the other ranks: copies of this process, each with its number as LOCAL_RANK. Call it before threads and devices exist.
// Whether this process is the first.
bool become_ranks(std::int64_t count);

}  // namespace mulligan
