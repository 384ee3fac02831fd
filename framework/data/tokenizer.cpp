#include "framework/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <array>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/exact_encoding.h"
#include "framework/data/shard.h"

namespace mulligan {

struct Tokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
  std::string origin;
  std::string sha256;
  bool keeps_text = false;
  std::array<int, 256> byte_ids{};  // of the byte pieces; meaningless unless keeps_text
  SafeCuts cuts;

  // How text is handed over; see exact_encoding.h.
  void learn_rules(const std::string& model_bytes) {
    const ModelRules rules = model_rules(model_bytes);
    keeps_text = rules.keeps_text;
    for (std::size_t byte = 0; byte < byte_ids.size(); ++byte) {
      byte_ids[byte] = processor.PieceToId(fmt::format("<0x{:02X}>", byte));
      keeps_text = keeps_text && processor.IsByte(byte_ids[byte]);
    }
    if (!keeps_text || !rules.pair_merges) return;
    for (int id = 0; id < processor.GetPieceSize(); ++id) {
      if (!processor.IsByte(id) && !processor.IsControl(id)) cuts.add_piece(processor.IdToPiece(id));
    }
  }

  // SentencePiece's own encoding, appended to `ids`.
  void encode(std::string_view text, std::vector<int>& ids) const {
    std::vector<int> more;
    const auto status = processor.Encode(text, &more);
    if (!status.ok()) throw data_error("tokenizer '{}' cannot encode a text: {}", origin, status.ToString());
    ids.insert(ids.end(), more.begin(), more.end());
  }
};

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  if (std::error_code failed; !std::filesystem::exists(path, failed) && !failed) {
    throw data_error(
        "there is no tokenizer '{}'; 'mulligan prepare TEXT --out {}' makes it "
        "with the shards, or set data.tokenizer to the file that belongs to yours",
        path.string(), path.has_parent_path() ? path.parent_path().string() : ".");
  }
  return from_bytes(read_file(path), path.string());
}

Tokenizer Tokenizer::from_bytes(const std::string& model_bytes, const std::string& origin) {
  auto model = std::make_shared<Model>();
  model->origin = origin;
  model->sha256 = sha256_hex(model_bytes);
  if (const std::string format = foreign_tokenizer_format(model_bytes); !format.empty())
    throw data_error("'{}' is not a SentencePiece model, but {}", origin, format);
  // An empty message parses as an empty protobuf, which SentencePiece accepts and then dereferences.
  const std::string problem = model_bytes.empty() ? "the file is empty" : character_map_problem(model_bytes);
  const auto status = problem.empty()
                          ? model->processor.LoadFromSerializedProto(model_bytes)
                          : sentencepiece::util::Status(sentencepiece::util::StatusCode::kDataLoss, problem);
  data_error_if(!status.ok() || model->processor.GetPieceSize() == 0,
                "'{}' is not a SentencePiece model ({}); give the tokenizer that wrote the shards", origin,
                status.ok() ? "it has no pieces" : status.error_message());
  model->learn_rules(model_bytes);
  return Tokenizer(std::move(model));
}

const std::string& Tokenizer::sha256() const {
  return model_->sha256;
}
int Tokenizer::vocab_size() const {
  return model_->processor.GetPieceSize();
}
int Tokenizer::bos_id() const {
  return model_->processor.bos_id();
}

int Tokenizer::find(std::string_view text) const {
  const int id = model_->processor.PieceToId(text);
  return model_->processor.IdToPiece(id) == text ? id : -1;
}

const std::string& Tokenizer::piece(int id) const {
  return model_->processor.IdToPiece(id);
}
float Tokenizer::score(int id) const {
  return model_->processor.GetScore(id);
}
bool Tokenizer::is_byte(int id) const {
  return model_->processor.IsByte(id);
}

bool Tokenizer::is_textless(int id) const {
  const auto& processor = model_->processor;
  return processor.IsControl(id) || processor.IsUnknown(id) || processor.IsUnused(id);
}

bool Tokenizer::keeps_text() const {
  return model_->keeps_text;
}

std::vector<int> Tokenizer::encode(std::string_view text) const {
  return encode_part(text, true);
}

std::size_t Tokenizer::cut_after(std::string_view text, std::size_t position) const {
  return model_->cuts.at_or_after(text, position);
}

std::vector<int> Tokenizer::encode_part(std::string_view part, bool at_start) const {
  // SentencePiece's time per byte grows with the length of what it is given, fivefold at 30 MB.
  constexpr std::size_t kLongest = 1 << 14;
  std::vector<int> ids;
  if (!model_->keeps_text) {
    model_->encode(part, ids);
    return ids;
  }
  while (!part.empty()) {
    const TextStretch stretch = first_stretch(part, at_start);
    at_start = false;
    part.remove_prefix(stretch.text.size());
    if (stretch.as_bytes) {
      for (const char byte : stretch.text) ids.push_back(model_->byte_ids[static_cast<unsigned char>(byte)]);
      continue;
    }
    for (std::string_view rest = stretch.text; !rest.empty();) {
      const std::size_t length = cut_after(rest, kLongest);
      model_->encode(rest.substr(0, length), ids);
      rest.remove_prefix(length);
    }
  }
  return ids;
}

std::vector<Tokenizer::Slice> Tokenizer::encode_slices(std::string_view text) const {
  std::vector<Slice> slices;
  if (!model_->keeps_text) {
    const auto encoded = model_->processor.EncodeAsImmutableProto(text);
    for (const auto& piece : encoded.pieces())
      slices.push_back({static_cast<int>(piece.id()), piece.begin(), piece.end()});
    return slices;
  }
  // Exact encoding: each piece spells its own part of the text.
  std::size_t end = 0;
  for (const int id : encode(text)) {
    const std::size_t begin = end;
    end += text_of(id).size();
    slices.push_back({id, begin, end});
  }
  return slices;
}

std::string Tokenizer::decode(const std::vector<int>& ids) const {
  std::string text;
  const auto status = model_->processor.Decode(ids, &text);
  if (!status.ok())
    throw data_error("tokenizer '{}' cannot decode tokens: {}", model_->origin, status.ToString());
  return text;
}

std::string Tokenizer::text_of(int id) const {
  if (is_textless(id)) return {};
  std::string text = piece(id);
  if (is_byte(id))
    return {static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16))};  // the piece reads <0xNN>
  for (std::size_t at = 0; (at = text.find(kSpaceMark, at)) != std::string::npos; ++at)
    text.replace(at, kSpaceMark.size(), " ");
  return text;
}

std::string Tokenizer::document_text(std::span<const std::uint16_t> ids) const {
  std::string text;
  bool after_text = false;
  for (const int id : ids) {
    const bool drops_space = !after_text && piece(id).starts_with(kSpaceMark);
    after_text = !is_textless(id);
    text += text_of(id).substr(drops_space && after_text ? 1 : 0);
  }
  return text;
}

void require_usable(const Tokenizer& tokenizer, const std::string& origin) {
  data_error_if(
      tokenizer.vocab_size() > kMaxVocabulary,
      "tokenizer '{}' has {} pieces, more than the {} that 16-bit shards can hold; use a smaller one", origin,
      tokenizer.vocab_size(), kMaxVocabulary);
  data_error_if(
      tokenizer.bos_id() < 0,
      "tokenizer '{}' has no BOS piece, so documents could not be told apart; use one trained with it",
      origin);
  data_error_if(
      tokenizer.find(kSpaceMark) < 0,
      "tokenizer '{}' has no standalone space piece '▁', so bytes could not be counted; use another", origin);
}

}  // namespace mulligan
