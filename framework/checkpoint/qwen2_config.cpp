#include "framework/checkpoint/qwen2_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

using nlohmann::json;

// Sizes beyond those that [model] allows do not occur in models.
constexpr std::int64_t most_tokens = 1 << 18, most_layers = 1024, most_width = 65536, most_hidden = 1 << 20;

class KeyReader {
 public:
  KeyReader(const std::filesystem::path& file, const json& object) : file_(file.string()), object_(object) {}

  // Null where the key is absent, or is null.
  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  // Without `otherwise` the key must be there.
  std::int64_t size(const char* key, std::int64_t most, std::optional<std::int64_t> otherwise = {}) const {
    const json* value = find(key);
    if (!value && otherwise) return *otherwise;
    if (!value) throw data_error("'{}' has no '{}', so the model's shape is not known.", file_, key);
    const bool fits =
        value->is_number_integer() && value->get<std::int64_t>() >= 1 && value->get<std::int64_t>() <= most;
    return fits ? value->get<std::int64_t>()
                : throw wrong(key, *value, fmt::format("a whole number from 1 to {}", most));
  }
  double number(const char* key, double otherwise) const {
    return get(key, otherwise, &json::is_number, "a number");
  }
  bool flag(const char* key, bool otherwise) const {
    return get(key, otherwise, &json::is_boolean, "true or false");
  }
  std::string word(const char* key, const std::string& otherwise) const {
    return get(key, otherwise, &json::is_string, "a word");
  }
  void require(bool holds, const char* key, const std::string& wanted) const {
    if (holds) return;
    const json* value = find(key);
    throw data_error("'{}' gives '{}' as {}, but the family qwen2 here has {}.", file_, key,
                     value ? shown(*value) : "nothing", wanted);
  }

 private:
  static std::string shown(const json& value) {
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  }
  template <typename T>
  T get(const char* key, const T& otherwise, bool (json::*is)() const noexcept, const char* kind) const {
    const json* value = find(key);
    if (!value) return otherwise;
    return (value->*is)() ? value->get<T>() : throw wrong(key, *value, kind);
  }
  Error wrong(const char* key, const json& value, const std::string& kind) const {
    return data_error("'{}' gives '{}' as {}, but it is {}.", file_, key, shown(value), kind);
  }

  std::string file_;
  const json& object_;
};

// Older files have rope_theta and rope_scaling, newer ones a table rope_parameters.
double rope_base(const std::filesystem::path& file, const KeyReader& reader) {
  reader.require(!reader.find("rope_scaling"), "rope_scaling", "rotary frequencies that are not scaled");
  const json* table = reader.find("rope_parameters");
  if (!table) return reader.number("rope_theta", 1e4);
  reader.require(table->is_object(), "rope_parameters", "a table there");
  const KeyReader inner(file, *table);
  inner.require(inner.word("rope_type", "default") == "default", "rope_type",
                "rotary frequencies that are not scaled");
  return inner.number("rope_theta", reader.number("rope_theta", 1e4));
}

}  // namespace

PublishedModel read_qwen2_config(const std::filesystem::path& file) {
  const json object = json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    throw data_error("'{}' is not a JSON object; it is not a config.json of a model, or it is damaged.",
                     file.string());
  }
  const KeyReader reader(file, object);
  reader.require(reader.word("model_type", "") == "qwen2", "model_type", "\"qwen2\"");
  reader.require(reader.word("hidden_act", "silu") == "silu", "hidden_act", "\"silu\"");
  reader.require(!reader.flag("use_sliding_window", false), "use_sliding_window", "no sliding window");
  reader.require(reader.number("attention_dropout", 0) == 0, "attention_dropout", "no dropout");
  PublishedModel published;
  ModelConfig& m = published.model;
  m.family = ModelFamily::qwen2;
  m.vocabulary = reader.size("vocab_size", most_tokens);
  m.layers = reader.size("num_hidden_layers", most_layers);
  m.width = reader.size("hidden_size", most_width);
  m.heads = reader.size("num_attention_heads", most_layers);
  m.kv_heads = reader.size("num_key_value_heads", most_layers, m.heads);
  m.head_width = reader.size("head_dim", most_layers, std::max<std::int64_t>(1, m.width / m.heads));
  m.mlp_hidden = reader.size("intermediate_size", most_hidden);
  reader.require(m.head_width % 2 == 0, "head_dim", "heads of an even number of elements");
  reader.require(m.heads % m.kv_heads == 0, "num_key_value_heads", "a divisor of the query heads");
  m.tied_head = reader.flag("tie_word_embeddings", false);
  m.norm_eps = reader.number("rms_norm_eps", 1e-6);
  reader.require(m.norm_eps > 0 && m.norm_eps <= 1, "rms_norm_eps", "an eps above 0 and at most 1");
  m.rope.base = rope_base(file, reader);
  reader.require(m.rope.base >= 1 && m.rope.base <= 1e9, "rope_theta", "a base from 1 to 1e9");
  resolve_model_defaults(m);
  published.stored_dtype = reader.word("torch_dtype", reader.word("dtype", ""));
  return published;
}

std::string model_table_text(const ModelConfig& m) {
  return fmt::format(
      "[model]\nfamily = \"qwen2\"\nvocabulary = {}\nlayers = {}\nwidth = {}\nheads = {}\nkv_heads = {}\n"
      "head_width = {}\nmlp_hidden = {}\ntied_head = {}\nnorm_eps = {}\n[model.rope]\nbase = {:.1f}\n",
      m.vocabulary, m.layers, m.width, m.heads, m.kv_heads, m.head_width, m.mlp_hidden, m.tied_head,
      m.norm_eps, m.rope.base);
}

}  // namespace mulligan
