#include "framework/run/training_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/data/documents.h"
#include "framework/data/shard_checks.h"
#include "framework/data/text_overlap.h"
#include "framework/eval/evaluator.h"
#include "framework/model/elements/stages.h"
#include "framework/ranks/host_group.h"
#include "framework/report/run_log.h"

namespace mulligan {
namespace {

void find_training_shards(const DataConfig& data, TrainingData& found) {
  for (const std::string& pattern : training_patterns(data)) {
    const std::vector<std::filesystem::path> shards = find_shards({pattern}, DataSplit::train);
    for (const std::filesystem::path& shard : shards) {
      std::error_code failed;
      const auto same = std::ranges::find_if(
          found.shards, [&](const auto& other) { return std::filesystem::equivalent(other, shard, failed); });
      if (same == found.shards.end()) continue;
      throw data_error("the training shard '{}' is in two rows of [[data.mix]]; leave it out of one of them",
                       shard.string());
    }
    found.shards.insert(found.shards.end(), shards.begin(), shards.end());
    if (!data.mix.empty()) {
      const DataMixRow& row = data.mix[found.parts.size()];
      found.parts.push_back({row.name, shards.size(), row.weight});
    }
  }
}

}  // namespace

TrainingData open_training_data(const RunConfig& config, const ValidationSet* validation) {
  TrainingData opened;
  const std::string& file = config.data.tokenizer;
  ShardUse use{DataSplit::train, config.model.vocabulary, file, {}, 0};
  if (!file.empty()) {
    const Tokenizer tokenizer = Tokenizer::load(file);
    use.tokenizer_sha256 = tokenizer.sha256();
    use.pieces = tokenizer.vocab_size();
    opened.bos_id = tokenizer.bos_id();
    check_tokenizer(config.model, opened.bos_id);
    const std::string note = check_vocabulary(use.vocabulary, use.pieces, file, config.data.exact_vocabulary);
    if (!note.empty()) opened.notes.push_back(note);
  }
  find_training_shards(config.data, opened);
  CheckedShards checked = check_shards(opened.shards, use);
  if (validation) {
    opened.data = validation->data;
    opened.data.packing = packing_text(config.eval, config.model, validation->joined);
    if (file.empty() && !checked.tokenizer_sha256.empty() && !opened.data.tokenizer_sha256.empty() &&
        checked.tokenizer_sha256 != opened.data.tokenizer_sha256) {
      throw data_error(
          "data.train and data.validation were made with two tokenizers, {} and {}; name shards of one",
          short_digest(checked.tokenizer_sha256), short_digest(opened.data.tokenizer_sha256));
    }
  }
  opened.data.tokenizer_sha256 = file.empty() ? checked.tokenizer_sha256 : use.tokenizer_sha256;
  opened.data.train = std::move(checked.identity);
  opened.stamps = std::move(checked.stamps);
  if (!validation) return opened;
  require_apart(opened.data.train, opened.data.validation);
  return opened;
}

namespace {

void require_documents_in(const std::vector<std::filesystem::path>& shards, const std::string& key,
                          int bos_id) {
  if (shards.empty() || documents_begin(shards, bos_id)) return;
  throw data_error(
      "the shards of {} ('{}' and {} more) have no BOS token ({}), but test-time training ([ttt]) adapts to documents; "
      "prepare the data again with BOS before each document, or leave out [ttt]",
      key, shards.front().string(), shards.size() - 1, bos_id);
}

}  // namespace

void require_documents(const RunConfig& config, const TrainingData& data, const ValidationSet* validation) {
  if (!config.ttt) return;
  if (validation) require_documents_in(validation->files, "data.validation", validation->bos_id);
  require_documents_in(data.shards, "data.train", data.bos_id);
}

TrainingData unchecked_training_data(const RunConfig& config) {
  TrainingData data;
  find_training_shards(config.data, data);
  if (!config.data.tokenizer.empty()) data.bos_id = Tokenizer::load(config.data.tokenizer).bos_id();
  return data;
}

LoaderOptions loader_options(const RunConfig& config, const TrainingData& data, int rank, int world_size) {
  LoaderOptions options;
  options.shards = data.shards;
  options.row_tokens = tokens_per_micro_batch(config.train);
  options.max_segment_tokens = config.train.sequence_length;
  options.world_size = world_size;
  options.group_spans = config.train.micro_batches;
  options.rank = rank;
  options.vocabulary = static_cast<int>(config.model.vocabulary);
  options.bos_id = config.data.documents == DataDocuments::joined ? kNoDocuments : data.bos_id;
  options.order = config.data.order;
  options.seed = static_cast<std::uint64_t>(config.run.seed);
  options.parts = data.parts;
  options.masking = masking_options(config.model, data.bos_id);
  for (std::size_t i = 0; i < options.parts.size(); ++i) {
    options.parts[i].weight = config.phases.front().mix_weights[i];
  }
  return options;
}

TextOverlap overlap_with_validation(const RunConfig& config, const std::vector<std::filesystem::path>& shards,
                                    const ValidationSet& validation, HostGroup& group, RunLog& log) {
  const OverlapRanks ranks{group.rank(), group.world_size(),
                           [&](std::string_view text) { return group.all_gather(text); }};
  const TextOverlap overlap = find_text_overlap(
      shards, validation.files, validation.tokenizer ? &*validation.tokenizer : nullptr, ranks);
  log.print("overlap: {}", overlap.text());
  if (overlap.passages == 0)
    log.print(
        "warning: the overlap of training and validation text is unknown; only whole documents were compared");
  const std::string excess = overlap.excess();
  if (excess.empty()) return overlap;
  if (config.ledger.rules == LedgerRules::strict) {
    throw data_error(
        "{}, so under ledger.rules = \"strict\" there would be no result; prepare the data again with "
        "mulligan prepare --drop-overlap, or name other training data in data.train",
        excess);
  }
  log.print(
      "warning: {}, so the score is partly that of training text; mulligan prepare --drop-overlap "
      "leaves such documents out",
      excess);
  return overlap;
}

namespace {

constexpr std::uint64_t shard_tokens = 100'000'000;  // of each published file except the last
constexpr std::size_t published_shards = 103;

void require_shard(const ShardIdentity& shard, const std::string& name, bool last) {
  if (shard.name == name && (shard.tokens == shard_tokens || last)) return;
  throw data_error(
      "the shard '{}' has {} tokens, but arena.track requires '{}' with {}; name the files of kjj0/fineweb10B-gpt2 from "
      "the first one on, or leave out [arena] for a run outside of the benchmark.",
      shard.name, shard.tokens, name, shard_tokens);
}

}  // namespace

void require_arena(const RunConfig& config, const DataIdentity& data, int world_size) {
  if (config.arena.track == ArenaTrack::none) return;
  if (world_size < 1 || 8 % world_size != 0) {
    throw config_error(
        "a run of arena.track has 1, 2, 4 or 8 ranks, not {}; start as many, or leave out [arena] for a run outside of "
        "the benchmark.",
        world_size);
  }
  for (std::size_t i = 0; i < data.train.shards.size(); ++i)
    require_shard(data.train.shards[i], fmt::format("fineweb_train_{:06}.bin", i + 1),
                  i + 1 == published_shards);
  if (data.validation.shards.size() != 1) {
    throw data_error(
        "{} validation shards are named, but arena.track scores fineweb_val_000000.bin; name that one, or leave out "
        "[arena] for a run outside of the benchmark.",
        data.validation.shards.size());
  }
  require_shard(data.validation.shards.front(), "fineweb_val_000000.bin", false);
}

void require_arena_batch(const RunConfig& config, double batch_factor) {
  if (config.arena.track == ArenaTrack::none || batch_factor == 1) return;
  throw config_error(
      "[schedule] requests {} times the batch, but every step of arena.track reads {} tokens; choose another schedule, "
      "or leave out [arena] for a run outside of the benchmark.",
      batch_factor, config.train.tokens_per_step);
}

}  // namespace mulligan
