#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/data/shard.h"
#include "framework/data/text_files.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

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

std::string model_format(std::string_view bytes) {
  if (has_ranks(bytes)) {
    const auto lines = static_cast<std::size_t>(std::ranges::count(bytes, '\n'));
    return fmt::format("a tiktoken file of byte pair encoding, as Llama 3 calls its tokenizer.model ({})",
                       pieces_text(lines));
  }
  const nlohmann::json json = parse_json(bytes);
  if (!json.is_structured()) return {};
  const bool tokenizer = json.is_object() && json.contains("model") && json.at("model").is_object();
  return tokenizer ? "a Hugging Face tokenizer.json" : "a JSON file";
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
