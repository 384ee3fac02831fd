#include "framework/ttt/scored_validation.h"

#include "framework/core/error.h"
#include "framework/data/documents.h"
#include "framework/ttt/document_plan.h"

namespace mulligan {
namespace {

// The runs of tokens whose targets are scored: the whole stream from its first document on, or
// each chosen document.
std::vector<std::span<const std::uint16_t>> scored_runs(const ValidationSet& validation,
                                                        const TttConfig& config) {
  const std::span<const std::uint16_t> tokens = validation.tokens;
  const DocumentPlan plan = plan_documents(tokens, validation.bos_id, config);
  if (config.document_fraction == 1.0) {
    return {tokens.subspan(static_cast<std::size_t>(plan.documents[0].start))};
  }
  std::vector<std::span<const std::uint16_t>> runs;
  for (const PlannedBatch& batch : plan.queue) {
    for (const int number : batch.batch.documents) {
      const Document& document = plan.document(number);
      runs.push_back(tokens.subspan(static_cast<std::size_t>(document.start),
                                    static_cast<std::size_t>(document.length)));
    }
  }
  return runs;
}

}  // namespace

ValidationSet scored_validation(const RunConfig& config) {
  ValidationSet validation = load_validation(config.data, config.model.vocabulary);
  if (config.eval.drop_remainder) {
    validation.tokens.resize(static_cast<std::size_t>(
        whole_rows_length(static_cast<std::int64_t>(validation.tokens.size()), config.eval.sequence_length)));
  }
  if (validation.tokens.empty()) {
    throw data_error("the validation shards '{}' hold less than one row of eval.sequence_length = {} tokens.",
                     config.data.validation, config.eval.sequence_length);
  }
  return validation;
}

void require_equal_bytes(const ValidationSet& validation, const TttConfig& config) {
  if (!validation.byte_table) return;  // side tables were compared when they were read
  std::uint64_t table = 0, decoded = 0, tokens = 0;
  for (const std::span<const std::uint16_t> run : scored_runs(validation, config)) {
    table += validation.byte_table->count(run);
    decoded += count_bytes_by_decoding(*validation.tokenizer, run);
    tokens += run.size() - 1;
  }
  if (table == decoded) return;
  throw data_error(
      "the byte table counts {} bytes in the {} validation tokens to score, decoding them gives {}, so no "
      "bits per byte can be given; use a tokenizer whose pieces hold the space mark at their start only.",
      table, tokens, decoded);
}

}  // namespace mulligan
