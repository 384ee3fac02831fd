#include "framework/config/retired_keys.h"

#include "framework/core/error.h"

namespace mulligan {
namespace {

constexpr const char* table = "eval";
constexpr const char* retired = "batch_rows";
constexpr const char* present = "packed_sequences";

}  // namespace

void rename_retired_keys(ConfigNode& tree, std::span<const std::string> overrides) {
  for (const std::string& text : overrides) {
    if (!text.starts_with("eval.batch_rows=")) continue;
    throw config_error(
        "--set {}: eval.batch_rows is gone, because it set how many sequences are packed into a row, and "
        "with "
        "that the score; leave it out (one packed row is one pass), or set eval.packed_sequences for another "
        "packing.",
        text);
  }
  ConfigNode* eval = tree.find(table);
  if (eval == nullptr || !eval->is_table()) return;
  const ConfigNode* old = eval->find(retired);
  if (old == nullptr) return;
  if (const ConfigNode* now = eval->find(present)) {
    throw config_error(
        "{}: eval.batch_rows is the old name of eval.packed_sequences, which {} sets as well; remove the old "
        "one.",
        old->origin.text(), now->origin.text());
  }
  ConfigNode renamed = *old;
  eval->remove(retired);
  eval->put(present, std::move(renamed));
}

}  // namespace mulligan
