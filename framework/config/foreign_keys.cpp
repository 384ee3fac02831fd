#include "framework/config/foreign_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace mulligan {
namespace {

struct ForeignKey {
  std::string_view word;  // the last part of the key
  std::string_view ours;  // keys, and what else is to be known of them
};

constexpr ForeignKey foreign_keys[] = {
    {"learning_rate", "optimizer.NAME.lr, one for each [optimizer.NAME] table"},
    {"lr", "optimizer.NAME.lr, one for each [optimizer.NAME] table"},
    {"weight_decay", "optimizer.NAME.weight_decay"},
    {"momentum", "optimizer.NAME.momentum"},
    {"batch_size", "train.tokens_per_step, in tokens, with train.micro_batches"},
    {"per_device_train_batch_size", "train.tokens_per_step, in tokens, with train.micro_batches"},
    {"gradient_accumulation_steps", "train.micro_batches"},
    {"grad_accum_steps", "train.micro_batches"},
    {"max_steps", "train.steps"},
    {"num_steps", "train.steps"},
    {"iterations", "train.steps"},
    {"num_iterations", "train.steps"},
    {"epochs", "train.steps or train.budget_seconds"},
    {"num_train_epochs", "train.steps or train.budget_seconds"},
    {"max_wallclock_seconds", "train.budget_seconds"},
    {"seq_len", "train.sequence_length"},
    {"block_size", "train.sequence_length"},
    {"max_seq_len", "train.sequence_length"},
    {"context_length", "train.sequence_length"},
    {"grad_clip", "train.clip_norm"},
    {"max_grad_norm", "train.clip_norm"},
    {"gradient_clip", "train.clip_norm"},
    {"warmup_steps",
     "the keys of [schedule], such as warmup of the plugin cosine; train.warmup.steps is about "
     "steps before the clock starts"},
    {"lr_scheduler_type", "schedule.plugin"},
    {"precision", "train.compute_dtype"},
    {"dtype", "train.compute_dtype"},
    {"bf16", "train.compute_dtype = \"bf16\""},
    {"fp16", "train.compute_dtype = \"fp16\""},
    {"vocab_size", "model.vocabulary"},
    {"n_layer", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"n_embd", "model.width"},
    {"hidden_size", "model.width"},
    {"d_model", "model.width"},
    {"dim", "model.width"},
    {"n_head", "model.heads"},
    {"num_heads", "model.heads"},
    {"num_attention_heads", "model.heads"},
    {"num_key_value_heads", "model.kv_heads"},
    {"n_kv_head", "model.kv_heads"},
    {"device", "backend.plugin, cpu or cuda"},
    {"seed", "run.seed"},
    {"output_dir", "run.directory"},
    {"eval_steps", "train.validate_every"},
    {"eval_interval", "train.validate_every"},
    {"logging_steps", "train.log_every"},
    {"log_interval", "train.log_every"},
    {"save_steps", "checkpoint.every_steps"},
    {"ema_decay", "ema.decay"},
};

}  // namespace

std::string hint_for_foreign_key(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  const std::string_view section = dot == key.npos ? "" : key.substr(0, dot);
  // A mistyped section is the better thing to say.
  constexpr std::string_view sections[] = {"", "run", "data", "model", "train", "eval", "checkpoint"};
  if (std::ranges::find(sections, section) == std::end(sections)) return {};
  const std::string_view word = dot == key.npos ? key : key.substr(dot + 1);
  for (const ForeignKey& foreign : foreign_keys) {
    if (foreign.word == word) return fmt::format("here it is {}.", foreign.ours);
  }
  return {};
}

}  // namespace mulligan
