#include "framework/data/corpus.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"

namespace mulligan {
namespace {

Digest digest_of(const std::string& text) {
  const std::string hex = sha256_hex(text);
  Digest digest;
  std::from_chars(hex.data(), hex.data() + 16, digest.high, 16);
  std::from_chars(hex.data() + 16, hex.data() + 32, digest.low, 16);
  return digest;
}

bool by_digest(const CorpusDocument& a, const CorpusDocument& b) {
  return a.digest < b.digest;
}

}  // namespace

Corpus::Corpus(const PrepareOptions& options)
    : inputs_(options.inputs), validation_inputs_(options.validation_inputs) {
  std::vector<CorpusDocument> documents = catalogue(inputs_, options.threads);
  if (documents.empty()) {
    throw data_error(
        "the inputs hold no text document; give a folder of text files, text files or JSONL documents");
  }
  if (options.validation_inputs.empty()) {
    split_by_digest(std::move(documents), options);
  } else {
    take_separate_inputs(std::move(documents), catalogue(validation_inputs_, options.threads));
  }
  if (options.shuffle) {
    std::sort(train_.begin(), train_.end(), by_digest);
    std::sort(validation_.begin(), validation_.end(), by_digest);
  }
}

// Digests all documents in parallel and keeps the first of equal ones, in the source's order.
std::vector<CorpusDocument> Corpus::catalogue(const TextSource& source, int threads) {
  std::vector<CorpusDocument> all(source.size());
  parallel_for(all.size(), threads, [&](std::size_t i) {
    const std::string text = source.text(i);
    all[i] = {&source, i, digest_of(text), text.size()};
  });
  std::vector<CorpusDocument> kept;
  std::set<Digest> seen;
  for (const CorpusDocument& document : all) {
    if (document.bytes == 0) {
      ++empty_dropped_;
    } else if (!seen.insert(document.digest).second) {
      ++duplicates_dropped_;
    } else {
      kept.push_back(document);
    }
  }
  return kept;
}

void Corpus::split_by_digest(std::vector<CorpusDocument> documents, const PrepareOptions& options) {
  Digest limit;  // validation: digest < limit
  if (options.validation_documents > 0) {
    const auto wanted = static_cast<std::size_t>(options.validation_documents);
    if (wanted >= documents.size()) {
      throw data_error(
          "{} validation documents were asked for, but there are only {} different documents in all; ask "
          "for fewer or give more text",
          wanted, documents.size());
    }
    std::vector<CorpusDocument> sorted = documents;
    std::sort(sorted.begin(), sorted.end(), by_digest);
    limit = sorted[wanted].digest;
    split_rule_ =
        fmt::format("validation: the {} documents with the smallest sha256 of the cleaned text", wanted);
  } else {
    if (!(options.validation_fraction > 0.0 && options.validation_fraction < 1.0)) {
      throw config_error("a validation fraction of {} is not possible; give a number above 0 and below 1",
                         options.validation_fraction);
    }
    limit.high = static_cast<std::uint64_t>(std::ldexp(options.validation_fraction, 64));
    split_rule_ =
        fmt::format("validation: documents whose sha256 of the cleaned text, read as a fraction, is below {}",
                    options.validation_fraction);
  }
  for (CorpusDocument& document : documents) {
    (document.digest < limit ? validation_ : train_).push_back(document);
  }
  if (validation_.empty() || train_.empty()) {
    throw data_error(
        "dividing {} documents left none for {}; change the validation fraction, ask for a number of "
        "validation documents, or give more text",
        documents.size(), validation_.empty() ? "validation" : "training");
  }
}

void Corpus::take_separate_inputs(std::vector<CorpusDocument> train, std::vector<CorpusDocument> validation) {
  if (validation.empty())
    throw data_error("the validation inputs hold no text document; give some or divide the inputs");
  std::map<Digest, const CorpusDocument*> known;
  for (const CorpusDocument& document : train) known.emplace(document.digest, &document);
  std::size_t shared = 0;
  std::string example;
  for (const CorpusDocument& document : validation) {
    const auto twin = known.find(document.digest);
    if (twin == known.end()) continue;
    if (shared++ == 0) {
      example = fmt::format("'{}' equals '{}'", document.source->name(document.index),
                            twin->second->source->name(twin->second->index));
    }
  }
  if (shared > 0) {
    throw data_error(
        "{} validation documents are also training documents (for example {}); remove them from one side",
        shared, example);
  }
  train_ = std::move(train);
  validation_ = std::move(validation);
  split_rule_ = "validation: inputs of its own, checked to share no document with training";
}

}  // namespace mulligan
