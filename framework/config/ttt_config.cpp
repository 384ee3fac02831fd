#include "framework/config/ttt_config.h"

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"

namespace mulligan {

void declare_keys(Schema<TttConfig>& s) {
  s.key("batch_documents", &TttConfig::batch_documents,
        "documents adapted together, each with adapters of its own; the remainder holds the longest")
      .range(1, 1 << 16);
  s.key("order", &TttConfig::order, "order in which batches of documents are scored");
  s.key("context_tokens", &TttConfig::context_tokens,
        "longest window in tokens; each chunk is scored at its window's end")
      .range(1, 1 << 24);
  s.key("chunk_tokens", &TttConfig::chunk_tokens, "tokens that are scored, then trained on, at once")
      .range(1, 1 << 24);
  s.key("chunk_limits", &TttConfig::chunk_limits,
        "ascending tokens: batches whose longest document has at most chunk_limits[i] use chunk_sizes[i]")
      .at_least(1);
  s.key("chunk_sizes", &TttConfig::chunk_sizes,
        "chunk tokens of the batches that chunk_limits name, one for each")
      .at_least(1);
  s.key("document_fraction", &TttConfig::document_fraction,
        "share of the documents that is scored, drawn by document_seed")
      .range(1e-9, 1);
  s.key("document_seed", &TttConfig::document_seed, "seed of that drawing").at_least(0);
  s.key("prefix_documents", &TttConfig::prefix_documents,
        "scored documents up to which [ttt.base] trains the base model; 0 = never")
      .at_least(0);
  s.key("phases", &TttConfig::phases, "trainings of the base model within the prefix, at equal distances")
      .range(1, 1 << 16);
  s.key("lanes", &TttConfig::lanes,
        "chains of batches that hand their adapters on, as each rank of a "
        "run has one; 8 in one process replay 8 ranks; 0 = one for each rank")
      .range(0, 1 << 16);
  s.key(
      "on_collapse", &TttConfig::on_collapse,
      "when the running bits per byte exceed those of the same windows without adaptation: warn, or also score "
      "the rest without it; off skips the passes that score without it");
  s.key("collapse_margin", &TttConfig::collapse_margin, "excess in bits per byte that counts as a collapse")
      .range(0, 100);
  s.key("base_keeps_dtypes", &TttConfig::base_keeps_dtypes,
        "[ttt.base] trains weights in the master dtypes of [[parameters]]; off: all in fp32");
  s.key(
      "check", &TttConfig::check,
      "chunks that are also scored with other tokens after a cut, which finds scores that read later tokens: "
      "as many as take 1 % of the time, or all at every cut (many times as long)");
  s.key("audit", &TttConfig::audit,
        "file for the order of scores and updates, in the run directory; empty: none");
}

void declare_keys(Schema<AdapterRate>& s) {
  s.key("lr", &AdapterRate::lr, "learning rate of the adapters, constant").range(0, 1e6).required();
  s.key("lr_multiplier", &AdapterRate::multiplier, "factor on lr, for a rate that is a multiple of another")
      .range(0, 1e6);
}

void declare_keys(Schema<TransformOptions>& s) {
  s.key(
      "text_order", &TransformOptions::text_order,
      "in which order it learns the tokens: queue = as they are scored, document = each document by itself, "
      "file = in the order of the shards, ahead of their scoring, as the published record does, which "
      "ledger.rules = \"strict\" refuses");
}

namespace {

void check_chunks(const TttConfig& config, const Settings& settings) {
  const std::string limits = settings.where("chunk_limits"), sizes = settings.where("chunk_sizes");
  config_error_if(config.chunk_limits.size() != config.chunk_sizes.size(),
                  "{} has {} entries, but {} has {}; give one size for each limit.", limits,
                  config.chunk_limits.size(), sizes, config.chunk_sizes.size());
  for (std::size_t i = 0; i < config.chunk_limits.size(); ++i) {
    if (i > 0 && config.chunk_limits[i] <= config.chunk_limits[i - 1]) {
      throw config_error("{} does not ascend: {} follows {}; sort the limits.", limits,
                         config.chunk_limits[i], config.chunk_limits[i - 1]);
    }
    config_error_if(config.chunk_sizes[i] != std::floor(config.chunk_sizes[i]),
                    "{} holds {}, but a chunk has a whole number of tokens.", sizes, config.chunk_sizes[i]);
  }
  double largest = static_cast<double>(config.chunk_tokens);
  for (const double size : config.chunk_sizes) largest = std::max(largest, size);
  config_error_if(largest > static_cast<double>(config.context_tokens),
                  "{} is {}, but a chunk has {} tokens; a window must hold a whole chunk.",
                  settings.where("context_tokens"), config.context_tokens, largest);
}

}  // namespace

std::optional<TttSection> read_ttt(const ConfigNode* table, const std::string& source) {
  if (table == nullptr) return std::nullopt;
  static const std::vector<std::string> own_tables = {"adapters", "optimizer", "transform", "base"};
  TttSection section;
  section.settings = read_keys(section.config, table, "ttt", source, own_tables);
  section.adapters = read_plugin_table(table->find("adapters"), "ttt.adapters", source, "doc_lora");
  AdapterRate rate;
  section.optimizer =
      read_plugin_table_with(rate, table->find("optimizer"), "ttt.optimizer", source, "adamw");
  section.lr = rate.lr * rate.multiplier;
  if (const ConfigNode* transform = table->find("transform")) {
    TransformOptions options;
    section.transform = read_plugin_table_with(options, transform, "ttt.transform", source, "ngram_tilt");
    section.transform_order = options.text_order;
  }
  if (const ConfigNode* base = table->find("base")) {
    static const std::vector<std::string> inner_tables = {"optimizer"};
    section.base = read_plugin_table(base, "ttt.base", source, "global_sgd", inner_tables);
    section.base_optimizer = read_plugin_table(base->find("optimizer"), "ttt.base.optimizer", source, "sgd");
  }
  check_chunks(section.config, section.settings);
  config_error_if(section.config.audit.find('/') != std::string::npos,
                  "{} is \"{}\", but must be a bare file name; the file goes into the run directory.",
                  section.settings.where("audit"), section.config.audit);
  config_error_if(
      section.config.prefix_documents > 0 && !section.base,
      "{} is {}, but there is no [ttt.base] that says how the base model is trained; add it or set 0.",
      section.settings.where("prefix_documents"), section.config.prefix_documents);
  return section;
}

std::vector<KeySpec> base_optimizer_keys(const PluginTable& table, std::vector<KeySpec> keys) {
  if (const ConfigNode* momentum = table.keys.find("momentum")) {
    throw config_error("{}: {}.momentum is what [ttt.base] says; set it there, or leave it out.",
                       momentum->origin.text(), table.section);
  }
  std::erase_if(keys, [](const KeySpec& key) { return key.name == "momentum"; });
  return keys;
}

}  // namespace mulligan
