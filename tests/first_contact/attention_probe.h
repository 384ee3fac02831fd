// Packed attention of a model's heads, forward and backward, for boundaries that leave rows of a library's batch empty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/plugin/backend.h"
#include "tests/first_contact/agreement.h"

namespace mulligan::first_contact {

struct AttentionRows {
  std::string what;                      // "192 documents of many lengths"
  std::vector<std::int32_t> boundaries;  // rising from 0 to the tokens
};

// Segments of one length; documents of many lengths; and documents so few that a library rounds their number up. None is
// longer than `longest`, the first document is a single token.
std::vector<AttentionRows> rows_to_probe(std::int64_t tokens, std::int64_t longest);

// bf16, random numbers; workspace and results are NaN before. Forward and backward of sampled tokens against fp64: the
// reports of attention_fwd and attention_bwd, in this order.
std::vector<CallReport> probe_attention(Backend& device, const ModelConfig& model, std::int64_t tokens,
                                        const AttentionRows& rows);

}  // namespace mulligan::first_contact
