#include "framework/data/tokenizer_format.h"

#include <algorithm>
#include <cctype>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/core/utf8.h"
#include "framework/data/shard.h"
#include "framework/data/text_files.h"

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

// A text, which a model in binary is not.
std::string text_format(std::string_view bytes) {
  const auto is_control = [](char c) { return c >= 0 && c < 0x20 && c != '\t' && c != '\n' && c != '\r'; };
  if (bytes.empty() || std::ranges::any_of(bytes, is_control) || !is_utf8(bytes)) return {};
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const std::size_t tab = line.find('\t');
  if (tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos)
    return "the list of pieces that SentencePiece writes next to its model; name the model itself";
  return fmt::format("a text of {} lines, such as the vocab.txt of WordPiece; {}",
                     std::ranges::count(bytes, '\n'), kOtherModel);
}

std::string json_format(std::string_view bytes) {
  const nlohmann::json json = parse_json(bytes);
  if (json.is_array()) return fmt::format("a JSON file; {}", kOtherModel);
  if (!json.is_object()) return {};
  if (const auto pieces = json.find("vocab"); pieces != json.end() && pieces->is_array())
    return fmt::format("a tekken.json ({}); {}", pieces_text(pieces->size()), kOtherModel);
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
  if (const OtherContents packed = signed_contents(bytes); !packed.shown.empty()) {
    return fmt::format("{}; unpack it with `{}`, and name the model in it", packed.shown,
                       fmt::format(fmt::runtime(packed.command), "FILE", "OUTPUT"));
  }
  if (bytes.starts_with("GGUF")) return fmt::format("a GGUF file; {}", kOtherModel);
  if (bytes.starts_with("#version"))
    return fmt::format("a merges.txt of byte pair encoding; {}", kOtherModel);
  if (const std::size_t pieces = ranked_lines(bytes)) {
    return fmt::format("a tiktoken file of byte pair encoding, as Llama 3 calls its tokenizer.model ({}); {}",
                       pieces_text(pieces), kOtherModel);
  }
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[')) {
    if (std::string format = json_format(bytes); !format.empty()) return format;
  }
  if (bytes.starts_with("\x80\x02") || bytes.starts_with("\x80\x04"))
    return fmt::format("a file of Python's pickle; {}", kOtherModel);
  if (bytes.size() > 8 && bytes[8] == '{' && bytes.substr(4, 4) == "\0\0\0\0"sv)
    return fmt::format("a file of tensors (safetensors); {}", kOtherModel);
  return text_format(bytes);
}

}  // namespace mulligan
