#include "framework/config/retired_keys.h"

namespace mulligan {
namespace {

constexpr const char* table = "eval";
constexpr const char* retired = "batch_rows";
constexpr const char* present = "packed_sequences";

}  // namespace

void rename_retired_keys(ConfigNode& tree) {
  ConfigNode* eval = tree.find(table);
  if (eval == nullptr || !eval->is_table() || eval->find(present) != nullptr) return;
  const ConfigNode* old = eval->find(retired);
  if (old == nullptr) return;
  ConfigNode renamed = *old;
  eval->remove(retired);
  eval->put(present, std::move(renamed));
}

std::string retired_keys_note(const ConfigNode& tree) {
  const ConfigNode* eval = tree.find(table);
  if (eval == nullptr || !eval->is_table() || eval->find(present) != nullptr) return {};
  const ConfigNode* rows = eval->find(retired);
  if (rows == nullptr || rows->origin.kind != Origin::Kind::file) return {};
  return rows->origin.text() +
         ": eval.batch_rows changes no score; how many sequences are packed into a row, which older programs "
         "took from it, is eval.packed_sequences.";
}

}  // namespace mulligan
