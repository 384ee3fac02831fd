// What counts the bytes of a validation set, and how far that is proven.
#pragma once

#include <string>

#include "framework/config/data_config.h"

namespace mulligan {

struct ValidationSet;

// Chooses between byte side tables and the tokenizer's pieces for `validation`, whose shards, tokens and
// tokenizer are read, and checks the choice (docs/evaluation.md, "Which bytes count"). What remains open is
// said in ValidationSet::byte_note. Throws data_error where the count cannot be right.
void choose_byte_counter(ValidationSet& validation, const DataConfig& data, std::int64_t vocabulary);

// Why the bytes of a set that was so chosen for are not certain, in words; "": they are.
std::string unproven_bytes(const ValidationSet& validation, const DataConfig& data);

}  // namespace mulligan
