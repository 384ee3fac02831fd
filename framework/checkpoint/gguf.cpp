#include <algorithm>

#include "framework/checkpoint/float_formats.h"
#include "framework/checkpoint/hugging_face.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/exact_encoding.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

constexpr std::size_t gguf_alignment = 32;

// Numbers of the format's own enumerations.
enum class GgufValue : std::uint32_t { u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9 };
enum GgufPiece : std::int32_t {
  normal_piece = 1,
  unknown_piece,
  control_piece,
  unused_piece = 5,
  byte_piece
};
std::uint32_t tensor_type(DType type) {
  return type == MLG_F16 ? 1 : type == MLG_BF16 ? 30 : 0;
}

class GgufBytes {
 public:
  template <typename T>
  void raw(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(std::string_view value) {
    raw<std::uint64_t>(value.size());
    bytes += value;
  }
  template <typename T>
  void key(std::string_view name, GgufValue type, T value) {
    begin(name, type);
    raw(value);
  }
  void key(std::string_view name, std::string_view value) {
    begin(name, GgufValue::string);
    text(value);
  }
  void list(std::string_view name, GgufValue type, std::size_t count) {
    begin(name, GgufValue::array);
    raw(type);
    raw<std::uint64_t>(count);
  }
  void align() { bytes.resize((bytes.size() + gguf_alignment - 1) / gguf_alignment * gguf_alignment); }

  std::string bytes;
  std::uint64_t keys = 0;

 private:
  void begin(std::string_view name, GgufValue type) {
    ++keys;
    text(name);
    raw(type);
  }
};

// "model.layers.3.self_attn.q_proj.weight" is "blk.3.attn_q.weight".
std::string gguf_name(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {{"model.embed_tokens", "token_embd"},
                                                                     {"model.norm", "output_norm"},
                                                                     {"lm_head", "output"},
                                                                     {"model.layers", "blk"},
                                                                     {"self_attn.o_proj", "attn_output"},
                                                                     {"self_attn.", "attn_"},
                                                                     {"post_attention_layernorm", "ffn_norm"},
                                                                     {"input_layernorm", "attn_norm"},
                                                                     {"mlp.", "ffn_"},
                                                                     {"_proj", ""}};
  for (const auto& [theirs, word] : words)
    if (const std::size_t at = name.find(theirs); at != std::string::npos)
      name.replace(at, theirs.size(), word);
  return name;
}

void write_model(GgufBytes& out, const PublishedContents& contents) {
  const ModelConfig& m = contents.model;
  out.key("general.architecture", "qwen2");
  for (const auto& [name, value] : {std::pair{"block_count", m.layers},
                                    {"context_length", contents.context_tokens},
                                    {"embedding_length", m.width},
                                    {"feed_forward_length", m.mlp_hidden},
                                    {"attention.head_count", m.heads},
                                    {"attention.head_count_kv", m.kv_heads},
                                    {"attention.key_length", m.head_width},
                                    {"attention.value_length", m.head_width},
                                    {"rope.dimension_count", m.head_width},
                                    {"vocab_size", m.vocabulary}})
    out.key(std::string("qwen2.") + name, GgufValue::u32, static_cast<std::uint32_t>(value));
  out.key("qwen2.attention.layer_norm_rms_epsilon", GgufValue::f32, static_cast<float>(m.norm_eps));
  out.key("qwen2.rope.freq_base", GgufValue::f32, static_cast<float>(m.rope.base));
}

// Ids beyond the pieces pad the model's vocabulary.
void write_tokenizer(GgufBytes& out, const std::filesystem::path& path, std::int64_t vocabulary) {
  if (path.empty()) throw config_error("the run names no data.tokenizer, whose pieces a GGUF file holds.");
  if (!model_rules(read_file(path)).pair_merges)
    throw config_error(
        "'{}' is no tokenizer of byte pairs, and programs that read GGUF cut text by no other.",
        path.string());
  const Tokenizer tokenizer = Tokenizer::load(path);
  const int pieces = tokenizer.vocab_size();
  const auto count = static_cast<std::size_t>(vocabulary);
  out.key("tokenizer.ggml.model", "llama");
  out.list("tokenizer.ggml.tokens", GgufValue::string, count);
  for (int id = 0; id < vocabulary; ++id)
    out.text(id < pieces ? tokenizer.piece(id) : fmt::format("[PAD{}]", id));
  out.list("tokenizer.ggml.scores", GgufValue::f32, count);
  for (int id = 0; id < vocabulary; ++id) out.raw(id < pieces ? tokenizer.score(id) : 0.0F);
  out.list("tokenizer.ggml.token_type", GgufValue::i32, count);
  const int unknown_id = tokenizer.find("<unk>");
  for (int id = 0; id < vocabulary; ++id)
    out.raw<std::int32_t>(id >= pieces                ? unused_piece
                          : id == unknown_id          ? unknown_piece
                          : tokenizer.is_byte(id)     ? byte_piece
                          : tokenizer.is_textless(id) ? control_piece
                                                      : normal_piece);
  out.key("tokenizer.ggml.bos_token_id", GgufValue::u32, static_cast<std::uint32_t>(tokenizer.bos_id()));
  out.key("tokenizer.ggml.add_bos_token", GgufValue::boolean, std::uint8_t{1});
  out.key("tokenizer.ggml.add_space_prefix", GgufValue::boolean,
          static_cast<std::uint8_t>(!tokenizer.keeps_text()));
}

}  // namespace

void write_gguf(const std::filesystem::path& file, const PublishedContents& contents,
                std::optional<DType> dtype) {
  require_published_parts(contents.model);
  if (contents.model.family != ModelFamily::qwen2)
    throw config_error("GGUF has no architecture for models of the family record; export them --to hf.");
  GgufBytes keys, head, tensors, data;
  write_model(keys, contents);
  write_tokenizer(keys, contents.tokenizer, contents.model.vocabulary);
  for (const StoredTensor& tensor : contents.weights) {
    const DType type = tensor.shape.size() > 1 ? dtype.value_or(MLG_F32) : MLG_F32;
    data.align();
    tensors.text(gguf_name(tensor.name));
    tensors.raw(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) tensors.raw(*extent);
    tensors.raw(tensor_type(type));
    tensors.raw<std::uint64_t>(data.bytes.size());
    const std::vector<std::byte> bytes = encode_weights(decode_weights(tensor.bytes, tensor.type), type);
    data.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  head.bytes = "GGUF";
  head.raw<std::uint32_t>(3);
  head.raw<std::uint64_t>(contents.weights.size());
  head.raw(keys.keys);
  head.bytes += keys.bytes + tensors.bytes;
  head.align();
  data.align();
  write_file_atomically(file, std::array<std::string_view, 2>{head.bytes, data.bytes});
}

}  // namespace mulligan
