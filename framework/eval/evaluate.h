// Bits per byte of a model on a validation set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/data_config.h"
#include "framework/config/eval_config.h"
#include "framework/config/model_config.h"
#include "framework/core/score.h"
#include "framework/data/byte_count.h"
#include "framework/data/data_identity.h"
#include "framework/data/segments.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

class HostGroup;
class Evaluator;
struct EvalPosition;
struct EvalSums;

// The tokens of the validation shards and the data to count their bytes.
struct ValidationSet {
  std::vector<std::filesystem::path> files;
  DataIdentity data;      // tokenizer, byte table and validation shards
  std::string note;       // a sentence about a padded vocabulary; "" otherwise
  std::string byte_note;  // and one about side tables
  std::vector<std::uint16_t> tokens;
  std::optional<Tokenizer> tokenizer;  // absent: no bytes, so no bits per byte
  // Count the bytes of its targets by each data.byte_rule (choose_byte_counter); null: not known. The tokenizer's are those of its
  // pieces (`counts_pieces`), or under a text transform those of the tables next to the shards.
  std::shared_ptr<const ByteCounter> tokenizer_counter, original_counter;
  bool counts_pieces = false;
  ByteRule asked_rule = ByteRule::original;
  // The rule of the scores: the configured one, unless the original's bytes are not known.
  ByteRule byte_rule() const {
    return asked_rule == ByteRule::original && original_counter ? ByteRule::original : ByteRule::tokenizer;
  }
  const ByteCounter* counter() const {
    return (byte_rule() == ByteRule::original ? original_counter : tokenizer_counter).get();
  }
  int bos_id = 1;
  bool joined = false;  // data.documents: attention crosses documents
  // Begins the segments of rows that are scored: the BOS token, or kNoDocuments.
  int segment_start() const { return joined ? kNoDocuments : bos_id; }
  // Bytes of scored ranges [first target, last target + 1) on which both routes agreed.
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> verified;
};

// Reads the shards and the tokenizer of `data`, with every byte checked (check_shards). Throws data_error in these cases:
// data.validation is not set; a token lies outside of `vocabulary`; a file is bad; the shards hold symbols of a text transform
// without side tables; side tables and original documents disagree. Throws config_error if the tokenizer has more pieces than
// `vocabulary`. `targets`: only the first so many of the stream are scored (eval.tokens; 0: all); data_error if it has fewer.
ValidationSet load_validation(const DataConfig& data, std::int64_t vocabulary, std::int64_t targets = 0);

struct EvalResult : Score {
  double loss_sum_nats = 0;  // fp64 sum over all scored tokens
  DataIdentity data{};       // what was scored
  std::map<std::string, std::uint64_t>
      bytes_by_rule{};  // of the same tokens by each known rule; empty without bytes
};

EvalResult eval_result(const ScoreSums& sums, double seconds);

// Adds the rule, and the bytes of the targets [first, last] by each rule, to a score.
void add_byte_rules(const ValidationSet& validation, std::int64_t first, std::int64_t last,
                    EvalResult& result);

// Describes how an evaluation cuts rows and hides tokens. It includes every setting that decides this, so equal words mean equal rows.
std::string packing_text(const EvalConfig& eval, const ModelConfig& model, bool joined);

// "val_bpb 1.23456 (val_loss 3.00000 nats over 1000 tokens, 3500 bytes)". Without bytes and for masked tokens: the loss alone, and the
// reason.
std::string score_text(const EvalResult& result);

// Throws data_error if decoding the scored tokens gives another number of bytes than `sums` counts by the byte table. Without a table
// there is nothing to compare.
void require_equal_bytes(ValidationSet& validation, const EvalSums& sums);

// Scores all ranks' shares and adds them up. Counts the bytes by the byte table and by decoding. If the two routes differ, throws
// data_error, so that no score is printed. Throws run_error for a loss that is not finite.
// `passed` watches it (Evaluator::PassListener), and it begins at `from`, if that is not null.
EvalResult evaluate(Evaluator& evaluator, ValidationSet& validation, HostGroup& group,
                    const std::function<void(const EvalPosition&, std::size_t rows)>& passed = {},
                    const EvalPosition* from = nullptr);

// Chooses between byte side tables and the tokenizer's pieces for `validation`, whose shards, tokens and tokenizer are read. Checks the
// choice (docs/evaluation.md, "Which bytes count"). ValidationSet::byte_note names open questions. Throws data_error if the count cannot
// be right.
void choose_byte_counter(ValidationSet& validation, const DataConfig& data, std::int64_t vocabulary);

// The reason why the bytes of such a set are not certain; "": they are.
std::string unproven_bytes(const ValidationSet& validation, const DataConfig& data);

}  // namespace mulligan
