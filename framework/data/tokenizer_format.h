// What a file is that was given as a SentencePiece model and is none.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// "a Hugging Face tokenizer.json (...)", and after a semicolon what to do; "" for a format that is not known.
std::string foreign_tokenizer_format(std::string_view bytes);

}  // namespace mulligan
