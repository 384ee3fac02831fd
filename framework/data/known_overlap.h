// The overlap of two sets of shards, measured once.
#pragma once

#include "framework/data/text_overlap.h"

namespace mulligan {

// The overlap of all tokens of the shards. It is looked up in the manifest next to the shards and in the user's cache, by
// the digests of both sets and of the tokenizer, and measured (measure_text_overlap) where it is in neither. Checks all
// shards (check_shards).
TextOverlap find_text_overlap(const std::vector<std::filesystem::path>& training,
                              const std::vector<std::filesystem::path>& validation,
                              const Tokenizer* tokenizer, const OverlapRanks& ranks = {});

}  // namespace mulligan
