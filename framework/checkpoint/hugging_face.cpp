#include "framework/checkpoint/hugging_face.h"

#include <nlohmann/json.hpp>

#include "framework/checkpoint/weight_exchange.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/temporary_path.h"
#include "framework/data/tokenizer.h"
#include "framework/model/elements/attention/config.h"
#include "framework/model/elements/masking/config.h"
#include "framework/model/elements/rational_softcap/config.h"
#include "hugging_face_python.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// The keys of the published models, read back by read_qwen2_config.
Json qwen2_config(const ModelConfig& m, std::int64_t context_tokens) {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"model_type", "qwen2"},
          {"hidden_act", "silu"},
          {"vocab_size", m.vocabulary},
          {"num_hidden_layers", m.layers},
          {"hidden_size", m.width},
          {"num_attention_heads", m.heads},
          {"num_key_value_heads", m.kv_heads},
          {"head_dim", m.head_width},
          {"intermediate_size", m.mlp_hidden},
          {"rms_norm_eps", m.norm_eps},
          {"rope_theta", m.rope.base},
          {"tie_word_embeddings", m.tied_head},
          {"max_position_embeddings", context_tokens}};
}

Json record_config(const PublishedContents& contents) {
  const std::string prefix = "model.";
  Json keys;
  for (const auto& [name, value] : contents.settings)
    if (name.starts_with(prefix)) keys[name.substr(prefix.size())] = Json::parse(value);
  return {{"architectures", {"MulliganForCausalLM"}},
          {"model_type", "mulligan"},
          {"auto_map",
           {{"AutoConfig", "modeling_mulligan.MulliganConfig"},
            {"AutoModelForCausalLM", "modeling_mulligan.MulliganForCausalLM"}}},
          {"tie_word_embeddings", false},  // by the model itself, where it has no head of its own
          {"model", keys}};
}

}  // namespace

void require_published_parts(const ModelConfig& model) {
  const auto refuse = [](std::string_view key) {
    throw config_error("{} asks for a part that no exported format has; only `mulligan` reads such a model.",
                       key);
  };
  if (model.family == ModelFamily::modded) refuse("model.family = \"modded\"");
  if (model.attention_scale != 0) refuse("model.attention_scale");
  if (model.rope.form != RopeForm::geometric) refuse("model.rope.form");
  if (elements::rational_softcap::config_of(model).cap != 0) refuse("model.rational_softcap.cap");
}

void write_hugging_face_folder(const fs::path& folder, const PublishedContents& contents,
                               std::optional<DType> dtype) {
  require_published_parts(contents.model);
  require_next_token(contents.model, "transformers' models for text predict the next token");
  config_error_if(
      elements::attention::active(elements::attention::config_of(contents.model)),
      "[model.attention] asks for its own rounding, which no Python file of the folder computes; leave it "
      "out with --set, and the scores differ by rounding.");
  if (fs::exists(folder)) throw config_error("'{}' exists already; name a new folder.", folder.string());
  const bool own = contents.model.family == ModelFamily::record;
  Json config = own ? record_config(contents) : qwen2_config(contents.model, contents.context_tokens);
  TemporaryPath unfinished(temporary_name(folder));
  const auto write = [&](const char* name, std::string_view text) {
    write_file_atomically(unfinished.path() / name, text);
  };
  if (!contents.tokenizer.empty()) {
    config["bos_token_id"] = Tokenizer::load(contents.tokenizer).bos_id();
    write("tokenizer.model", read_file(contents.tokenizer));
    write("tokenization_mulligan.py", tokenization_python);
    write("tokenizer_config.json",
          Json{{"tokenizer_class", "MulliganTokenizer"},
               {"auto_map", {{"AutoTokenizer", {"tokenization_mulligan.MulliganTokenizer", nullptr}}}}}
              .dump(2));
  }
  if (own) write("modeling_mulligan.py", modeling_python);
  config["dtype"] = dtype == MLG_BF16 ? "bfloat16" : dtype == MLG_F16 ? "float16" : "float32";
  config["use_cache"] = !own;
  write("config.json", config.dump(2));
  export_weights(contents.weights, nullptr, dtype, unfinished.path() / "model.safetensors",
                 {{"format", "pt"}});
  unfinished.publish(folder);
}

}  // namespace mulligan
