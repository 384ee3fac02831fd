// How much of a text is symbols, and how alike its lines are: what an ablation of symbols is held against.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/manifest.h"
#include "tools/prepare/corpus.h"

namespace mulligan {

// The line with each run of digits as 0 and each identifier (letters, digits and _, not beginning with a
// digit; bytes beyond ASCII are letters) as x: "let v2 = 3.14;" is "x x = 0.0;".
std::string line_template(std::string_view line);

// Of the documents' text, which is `tokens` tokens: symbols of every class (ablate.h) per 1,000 tokens, and
// the lines that are not blank with how many templates they have, of the first 2^24. Reads every document;
// works in parallel on `threads` threads (0: one per core), which change nothing.
SymbolRecord symbol_statistics(const std::vector<CorpusDocument>& documents, std::uint64_t tokens,
                               int threads);

}  // namespace mulligan
