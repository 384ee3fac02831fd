// D24: whether a tokenizer keeps text.
#pragma once

#include "framework/data/tokenizer.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// Text of five classes (ASCII, Latin-1, Chinese, emoji, mathematics) there and back, and whether the
// vocabulary is of the kind that the tokenizer takes it for: byte pieces are all there, and no pieces
// are spelled in GPT-2's letters for bytes.
Finding check_tokenizer(const Tokenizer& tokenizer);

}  // namespace mulligan::doctor
