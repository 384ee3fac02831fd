#include "framework/eval/evaluate.h"

#include <cmath>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/data/shard_checks.h"
#include "framework/eval/evaluator.h"
#include "framework/ranks/host_group.h"

namespace mulligan {
namespace {

// The bytes of the scored targets by the second route, counted once per range.
std::uint64_t bytes_by_decoding(ValidationSet& validation, const EvalSums& sums) {
  const auto range = std::pair(sums.first_target, sums.last_target + 1);
  const auto known = validation.verified.find(range);
  if (known != validation.verified.end()) return known->second;
  const auto scored = std::span<const std::uint16_t>(validation.tokens)
                          .subspan(static_cast<std::size_t>(sums.first_target - 1),
                                   static_cast<std::size_t>(sums.last_target - sums.first_target + 2));
  return validation.verified[range] = count_bytes_by_decoding(*validation.tokenizer, scored);
}

// This rank's part. A signal to one rank ends the evaluation of all.
EvalSums score_share(Evaluator& evaluator, const ValidationSet& validation, HostGroup& group,
                     const Evaluator::PassListener& passed, const EvalPosition* from) {
  std::optional<Error> interrupted;
  EvalSums sums;
  try {
    sums = evaluator.score(validation.tokens, evaluator.masks() ? nullptr : validation.counter(),
                           group.world_size(), group.rank(), {}, passed, from ? *from : EvalPosition{});
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
    interrupted = error;
  }
  if (!group.any(interrupted.has_value())) return sums;
  throw interrupted.value_or(Error(ExitCode::interrupted, "another rank was stopped by a signal."));
}

}  // namespace

EvalResult eval_result(const ScoreSums& sums, double seconds) {
  return {{sums.mean_loss_nats(), sums.bpb(), sums.tokens, sums.bytes, seconds}, sums.loss_nats};
}

void add_byte_rules(const ValidationSet& validation, std::int64_t first, std::int64_t last,
                    EvalResult& result) {
  if (!validation.counter()) return;
  result.byte_rule = word_of(validation.byte_rule());
  const auto add = [&](ByteRule rule, const ByteCounter* counter) {
    if (!counter) return;
    std::uint64_t& bytes = result.bytes_by_rule[word_of(rule)];
    for (std::int64_t at = std::max<std::int64_t>(first, 1); at <= last; ++at)
      bytes += static_cast<std::uint64_t>(counter->bytes_at(validation.tokens, static_cast<std::size_t>(at)));
  };
  add(ByteRule::original, validation.original_counter.get());
  add(ByteRule::tokenizer, validation.tokenizer_counter.get());
}

void require_equal_bytes(ValidationSet& validation, const EvalSums& sums) {
  // Side tables were compared with the original documents when they were read.
  if (!validation.counts_pieces || validation.counter() != validation.tokenizer_counter.get() ||
      sums.tokens == 0)
    return;
  const std::uint64_t decoded = bytes_by_decoding(validation, sums);
  if (decoded == sums.bytes) return;
  throw data_error(
      "the byte table counts {} bytes in the {} scored validation tokens, decoding them gives {}, so no bits "
      "per byte can be given; use a tokenizer whose pieces hold the space mark at their start only.",
      sums.bytes, sums.tokens, decoded);
}

ValidationSet load_validation(const DataConfig& data, std::int64_t vocabulary, std::int64_t targets) {
  data_error_if(
      data.validation.empty(),
      "data.validation is not set; name the validation shards, for example data/fineweb_val_*.bin.");
  ValidationSet validation;
  validation.joined = data.documents == DataDocuments::joined;
  ShardUse use{DataSplit::validation, vocabulary, data.tokenizer, {}, 0};
  if (!data.tokenizer.empty()) {
    validation.tokenizer = Tokenizer::load(data.tokenizer);
    use.tokenizer_sha256 = validation.tokenizer->sha256();
    use.pieces = validation.tokenizer->vocab_size();
    validation.note = check_vocabulary(vocabulary, use.pieces, data.tokenizer);
    validation.bos_id = validation.tokenizer->bos_id();
  }
  validation.files = find_shards({data.validation}, DataSplit::validation);
  CheckedShards checked = check_shards(validation.files, use);
  validation.data.validation = std::move(checked.identity);
  validation.data.tokenizer_sha256 = data.tokenizer.empty() ? checked.tokenizer_sha256 : use.tokenizer_sha256;
  validation.tokens = read_tokens(validation.files);
  data_error_if(validation.tokens.size() < 2,
                "the validation shards '{}' hold {} tokens, but scoring needs at least 2.", data.validation,
                validation.tokens.size());
  if (validation.tokenizer) {
    choose_byte_counter(validation, data, vocabulary);
    validation.data.byte_table_sha256 = validation.counter()->sha256();
  }
  data_error_if(
      validation.tokenizer && validation.counter()->count(validation.tokens) == 0,
      "by the {} of '{}' the tokens of the validation shards '{}' stand for no text: all of them are "
      "unknown or control pieces; prepare the data with a tokenizer that has byte fallback.",
      validation.counts_pieces ? "pieces" : "side tables next to the pieces", data.tokenizer,
      data.validation);
  if (targets == 0) return validation;
  const auto needed = static_cast<std::size_t>(targets) + 1;
  data_error_if(
      validation.tokens.size() < needed,
      "eval.tokens is {}, but the validation shards '{}' hold {} tokens, that is {} targets; lower it, or leave it "
      "out to score all.",
      targets, data.validation, validation.tokens.size(), validation.tokens.size() - 1);
  validation.tokens.resize(needed);
  return validation;
}

std::string packing_text(const EvalConfig& eval, const ModelConfig& model, bool joined) {
  const std::string text =
      fmt::format("{}{}", joined ? ", documents joined" : "",
                  eval.tokens > 0 ? fmt::format(", the first {} targets", eval.tokens) : "");
  if (eval.mode == EvalMode::sliding) {
    return fmt::format("windows of {} tokens every {}{}", eval.sequence_length, eval.stride, text);
  }
  const std::string hidden = masking_text(model);
  return fmt::format("rows of {} x {} tokens{}{}{}{}{}", eval.packed_sequences, eval.sequence_length,
                     eval.drop_remainder ? ", the remainder left out" : "",
                     eval.shares > 0 ? fmt::format(", in {} shares", eval.shares) : "", text,
                     hidden.empty() ? "" : ", ", hidden);
}

std::string score_text(const EvalResult& result) {
  if (result.masked) {
    return fmt::format("val_loss {:.5f} nats over {} masked tokens, which is not in bits per byte",
                       result.val_loss_nats, result.tokens);
  }
  const std::string loss =
      fmt::format("val_loss {:.5f} nats over {} tokens", result.val_loss_nats, result.tokens);
  if (result.bytes == 0) return loss + ", no bits per byte without a tokenizer";
  std::string text = fmt::format("val_bpb {:.5f} ({}, {} bytes)", result.val_bpb, loss, result.bytes);
  const bool original = result.byte_rule == word_of(ByteRule::original);
  for (const auto& [rule, bytes] : result.bytes_by_rule) {
    if (rule == result.byte_rule || bytes == result.bytes) continue;
    text += fmt::format(" by the {} text; {:.5f} by the {} bytes of the {} text",
                        original ? "original" : "tokenizer's", bits_per_byte(result.loss_sum_nats, bytes),
                        bytes, original ? "tokenizer's" : "original");
  }
  if (!original && !result.byte_rule.empty() && result.bytes_by_rule.size() == 1)
    text += " by data.byte_rule = \"tokenizer\"; the original's are not known";
  return text;
}

EvalResult evaluate(Evaluator& evaluator, ValidationSet& validation, HostGroup& group,
                    const Evaluator::PassListener& passed, const EvalPosition* from) {
  const auto start = std::chrono::steady_clock::now();
  const EvalSums sums = score_share(evaluator, validation, group, passed, from);
  if (!evaluator.masks()) require_equal_bytes(validation, sums);

  double totals[] = {sums.loss_nats, static_cast<double>(sums.tokens), static_cast<double>(sums.bytes)};
  group.sum(totals);
  // In the order in which one rank would add them.
  if (group.world_size() > 1) totals[0] = group.sum_in_order(sums.parts_nats);
  EvalResult result =
      eval_result({totals[0], static_cast<std::uint64_t>(totals[1]), static_cast<std::uint64_t>(totals[2])},
                  seconds_since(start));
  data_error_if(
      result.tokens == 0,
      "no validation token was scored: the shards hold {} tokens, fewer than one evaluation batch; set "
      "eval.drop_remainder = false.",
      validation.tokens.size());
  if (!std::isfinite(result.loss_sum_nats)) {
    throw run_error("the validation loss is {}, so the model's weights are broken; no score is given.",
                    result.loss_sum_nats);
  }
  result.data = validation.data;
  result.data.packing = packing_text(evaluator.options().eval, evaluator.model(), validation.joined);
  result.masked = evaluator.masks();
  if (result.masked) return result;
  add_byte_rules(validation, sums.first_target, sums.last_target, result);
  for (auto& [rule, bytes] : result.bytes_by_rule) {
    double all[] = {static_cast<double>(bytes)};
    group.sum(all);
    bytes = static_cast<std::uint64_t>(all[0]);
  }
  return result;
}

}  // namespace mulligan
