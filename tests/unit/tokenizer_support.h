// Tokenizers for the tests: trained here, and the same with other pieces.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/exact_encoding.h"
#include "tools/prepare/tokenizer_training.h"

namespace mulligan {

inline std::string model_trained_on(std::vector<std::string> texts, int vocab_size,
                                    const std::string& normalization = kIdentity) {
  std::size_t next = 0;
  return train_tokenizer(
      [&]() -> std::optional<std::string> {
        return next < texts.size() ? std::optional(texts[next++]) : std::nullopt;
      },
      vocab_size, normalization);
}

// A field of a message whose value is a string.
inline std::string field_bytes(std::uint64_t number, std::string_view value) {
  std::string out;
  const auto integer = [&](std::uint64_t n) {
    for (; n > 127; n >>= 7) out += static_cast<char>((n & 127U) | 128U);
    out += static_cast<char>(n);
  };
  integer(number << 3 | 2);
  integer(value.size());
  return out += value;
}

// The model with the texts of its pieces replaced by those that `rename` gives for their ids; scores and kinds
// stay with the ids.
inline std::string with_pieces(std::string_view model,
                               const std::function<std::string(int id, const std::string& piece)>& rename) {
  std::string renamed;
  int id = 0;
  for (MessageFields field(model); field.next();) {
    if (field.number != 1) {
      renamed += field_bytes(field.number, field.bytes);
      continue;
    }
    MessageFields piece(field.bytes);
    piece.next();  // the text, which SentencePiece writes first
    const std::string text(piece.bytes);
    const std::string_view rest = field.bytes.substr(field_bytes(1, text).size());
    renamed += field_bytes(1, field_bytes(1, rename(id++, text)) + std::string(rest));
  }
  return renamed;
}

}  // namespace mulligan
