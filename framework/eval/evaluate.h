// Bits per byte of a model on a validation set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/data_config.h"
#include "framework/config/eval_config.h"
#include "framework/config/model_config.h"
#include "framework/data/byte_count.h"
#include "framework/data/data_identity.h"
#include "framework/data/segments.h"
#include "framework/data/side_table.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

class HostGroup;
class Evaluator;
struct EvalPosition;
struct EvalSums;

// The tokens of the validation shards and what is needed to count their bytes.
struct ValidationSet {
  std::vector<std::filesystem::path> files;
  DataIdentity data;      // tokenizer, byte table and validation shards
  std::string note;       // a sentence about a padded vocabulary; "" otherwise
  std::string byte_note;  // and one about side tables
  std::vector<std::uint16_t> tokens;
  std::optional<Tokenizer> tokenizer;  // absent: no bytes, so no bits per byte
  // What counts the bytes of its targets (choose_byte_counter). By data.byte_rule = "tokenizer": the pieces of the
  // tokenizer, or under a text transform the tables next to the shards.
  std::optional<ByteTable> byte_table;
  std::optional<SideTable> side_table;
  const ByteCounter* tokenizer_counter() const {
    if (byte_table) return &*byte_table;
    return side_table ? &*side_table : nullptr;
  }
  // By data.byte_rule = "original": a table of its own, or the same counter where `same_bytes`; null: not known.
  std::optional<SideTable> original_table;
  bool same_bytes = false;
  const ByteCounter* original_counter() const {
    if (original_table) return &*original_table;
    return same_bytes ? tokenizer_counter() : nullptr;
  }
  ByteRule asked_rule = ByteRule::original;
  // The rule that scores follow: the one that was asked for, unless the original's bytes are not known.
  ByteRule byte_rule() const {
    return asked_rule == ByteRule::original && original_counter() ? ByteRule::original : ByteRule::tokenizer;
  }
  const ByteCounter* counter() const {
    return byte_rule() == ByteRule::original ? original_counter() : tokenizer_counter();
  }
  int bos_id = 1;
  bool joined = false;  // data.documents: attention crosses documents
  // What begins the segments of rows that are scored: the BOS token, or kNoDocuments.
  int segment_start() const { return joined ? kNoDocuments : bos_id; }
  // Bytes of scored ranges [first target, last target + 1) that both routes agreed on.
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> verified;
};

// Reads the shards and the tokenizer that `data` names, every byte checked (check_shards). Throws data_error
// when a token lies outside of `vocabulary` or a file is bad, where the shards hold symbols of a text
// transform and no side tables, where side tables and original documents disagree, and config_error when the
// tokenizer has more pieces than `vocabulary`.
// `targets`: those that are scored, the first of the stream (eval.tokens; 0: all); data_error where it has fewer.
ValidationSet load_validation(const DataConfig& data, std::int64_t vocabulary, std::int64_t targets = 0);

struct EvalResult {
  double loss_sum_nats = 0;  // fp64 sum over all scored tokens
  std::uint64_t tokens = 0;  // scored tokens
  std::uint64_t bytes = 0;   // of the scored tokens; 0 without a tokenizer and of masked tokens
  double val_loss_nats = 0;  // loss_sum_nats / tokens
  double val_bpb = 0;        // loss_sum_nats / ln 2 / bytes; NaN without bytes
  double seconds = 0;
  DataIdentity data{};  // what was scored
  bool masked = false;  // the loss of filling in masked tokens, which is that of no text
  // Which rule counts `bytes`, and the bytes of the same tokens by each rule that is known ("original", "tokenizer").
  // Empty without bytes.
  std::string byte_rule{};
  std::map<std::string, std::uint64_t> bytes_by_rule{};
};

const char* byte_rule_name(ByteRule rule);
// Of the same tokens, divided by other bytes; NaN for none.
double bits_per_byte(const EvalResult& result, std::uint64_t bytes);

// Adds the rule, and the bytes of the targets [first, last] by each rule, to a score.
void add_byte_rules(const ValidationSet& validation, std::int64_t first, std::int64_t last,
                    EvalResult& result);

// How the rows are cut that an evaluation scores, and what is hidden of them, in words: all that decides it,
// so that equal words mean equal rows.
std::string packing_text(const EvalConfig& eval, const ModelConfig& model, bool joined);

// "val_bpb 1.23456 (val_loss 3.00000 nats over 1000 tokens, 3500 bytes)"; without bytes, and of masked tokens,
// the loss alone, and why.
std::string score_text(const EvalResult& result);

// How a scoring is watched and continued (Evaluator::score). Without it: from the beginning, unwatched.
struct EvaluateHooks {
  std::function<void(const EvalPosition&, std::size_t rows)> passed;
  const EvalPosition* from = nullptr;
};

// Throws data_error where decoding the scored tokens gives another number of bytes than `sums` counts by the
// byte table. Nothing to compare without one.
void require_equal_bytes(ValidationSet& validation, const EvalSums& sums);

// Scores all ranks' shares and adds them up. Counts the bytes by the byte table and by decoding; throws
// data_error when the two routes differ, so that no score is printed then, and run_error for a loss that
// is not finite.
EvalResult evaluate(Evaluator& evaluator, ValidationSet& validation, HostGroup& group,
                    const EvaluateHooks& hooks = {});

}  // namespace mulligan
