#include "framework/data/tokenizer_format.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/core/utf8.h"
#include "framework/data/shard.h"
#include "framework/data/text_files.h"

namespace mulligan {
namespace {

using namespace std::string_view_literals;

std::string pieces_text(std::size_t pieces) {
  return pieces <= static_cast<std::size_t>(kMaxVocabulary)
             ? fmt::format("{} pieces", pieces)
             : fmt::format("{} pieces, and shards hold at most {}", pieces, kMaxVocabulary);
}

// Whether the first line is a base64 text and a rank, as of tiktoken.
bool has_ranks(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
  const std::size_t space = line.find(' ');
  return space > 0 && space < line.size() - 1 &&
         line.find_first_not_of("0123456789", space + 1) == line.npos &&
         line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == space;
}

std::string json_format(const nlohmann::json& json) {
  const auto is_number = [](const nlohmann::json& id) { return id.is_number_integer(); };
  if (const auto pieces = json.find("vocab"); pieces != json.end() && pieces->is_array())
    return fmt::format("a tekken.json ({})", pieces_text(pieces->size()));
  if (const auto model = json.find("model"); model != json.end() && model->is_object()) {
    const auto type = model->find("type"), vocabulary = model->find("vocab");
    return fmt::format("a Hugging Face tokenizer.json ({}{})",
                       type != model->end() && type->is_string() ? type->get<std::string>() : "model",
                       vocabulary == model->end() ? "" : ", " + pieces_text(vocabulary->size()));
  }
  if (json.contains("tokenizer_class") || json.contains("added_tokens_decoder"))
    return "a Hugging Face tokenizer_config.json";
  if (json.is_object() && !json.empty() && std::ranges::all_of(json, is_number))
    return fmt::format("a vocab.json of byte pair encoding ({})", pieces_text(json.size()));
  return "a JSON file";
}

std::string model_format(std::string_view bytes) {
  const auto lines = std::ranges::count(bytes, '\n');
  if (bytes.starts_with("GGUF")) return "a GGUF file";
  if (bytes.starts_with("#version")) return "a merges.txt of byte pair encoding";
  if (has_ranks(bytes)) {
    return fmt::format("a tiktoken file of byte pair encoding, as Llama 3 calls its tokenizer.model ({})",
                       pieces_text(static_cast<std::size_t>(lines)));
  }
  if (const nlohmann::json json = parse_json(bytes); json.is_structured()) return json_format(json);
  if (bytes.starts_with("\x80\x02") || bytes.starts_with("\x80\x04")) return "a file of Python's pickle";
  if (bytes.size() > 8 && bytes[8] == '{' && bytes.substr(4, 4) == "\0\0\0\0"sv)
    return "a file of tensors (safetensors)";
  const auto is_control = [](char c) { return c >= 0 && c < 0x20 && c != '\t' && c != '\n' && c != '\r'; };
  if (bytes.empty() || std::ranges::any_of(bytes, is_control) || !is_utf8(bytes)) return {};  // not a text
  if (bytes.substr(0, bytes.find('\n')).find('\t') != bytes.npos)
    return "the list of pieces that SentencePiece writes next to its model";
  return fmt::format("a text of {} lines, such as the vocab.txt of WordPiece", lines);
}

}  // namespace

std::string foreign_tokenizer_format(std::string_view bytes) {
  if (bytes.starts_with("version https://git-lfs"))
    return "a pointer of Git LFS and not the file; fetch that with 'git lfs pull'";
  if (bytes.starts_with("<!DOCTYPE") || bytes.starts_with("<!doctype") || bytes.starts_with("<html"))
    return "a web page; download the file itself again";
  if (const OtherContents packed = signed_contents(bytes); !packed.shown.empty()) {
    return fmt::format("{}; unpack it with `{}`, and name the model in it", packed.shown,
                       fmt::format(fmt::runtime(packed.command), "FILE", "OUTPUT"));
  }
  const std::string format = model_format(bytes);
  if (format.empty()) return {};
  return format +
         "; mulligan reads SentencePiece models alone: name the tokenizer.model of a model that has one, or leave "
         "--tokenizer out, and 'mulligan prepare' trains one on your text (--vocab-size)";
}

}  // namespace mulligan
