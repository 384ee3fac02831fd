// Continues a text, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "framework/data/tokenizer.h"
#include "framework/eval/next_token.h"
#include "framework/eval/sampling.h"

namespace mulligan {

struct GenerateOptions {
  Sampling sampling;
  std::int64_t max_tokens = 200;
  int bos_id = 1;  // ends the text: the model says that another document begins
};

struct GenerateResult {
  std::vector<int> tokens;  // generated, without the BOS that ended them
  bool ended = false;       // by BOS
  double loss_nats = 0;     // -log probability of `tokens` by the model, before temperature and top-k
};

// Continues `text`, one document from its BOS on. `on_text` gets what the new tokens stand for, as whole
// UTF-8 characters (what is none becomes U+FFFD), as soon as they are there; it may be empty. Ids beyond the
// tokenizer's are never chosen. Throws run_error for logits that are not finite.
GenerateResult generate(NextToken& model, const Tokenizer& tokenizer, std::vector<int> text,
                        const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text = {});

}  // namespace mulligan
