// Documents that training and validation data share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mulligan {

struct SharedText {
  std::int64_t validation_documents = 0;  // compared
  std::int64_t training_documents = 0;    // compared with them
  std::int64_t shared = 0;                // validation documents that are also among these training documents
  bool whole = true;                      // all of both sides was compared
};

// Looks for the documents of the validation shards among those of the training shards, by 64-bit
// hashes of their tokens. Documents start at `bos_id`; those of fewer than 16 tokens are left out,
// since short texts repeat by chance. At most `budget_tokens` of each side are read, the same share of
// the front of every shard.
SharedText find_shared_text(const std::vector<std::filesystem::path>& train,
                            const std::vector<std::filesystem::path>& validation, int bos_id,
                            std::int64_t budget_tokens = std::int64_t{1} << 26);

// "warning: 3 of 120 validation documents are also ..."; "" where none is shared.
std::string shared_text_warning(const SharedText& shared);

}  // namespace mulligan
