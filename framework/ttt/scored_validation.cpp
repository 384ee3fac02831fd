#include "framework/ttt/scored_validation.h"

#include "framework/core/error.h"
#include "framework/data/documents.h"

namespace mulligan {

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

}  // namespace mulligan
