#include "tools/doctor/corpus_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/printable.h"
#include "framework/data/documents.h"
#include "framework/data/shard.h"
#include "tools/doctor/movement.h"

namespace mulligan::doctor {
namespace {

const std::vector<std::pair<const char*, std::string>> classes = {
    {"ASCII", "The quick brown fox, 3.14 of {them}; jumps over\n\tthe lazy dog & back!"},
    {"Latin-1",
     "Stra\xC3\x9F"
     "e, na\xC3\xAFve caf\xC3\xA9, \xC2\xBFqu\xC3\xA9?"},
    {"CJK",
     "\xE4\xBB\x8A\xE5\xA4\xA9\xE5\xA4\xA9\xE6\xB0\x94\xE3\x81\xA7\xE3\x81\x99\xED\x95\x9C\xEA\xB8\x80"},
    {"emoji", "\xF0\x9F\x98\x80 and \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC"},
    {"mathematics",
     "\xE2\x88\x91\xE2\x82\x99 x\xC2\xB2 \xE2\x89\xA4 \xE2\x88\x9A\xCF\x80 \xE2\x88\xAB\xE2\x88\x9E"},
};
// How byte-level vocabularies spell the space and the line feed: U+0120, U+010A.
constexpr const char* byte_level_space = "\xC4\xA0";
constexpr const char* byte_level_line = "\xC4\x8A";

std::size_t unknown_among(const Tokenizer& tokenizer, const std::vector<int>& ids) {
  const int unknown = tokenizer.find("<unk>");
  return static_cast<std::size_t>(
      std::ranges::count_if(ids, [&](int id) { return id == unknown && tokenizer.is_textless(id); }));
}

}  // namespace

Finding check_tokenizer(const Tokenizer& tokenizer) {
  Finding f = begin_finding(
      "D24", "text through the tokenizer and back",
      "any unknown token or loss fails; warns where the tokenizer's own normalisation changes text");
  std::vector<std::string> lossy, changed;
  std::size_t unknown = 0;
  for (const auto& [name, text] : classes) {
    const std::vector<int> ids = tokenizer.encode(text);
    const std::size_t strangers = unknown_among(tokenizer, ids);
    unknown += strangers;
    const std::vector<std::uint16_t> stored(ids.begin(), ids.end());
    const bool same =
        tokenizer.keeps_text() ? tokenizer.document_text(stored) == text : tokenizer.decode(ids) == text;
    if (same && strangers == 0) continue;
    (tokenizer.keeps_text() || strangers > 0 ? lossy : changed).emplace_back(name);
  }
  int bytes = 0, byte_level = 0;
  for (int id = 0; id < tokenizer.vocab_size(); ++id) {
    bytes += tokenizer.is_byte(id);
    byte_level +=
        tokenizer.piece(id).starts_with(byte_level_space) || tokenizer.piece(id).starts_with(byte_level_line);
  }
  f.measured = fmt::format("{} of {} classes of text kept, {} unknown tokens, {} byte pieces",
                           classes.size() - lossy.size() - changed.size(), classes.size(), unknown, bytes);
  const auto note = [&](bool found, CheckOutcome verdict, const std::string& message) {
    if (found)
      f.note(
          verdict, message,
          "train a tokenizer with byte fallback and without normalisation (mulligan prepare does), or name the data's own");
  };
  note(
      byte_level * 20 > tokenizer.vocab_size(), CheckOutcome::fail,
      fmt::format(
          "{} of {} pieces begin with GPT-2's letter for a space: a byte-level vocabulary is taken for another "
          "kind",
          byte_level, tokenizer.vocab_size()));
  note(bytes != 0 && bytes != 256, CheckOutcome::fail,
       fmt::format("the tokenizer has {} of the 256 byte pieces", bytes));
  note(!lossy.empty(), CheckOutcome::fail,
       fmt::format("the tokenizer loses text: {}", fmt::join(lossy, ", ")));
  note(!changed.empty(), CheckOutcome::warn,
       fmt::format("the tokenizer's normalisation changes text: {}", fmt::join(changed, ", ")));
  return f;
}

namespace {

constexpr const char* look_at_prepare =
    "decode some documents of the shards (mulligan prepare --check, generate) "
    "and prepare the data again with the tokenizer that the model was made for";

Finding finding_of(const char* id, const Corpus& corpus, const char* title) {
  return begin_finding(id, fmt::format("{}, {} data", title, corpus.name), "");
}

std::string percent(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}

std::string token_name(int id, const Tokenizer* tokenizer) {
  if (!tokenizer || id >= tokenizer->vocab_size()) return fmt::format("{}", id);
  return fmt::format("{} ({})", id, printable(tokenizer->piece(id)));
}

// D20
Finding ids_in_range(const Corpus& corpus, int vocabulary) {
  Finding f = finding_of("D20", corpus, "token ids");
  f.measured = fmt::format("{} of {} tokens outside of [0, {})", corpus.statistics.outside,
                           corpus.statistics.tokens, vocabulary);
  f.threshold = "any fails";
  if (corpus.statistics.outside == 0) return f;
  return failed(std::move(f),
                fmt::format("{} data hold tokens that a model of {} tokens has no embedding for", corpus.name,
                            vocabulary),
                "set model.vocabulary to the tokenizer's, or name shards of this tokenizer");
}

// D21
Finding unknown_tokens(const Corpus& corpus, const Tokenizer& tokenizer) {
  Finding f = finding_of("D21", corpus, "unknown tokens");
  const int unknown = tokenizer.find("<unk>");
  const auto& share = corpus.statistics.share;
  const double found = unknown >= 0 && static_cast<std::size_t>(unknown) < share.size()
                           ? share[static_cast<std::size_t>(unknown)]
                           : 0;
  f.measured = percent(found);
  // A tokenizer with byte pieces can spell everything: there any unknown token is a mistake.
  const bool spells_all = tokenizer.keeps_text();
  f.threshold = spells_all ? "fails above 0: this tokenizer can spell every byte"
                           : "fails above 1 %, warns above 0.01 %";
  return judged(std::move(f),
                judge(found, spells_all ? Limits{-no_limit, 0, -no_limit, 0}
                                        : Limits{-no_limit, 1e-2, -no_limit, 1e-4}),
                fmt::format("{} of the {} tokens are token {}", percent(found), corpus.name,
                            token_name(unknown, &tokenizer)),
                look_at_prepare);
}

// D22. Vocabularies below 1,024 are those of bytes and characters, whose entropy is lower.
Finding unigram_entropy(const Corpus& corpus, int vocabulary) {
  Finding f = finding_of("D22", corpus, "entropy of token ids");
  const double bits = corpus.statistics.unigram_nats / std::numbers::ln2, most = std::log2(vocabulary);
  f.measured = fmt::format("{:.3f} bits ({:.3f} nats); uniform would be {:.3f} bits (ln V = {:.3f} nats)",
                           bits, corpus.statistics.unigram_nats, most, std::log(vocabulary));
  const bool words = vocabulary >= 1024;
  const double least = words ? std::max(3.0, 0.25 * most) : std::min(2.0, 0.5 * most);
  const double doubtful = words ? std::max(3.0, 0.4 * most) : least;
  f.threshold =
      fmt::format("fails below {:.2f} bits, warns below {:.2f}; fails above uniform", least, doubtful);
  return judged(
      std::move(f), judge(bits, {least, most + 1e-9, doubtful, no_limit}),
      fmt::format(
          "token ids of the {} data carry {:.5f} bits: they say next to nothing, and a loss near 0 on "
          "them is no achievement",
          corpus.name, bits),
      look_at_prepare);
}

// D23
Finding commonest_token(const Corpus& corpus, int vocabulary, const Tokenizer* tokenizer) {
  Finding f = finding_of("D23", corpus, "commonest token");
  const TokenStatistics& s = corpus.statistics;
  const double least = std::min(0.02 * vocabulary, 100.0);
  f.measured = fmt::format("token {} is {}; {} different ones", token_name(s.commonest, tokenizer),
                           percent(s.commonest_share), s.distinct);
  f.threshold = fmt::format("fails above 30 % or below {:.0f} different tokens", std::ceil(least));
  const bool few = static_cast<double>(s.distinct) < least;
  return judged(std::move(f), few ? CheckOutcome::fail : judge(s.commonest_share, {-no_limit, 0.30}),
                few ? fmt::format("only {} different tokens occur in the {} data", s.distinct, corpus.name)
                    : fmt::format("{} of the {} data are token {}", percent(s.commonest_share), corpus.name,
                                  token_name(s.commonest, tokenizer)),
                look_at_prepare);
}

}  // namespace

std::vector<Finding> check_corpus(const Corpus& corpus, int vocabulary, const Tokenizer* tokenizer) {
  std::vector<Finding> findings = {ids_in_range(corpus, vocabulary)};
  if (tokenizer) findings.push_back(unknown_tokens(corpus, *tokenizer));
  findings.push_back(unigram_entropy(corpus, vocabulary));
  findings.push_back(commonest_token(corpus, vocabulary, tokenizer));
  return findings;
}

Finding check_documents(const std::string& name, const std::vector<std::filesystem::path>& shards,
                        int bos_id) {
  Finding f = begin_finding("D41", fmt::format("beginnings of documents, {} data", name),
                            "warns where no shard holds a BOS token");
  const bool begin = documents_begin(shards, bos_id);
  f.measured = fmt::format("{} BOS token ({}) in {} shards", begin ? "a" : "no", bos_id, shards.size());
  if (begin) return f;
  return judged(
      std::move(f), CheckOutcome::warn,
      fmt::format("the {} data hold no BOS token, so their documents run into one another", name),
      "prepare the data anew with BOS in front of each document; test-time training refuses such data");
}

Finding check_overlap(const TextOverlap& overlap) {
  Finding f = begin_finding(
      "D25", "validation text in the training data",
      fmt::format(
          "fails above {} as it is or {} with changes; warns above a fifth of these, and where the text cannot be judged",
          percent(TextOverlap::copied_limit), percent(TextOverlap::similar_limit)));
  f.measured = overlap.text();
  const std::string excess = overlap.excess(), doubtful = overlap.excess(0.2);
  if (!doubtful.empty()) {
    f.note(
        excess.empty() ? CheckOutcome::warn : CheckOutcome::fail, excess.empty() ? doubtful : excess,
        "prepare the documents anew with mulligan prepare --drop-overlap, which leaves training documents out "
        "that share a passage with a validation document, or state the share with every score");
  } else if (overlap.passages == 0) {
    f.note(CheckOutcome::warn, overlap.text(),
           "look at the documents: no passage of them tells whether it was learned");
  }
  return f;
}

SeenData see_data(const DataSides& sides) {
  SeenData seen;
  std::vector<std::vector<std::uint16_t>> samples[2];
  for (const bool trained : {true, false}) {
    const auto& shards = trained ? sides.training : sides.validation;
    auto& sample = samples[trained ? 0 : 1] = sample_tokens(shards, sides.budget);
    if (sample.empty()) continue;
    const Corpus corpus{trained ? "training" : "validation", token_statistics(sample, sides.vocabulary)};
    std::ranges::move(check_corpus(corpus, sides.vocabulary, sides.tokenizer),
                      std::back_inserter(seen.findings));
    if (sides.bos_id >= 0) seen.findings.push_back(check_documents(corpus.name, shards, sides.bos_id));
    seen.bigram_nats = corpus.statistics.bigram_nats;
    seen.unigram_nats = corpus.statistics.unigram_nats;
    if (!trained) continue;
    seen.repeat_share = corpus.statistics.repeat_share;
    seen.shares = corpus.statistics.share;
  }
  if (!samples[0].empty()) seen.findings.push_back(judge_order(pair_order(samples[0], samples[1])));
  return seen;
}

}  // namespace mulligan::doctor
