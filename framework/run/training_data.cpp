#include "framework/run/training_data.h"

#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/data/shard_checks.h"

namespace mulligan {

TrainingData open_training_data(const RunConfig& config, const ValidationSet* validation) {
  TrainingData opened;
  const std::string& file = config.data.tokenizer;
  ShardUse use{DataSplit::train, config.model.vocabulary, file, {}, 0};
  if (!file.empty()) {
    const Tokenizer tokenizer = Tokenizer::load(file);
    use.tokenizer_sha256 = tokenizer.sha256();
    use.pieces = tokenizer.vocab_size();
    opened.bos_id = tokenizer.bos_id();
    require_vocabulary(use.vocabulary, use.pieces, file);
    if (const std::string note = padding_note(use.vocabulary, use.pieces); !note.empty()) {
      opened.notes.push_back(note);
    }
  }
  opened.shards = find_shards({config.data.train}, DataSplit::train);
  CheckedShards checked = check_shards(opened.shards, use);
  if (validation) {
    opened.data = validation->data;
    opened.data.packing = packing_text(config.eval);
    if (file.empty() && !checked.tokenizer_sha256.empty() && !opened.data.tokenizer_sha256.empty() &&
        checked.tokenizer_sha256 != opened.data.tokenizer_sha256) {
      throw data_error(
          "data.train and data.validation were made with two tokenizers, {} and {}; name shards of one",
          short_digest(checked.tokenizer_sha256), short_digest(opened.data.tokenizer_sha256));
    }
  }
  opened.data.tokenizer_sha256 = file.empty() ? checked.tokenizer_sha256 : use.tokenizer_sha256;
  opened.data.train = std::move(checked.identity);
  if (!validation) return opened;
  require_apart(opened.data.train, opened.data.validation);
  opened.shared = find_shared_text(opened.shards, validation->files, opened.bos_id);
  if (const std::string warning = shared_text_warning(opened.shared); !warning.empty()) {
    opened.notes.push_back(warning);
  }
  return opened;
}

TrainingData unchecked_training_data(const RunConfig& config) {
  TrainingData data;
  data.shards = find_shards({config.data.train}, DataSplit::train);
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
  options.bos_id = data.bos_id;
  return options;
}

}  // namespace mulligan
