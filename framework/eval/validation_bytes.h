// The counter of a validation set's bytes, and how far its count is proven.
#pragma once

#include <string>

#include "framework/config/data_config.h"

namespace mulligan {

struct ValidationSet;

// Chooses between byte side tables and the tokenizer's pieces for `validation`, whose shards, tokens and tokenizer are read. Checks the
// choice (docs/evaluation.md, "Which bytes count"). ValidationSet::byte_note names open questions. Throws data_error if the count cannot
// be right.
void choose_byte_counter(ValidationSet& validation, const DataConfig& data, std::int64_t vocabulary);

// The reason why the bytes of such a set are not certain; "": they are.
std::string unproven_bytes(const ValidationSet& validation, const DataConfig& data);

}  // namespace mulligan
