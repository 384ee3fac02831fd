#include "framework/eval/generate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "framework/core/error.h"
#include "framework/core/utf8_stream.h"

namespace mulligan {
namespace {

// The bytes that the tokens of a document add to it, one behind the other.
class TextBytes {
 public:
  TextBytes(const Tokenizer& tokenizer, const std::vector<int>& document) : tokenizer_(tokenizer) {
    for (const int id : document) ids_.push_back(static_cast<std::uint16_t>(id));
    told_ = tokenizer_.document_text(ids_).size();
  }
  std::string add(int id) {
    ids_.push_back(static_cast<std::uint16_t>(id));
    const std::string text = tokenizer_.document_text(ids_);
    std::string added = text.substr(std::min(told_, text.size()));
    told_ = text.size();
    return added;
  }

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::uint16_t> ids_;
  std::size_t told_ = 0;
};

}  // namespace

GenerateResult generate(NextToken& model, const Tokenizer& tokenizer, std::vector<int> text,
                        const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text) {
  GenerateResult result;
  TextBytes bytes(tokenizer, text);
  Utf8Stream characters;
  const auto tell = [&](const std::string& part) {
    if (on_text && !part.empty()) on_text(part);
  };
  for (std::int64_t draw = 0; draw < options.max_tokens; ++draw) {
    std::span<const float> logits = model.logits(text);
    logits = logits.first(std::min(logits.size(), static_cast<std::size_t>(tokenizer.vocab_size())));
    if (std::ranges::any_of(logits, [](float logit) { return !std::isfinite(logit); })) {
      throw run_error("the model's logits are not finite, so its weights are broken; nothing is generated.");
    }
    const int token = choose_token(logits, options.sampling, static_cast<std::uint64_t>(draw));
    if (token == options.bos_id) {
      result.ended = true;
      break;
    }
    result.loss_nats += token_loss_nats(logits, token);
    result.tokens.push_back(token);
    text.push_back(token);
    tell(characters.take(bytes.add(token)));
  }
  tell(characters.finish());
  return result;
}

}  // namespace mulligan
