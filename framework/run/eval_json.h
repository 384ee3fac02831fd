// A score as JSON, with units in the names; numbers that are not finite become null.
#pragma once

#include <nlohmann/json.hpp>

#include "framework/eval/evaluate.h"

namespace mulligan {

inline nlohmann::ordered_json eval_json(const EvalResult& result) {
  nlohmann::ordered_json json = {{"val_loss_nats", result.val_loss_nats},
                                 {"val_bpb", result.val_bpb},
                                 {"loss_sum_nats", result.loss_sum_nats},
                                 {"tokens", result.tokens},
                                 {"bytes", result.bytes},
                                 {"seconds", result.seconds}};
  if (!result.byte_rule.empty()) json["byte_rule"] = result.byte_rule;
  for (const auto& [rule, bytes] : result.bytes_by_rule)
    json["by_byte_rule"][rule] = {{"bytes", bytes}, {"bpb", bits_per_byte(result.loss_sum_nats, bytes)}};
  if (result.masked) json["masked"] = true;  // the loss of filling in masked tokens, not of next tokens
  return json;
}

}  // namespace mulligan
