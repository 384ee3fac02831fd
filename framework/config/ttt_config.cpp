#include "framework/config/ttt_config.h"

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"

namespace mulligan {
namespace {

const Schema<TttConfig>& ttt_schema() {
  static const Schema<TttConfig> schema = [] {
    Schema<TttConfig> s;
    s.key("batch_documents", &TttConfig::batch_documents,
          "documents adapted together, each with adapters of its own; the remainder holds the longest")
        .range(1, 1 << 16);
    s.choice<DocumentOrder>(
        "order", &TttConfig::order,
        {{"longest_first", DocumentOrder::longest_first}, {"shortest_first", DocumentOrder::shortest_first}},
        "order in which batches of documents are scored");
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
    s.choice<OnCollapse>(
        "on_collapse", &TttConfig::on_collapse,
        {{"off", OnCollapse::off}, {"warn", OnCollapse::warn}, {"fallback", OnCollapse::fallback}},
        "when the running bits per byte exceed those of the same windows without adaptation: warn, or also score "
        "the rest without it; off skips the passes that score without it");
    s.key("collapse_margin", &TttConfig::collapse_margin, "excess in bits per byte that counts as a collapse")
        .range(0, 100);
    s.key("base_keeps_dtypes", &TttConfig::base_keeps_dtypes,
          "[ttt.base] trains weights in the master dtypes of [[parameters]]; off: all in fp32");
    s.choice<TttCheck>(
        "check", &TttConfig::check,
        {{"sampled", TttCheck::sampled}, {"full", TttCheck::full}, {"off", TttCheck::off}},
        "chunks that are also scored with other tokens after a cut, which finds scores that read later tokens: "
        "as many as take 1 % of the time, or all at every cut (many times as long)");
    s.key("audit", &TttConfig::audit,
          "file for the order of scores and updates, in the run directory; empty: none");
    return s;
  }();
  return schema;
}

void check_chunks(const TttConfig& config, const Settings& settings) {
  const std::string limits = settings.where("chunk_limits"), sizes = settings.where("chunk_sizes");
  if (config.chunk_limits.size() != config.chunk_sizes.size()) {
    throw config_error("{} has {} entries, but {} has {}; give one size for each limit.", limits,
                       config.chunk_limits.size(), sizes, config.chunk_sizes.size());
  }
  for (std::size_t i = 0; i < config.chunk_limits.size(); ++i) {
    if (i > 0 && config.chunk_limits[i] <= config.chunk_limits[i - 1]) {
      throw config_error("{} does not ascend: {} follows {}; sort the limits.", limits,
                         config.chunk_limits[i], config.chunk_limits[i - 1]);
    }
    if (config.chunk_sizes[i] != std::floor(config.chunk_sizes[i])) {
      throw config_error("{} holds {}, but a chunk has a whole number of tokens.", sizes,
                         config.chunk_sizes[i]);
    }
  }
  double largest = static_cast<double>(config.chunk_tokens);
  for (const double size : config.chunk_sizes) largest = std::max(largest, size);
  if (largest > static_cast<double>(config.context_tokens)) {
    throw config_error("{} is {}, but a chunk has {} tokens; a window must hold a whole chunk.",
                       settings.where("context_tokens"), config.context_tokens, largest);
  }
}

}  // namespace

std::optional<TttSection> read_ttt(const ConfigNode* table, const std::string& source) {
  if (table == nullptr) return std::nullopt;
  static const std::vector<std::string> own_tables = {"adapters", "optimizer", "transform", "base"};
  if (const ConfigNode* moved = table->find("gradient_steps")) {
    throw config_error("{}: ttt.gradient_steps is a key of the adapters now; write ttt.adapters.steps.",
                       moved->origin.text());
  }
  TttSection section;
  section.settings = resolve_keys(ttt_schema().keys(), table, "ttt", source, own_tables);
  ttt_schema().store(section.settings, section.config);
  section.adapters = read_plugin_table(table->find("adapters"), "ttt.adapters", source, "doc_lora");
  section.optimizer = read_plugin_table(table->find("optimizer"), "ttt.optimizer", source, "adamw",
                                        ttt_optimizer_host_keys());
  section.lr =
      section.optimizer.host.at("lr").value.real() * section.optimizer.host.at("lr_multiplier").value.real();
  if (const ConfigNode* transform = table->find("transform")) {
    section.transform =
        read_plugin_table(transform, "ttt.transform", source, "ngram_tilt", ttt_transform_host_keys());
    const std::string order = section.transform->host.at("text_order").value.string();
    for (const TransformOrder each : {TransformOrder::document, TransformOrder::file}) {
      if (order == transform_order_word(each)) section.transform_order = each;
    }
  }
  if (const ConfigNode* base = table->find("base")) {
    static const std::vector<std::string> inner_tables = {"optimizer"};
    section.base = read_plugin_table(base, "ttt.base", source, "global_sgd", {}, inner_tables);
    section.base_optimizer = read_plugin_table(base->find("optimizer"), "ttt.base.optimizer", source, "sgd");
  }
  check_chunks(section.config, section.settings);
  if (section.config.audit.find('/') != std::string::npos) {
    throw config_error("{} is \"{}\", but must be a bare file name; the file goes into the run directory.",
                       section.settings.where("audit"), section.config.audit);
  }
  if (section.config.prefix_documents > 0 && !section.base) {
    throw config_error(
        "{} is {}, but there is no [ttt.base] that says how the base model is trained; add it or set 0.",
        section.settings.where("prefix_documents"), section.config.prefix_documents);
  }
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

std::vector<KeySpec> ttt_optimizer_host_keys() {
  KeySpec lr;
  lr.name = "lr";
  lr.type = ValueType::real;
  lr.required = true;
  lr.minimum = 0;
  lr.maximum = 1e6;
  lr.help = "learning rate of the adapters, constant";
  KeySpec multiplier;
  multiplier.name = "lr_multiplier";
  multiplier.type = ValueType::real;
  multiplier.default_value = ConfigValue(1.0);
  multiplier.minimum = 0;
  multiplier.maximum = 1e6;
  multiplier.help = "factor on lr, for a rate that is a multiple of another";
  return {lr, multiplier};
}

std::vector<KeySpec> ttt_transform_host_keys() {
  KeySpec order;
  order.name = "text_order";
  order.type = ValueType::string;
  order.default_value = ConfigValue(std::string(transform_order_word(TransformOrder::queue)));
  for (const TransformOrder each : {TransformOrder::queue, TransformOrder::document, TransformOrder::file}) {
    order.choices.emplace_back(transform_order_word(each));
  }
  order.help =
      "in which order it learns the tokens: queue = as they are scored, document = each document by itself, "
      "file = in the order of the shards, ahead of their scoring, as the published record does, which "
      "ledger.rules = \"strict\" refuses";
  return {order};
}

const char* transform_order_word(TransformOrder order) {
  switch (order) {
    case TransformOrder::queue:
      return "queue";
    case TransformOrder::document:
      return "document";
    case TransformOrder::file:
      return "file";
  }
  return "";
}

std::vector<KeySpec> ttt_host_keys() {
  return ttt_schema().keys();
}

}  // namespace mulligan
