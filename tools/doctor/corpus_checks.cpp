#include "tools/doctor/corpus_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "framework/core/printable.h"
#include "framework/data/shard.h"

namespace mulligan::doctor {
namespace {

constexpr double none = std::numeric_limits<double>::infinity();
constexpr const char* look_at_prepare =
    "decode some documents of the shards (mulligan prepare --check, generate) "
    "and prepare the data again with the tokenizer that the model was made for";

Finding finding_of(const char* id, const Corpus& corpus, const char* title) {
  Finding finding;
  finding.id = id;
  finding.title = fmt::format("{}, {} data", title, corpus.name);
  return finding;
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
  f.verdict = Verdict::fail;
  f.message = fmt::format("{} data hold tokens that a model of {} tokens has no embedding for", corpus.name,
                          vocabulary);
  f.hint = "set model.vocabulary to the tokenizer's, or name shards of this tokenizer";
  return f;
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
  f.verdict = judge(found, spells_all ? Limits{-none, 0, -none, 0} : Limits{-none, 1e-2, -none, 1e-4});
  if (f.verdict == Verdict::pass) return f;
  f.message = fmt::format("{} of the {} tokens are token {}", percent(found), corpus.name,
                          token_name(unknown, &tokenizer));
  f.hint = look_at_prepare;
  return f;
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
  f.verdict = judge(bits, {least, most + 1e-9, doubtful, none});
  if (f.verdict == Verdict::pass) return f;
  f.message = fmt::format(
      "token ids of the {} data carry {:.5f} bits: they say next to nothing, and a loss near 0 on "
      "them is no achievement",
      corpus.name, bits);
  f.hint = look_at_prepare;
  return f;
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
  f.verdict = few ? Verdict::fail : judge(s.commonest_share, {-none, 0.30, -none, none});
  if (f.verdict == Verdict::pass) return f;
  f.message = few ? fmt::format("only {} different tokens occur in the {} data", s.distinct, corpus.name)
                  : fmt::format("{} of the {} data are token {}", percent(s.commonest_share), corpus.name,
                                token_name(s.commonest, tokenizer));
  f.hint = look_at_prepare;
  return f;
}

}  // namespace

std::vector<Finding> check_corpus(const Corpus& corpus, int vocabulary, const Tokenizer* tokenizer) {
  std::vector<Finding> findings = {ids_in_range(corpus, vocabulary)};
  if (tokenizer) findings.push_back(unknown_tokens(corpus, *tokenizer));
  findings.push_back(unigram_entropy(corpus, vocabulary));
  findings.push_back(commonest_token(corpus, vocabulary, tokenizer));
  return findings;
}

Finding check_overlap(const TextOverlap& overlap) {
  Finding f;
  f.id = "D25";
  f.title = "validation text in the training data";
  f.measured = overlap.text();
  f.threshold = fmt::format(
      "fails above {} as it is, {} with changes or {} of the training data; warns above a fifth of these",
      percent(TextOverlap::copied_limit), percent(TextOverlap::similar_limit),
      percent(TextOverlap::training_limit));
  const std::string excess = overlap.excess(), doubtful = overlap.excess(0.2);
  if (doubtful.empty()) return f;
  f.verdict = excess.empty() ? Verdict::warn : Verdict::fail;
  f.message = excess.empty() ? doubtful : excess;
  f.hint =
      "prepare the documents anew with mulligan prepare --drop-overlap, which leaves training "
      "documents out that share a passage with a validation document, or say so beside every score";
  return f;
}

std::vector<Finding> check_shards_as_corpus(const std::vector<std::filesystem::path>& training,
                                            const std::vector<std::filesystem::path>& validation,
                                            int vocabulary, const Tokenizer* tokenizer,
                                            std::uint64_t budget) {
  std::vector<Finding> findings;
  std::vector<std::vector<std::uint16_t>> sides[2];
  const char* names[2] = {"training", "validation"};
  for (int side = 0; side < 2; ++side) {
    sides[side] = sample_tokens(side == 0 ? training : validation, budget);
    if (sides[side].empty()) continue;
    const Corpus corpus{names[side], token_statistics(sides[side], vocabulary)};
    std::ranges::move(check_corpus(corpus, vocabulary, tokenizer), std::back_inserter(findings));
  }
  if (!sides[0].empty() && !sides[1].empty())
    findings.push_back(check_overlap(measure_text_overlap(training, validation, tokenizer)));
  return findings;
}

}  // namespace mulligan::doctor
