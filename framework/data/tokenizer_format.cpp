#include "framework/data/tokenizer_format.h"

#include <algorithm>
#include <cctype>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/data/shard.h"

namespace mulligan {
namespace {

constexpr const char* kOtherModel =
    "mulligan reads SentencePiece models alone: name the tokenizer.model of a model that has one, or leave --tokenizer "
    "out, and 'mulligan prepare' trains one on your text (--vocab-size)";

std::string pieces_text(std::size_t pieces) {
  return pieces <= static_cast<std::size_t>(kMaxVocabulary)
             ? fmt::format("{} pieces", pieces)
             : fmt::format("{} pieces, and shards hold at most {}", pieces, kMaxVocabulary);
}

// Lines of a base64 text and a rank, as of tiktoken.
std::size_t ranked_lines(std::string_view bytes) {
  constexpr std::size_t judged = 16;
  const auto is_base64 = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/' || c == '=';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string_view rest = bytes;
  std::size_t lines = 0;
  for (; lines < judged && !rest.empty(); ++lines) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return 0;
    if (!std::ranges::all_of(line.substr(0, space), is_base64)) return 0;
    if (!std::ranges::all_of(line.substr(space + 1), is_digit)) return 0;
  }
  return lines < 2 ? 0 : lines + static_cast<std::size_t>(std::ranges::count(rest, '\n'));
}

std::string json_format(std::string_view bytes) {
  const nlohmann::json json = parse_json(bytes);
  if (!json.is_object()) return {};
  if (const auto model = json.find("model"); model != json.end() && model->is_object()) {
    const auto type = model->find("type");
    const auto vocabulary = model->find("vocab");
    return fmt::format("a Hugging Face tokenizer.json ({}{}); {}",
                       type != model->end() && type->is_string() ? type->get<std::string>() : "model",
                       vocabulary == model->end() ? "" : ", " + pieces_text(vocabulary->size()), kOtherModel);
  }
  if (json.contains("tokenizer_class") || json.contains("added_tokens_decoder"))
    return fmt::format("a Hugging Face tokenizer_config.json; {}", kOtherModel);
  if (!json.empty() &&
      std::ranges::all_of(json, [](const nlohmann::json& id) { return id.is_number_integer(); }))
    return fmt::format("a vocab.json of byte pair encoding ({}); {}", pieces_text(json.size()), kOtherModel);
  return fmt::format("a JSON file; {}", kOtherModel);
}

}  // namespace

std::string foreign_tokenizer_format(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr const char* download = "download the file itself again";
  if (bytes.starts_with("version https://git-lfs"))
    return "a pointer of Git LFS and not the file; fetch that with 'git lfs pull'";
  if (bytes.starts_with("<!DOCTYPE") || bytes.starts_with("<!doctype") || bytes.starts_with("<html"))
    return fmt::format("a web page; {}", download);
  if (bytes.starts_with("\x1F\x8B")) return "compressed with gzip; unpack it with gunzip";
  if (bytes.starts_with("\x28\xB5\x2F\xFD")) return "compressed with zstd; unpack it with unzstd";
  if (bytes.starts_with("PK\x03\x04")) return "a zip archive; unpack it, and name the model in it";
  if (bytes.starts_with("GGUF")) return fmt::format("a GGUF file; {}", kOtherModel);
  if (bytes.starts_with("#version"))
    return fmt::format("a merges.txt of byte pair encoding; {}", kOtherModel);
  if (const std::size_t pieces = ranked_lines(bytes)) {
    return fmt::format("a tiktoken file of byte pair encoding, as Llama 3 calls its tokenizer.model ({}); {}",
                       pieces_text(pieces), kOtherModel);
  }
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') return json_format(bytes);
  return {};
}

}  // namespace mulligan
