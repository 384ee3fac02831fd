#include "tools/prepare/tokenizer_training.h"

#include <sentencepiece_trainer.h>

#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <unordered_map>

#include "framework/core/error.h"
#include "framework/data/exact_encoding.h"
#include "framework/data/shard.h"

namespace mulligan {
namespace {

// SentencePiece skips texts longer than its limit. So documents are passed in pieces below this size, cut at white space;
// hardly any piece of the vocabulary crosses white space.
constexpr std::size_t kSentenceBytes = 8192;

// SentencePiece leaves every sentence out that holds its mark for rare characters, "▅".
constexpr std::string_view kReserved = "\xE2\x96\x85";

// Feeds documents to SentencePiece as sentences, without what no piece can spell: bytes that are written as
// bytes (exact_encoding.h), and the reserved character.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const TextStream& texts) : texts_(texts) { Next(); }
  bool done() const override { return done_; }
  const std::string& value() const override { return sentence_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    // Nothing but white space is not a sentence.
    do {
      if (!find_stretch()) {
        done_ = true;
        return;
      }
      std::size_t length = stretch_.size();
      if (length > kSentenceBytes) {
        const std::size_t space = stretch_.find_last_of(" \n", kSentenceBytes);
        length = space == std::string_view::npos || space == 0 ? character_end(kSentenceBytes) : space;
      }
      sentence_ = stretch_.substr(0, length);
      stretch_.remove_prefix(length);
    } while (sentence_.find_first_not_of(" \n") == std::string::npos);
  }

 private:
  // Makes stretch_ the next text between bytes and reserved characters; false at the end.
  bool find_stretch() {
    while (stretch_.empty()) {
      if (rest_.empty()) {
        std::optional<std::string> text = texts_();
        if (!text) return false;
        document_ = std::move(*text);
        rest_ = document_;
        continue;
      }
      const TextStretch next = first_stretch(rest_, false);
      const std::size_t reserved = next.as_bytes ? std::string_view::npos : next.text.find(kReserved);
      if (!next.as_bytes) stretch_ = next.text.substr(0, reserved);
      const bool cut = reserved != std::string_view::npos;
      rest_.remove_prefix(cut ? reserved + kReserved.size() : next.text.size());
    }
    return true;
  }

  // The last character boundary at or before `position`.
  std::size_t character_end(std::size_t position) const {
    while (position > 1 && (static_cast<unsigned char>(stretch_[position]) & 0xC0u) == 0x80u) --position;
    return position;
  }

  const TextStream& texts_;
  std::string document_;
  std::string_view rest_;     // of the document
  std::string_view stretch_;  // of it, not yet handed over
  std::string sentence_;
  bool done_ = false;
};

// What SentencePiece's refusals mean to a user; any other message as it is.
std::string explained(const std::string& message) {
  const auto number_after = [&](const char* mark) {
    const std::size_t at = message.find(mark);
    return at == message.npos ? 0 : std::atol(message.c_str() + at + std::strlen(mark));
  };
  const long most = number_after("set it to a value <= "), least = number_after(" vs ");
  if (most > 0) {
    return fmt::format(
        "the texts hold enough different words for {} pieces at most; ask for fewer or give more text", most);
  }
  if (least > 0) {
    return fmt::format(
        "the 256 byte pieces and the characters of the texts alone are {} pieces; ask for at least as many",
        least);
  }
  return message;
}

}  // namespace

std::string train_tokenizer(const TextStream& texts, int vocab_size, const std::string& normalization,
                            const std::vector<std::string>& symbols, const std::string& required) {
  static const std::set<std::string> rewriting{"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"};
  const bool identity = normalization == kIdentity;
  config_error_if(!identity && !rewriting.contains(normalization),
                  "there is no normalisation '{}'; give {} or {}", normalization, kIdentity,
                  fmt::join(rewriting, ", "));
  config_error_if(vocab_size < 1 || vocab_size > kMaxVocabulary,
                  "a vocabulary of {} is not possible: shards hold ids in 16 bits, so give 1 to {}",
                  vocab_size, kMaxVocabulary);
  std::unordered_map<std::string, std::string> settings{
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocab_size)},
      {"hard_vocab_limit", "true"},
      {"character_coverage", "0.999"},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"normalization_rule_name", normalization},
      {"remove_extra_whitespaces", identity ? "false" : "true"},
      {"allow_whitespace_only_pieces", identity ? "true" : "false"},
      {"add_dummy_prefix", "false"},
      {"pad_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"unk_id", "3"},
      {"max_sentence_length", std::to_string(2 * kSentenceBytes)},
      {"input_sentence_size", "0"},  // no random sampling: the caller chooses the texts
      {"num_threads", "8"},          // the model file records it, so it may not depend on the machine
      {"minloglevel", "2"},
      {"user_defined_symbols", fmt::format("{}", fmt::join(symbols, ","))},
  };
  if (!required.empty()) settings["required_chars"] = required;
  Sentences sentences(texts);
  data_error_if(sentences.done(), "there is no text to train a tokenizer on; give documents");
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  if (!status.ok()) {
    throw VocabularyRefused(ExitCode::bad_data, fmt::format("a tokenizer of {} pieces cannot be trained: {}",
                                                            vocab_size, explained(status.error_message())));
  }
  return model;
}

}  // namespace mulligan
