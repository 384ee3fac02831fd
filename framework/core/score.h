// Score: what scoring the tokens of a text comes to.
#pragma once

#include <cstdint>
#include <string>

namespace mulligan {

struct Score {
  double val_loss_nats = 0;  // per token
  double val_bpb = 0;        // bits per byte; NaN without bytes
  std::uint64_t tokens = 0;  // scored
  std::uint64_t bytes = 0;   // of the scored tokens; 0 without a tokenizer and of masked tokens
  double seconds = 0;
  bool masked = false;         // the loss of filling in masked tokens, which is no loss of a text
  std::string byte_rule = {};  // that counts `bytes` ("original", "tokenizer"); "" without bytes
};

}  // namespace mulligan
