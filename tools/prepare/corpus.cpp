#include "tools/prepare/corpus.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"
#include "framework/core/sha256.h"
#include "framework/core/utf8.h"

namespace mulligan {
namespace {

std::string digest_of(const std::string& text) {
  Sha256 hash;
  hash.update(text);
  return hash.digest().substr(0, 15);
}

// Names the first line without a text.
void require_good_lines(const TextSource& source, const std::vector<std::string>& problems) {
  if (source.rules().skip_bad_lines) return;
  const auto is_bad = [](const std::string& problem) { return !problem.empty(); };
  const auto bad = std::ranges::find_if(problems, is_bad);
  if (bad == problems.end()) return;
  throw data_error(
      "{}: {} (lines without a text: {}); correct or remove such lines, or leave them out with --skip-bad-lines",
      source.name(static_cast<std::size_t>(bad - problems.begin())), *bad,
      std::ranges::count_if(problems, is_bad));
}

}  // namespace

Corpus::Corpus(const PrepareOptions& options)
    : inputs_(options.inputs, options.text), validation_inputs_(options.validation_inputs, options.text) {
  manifest.text.cleaned = options.text.clean;
  std::vector<CorpusDocument> documents = catalogue(inputs_, options);
  data_error_if(
      documents.empty(),
      "the inputs hold no text document; give a folder of text files, text files or JSONL documents");
  if (options.validation_inputs.empty()) {
    split_by_digest(std::move(documents), options);
  } else {
    take_separate_inputs(std::move(documents), catalogue(validation_inputs_, options), options.drop_overlap);
  }
  if (options.shuffle) {
    std::ranges::sort(train, {}, &CorpusDocument::digest);
    std::ranges::sort(validation, {}, &CorpusDocument::digest);
  }
}

// Digests all documents in parallel and keeps the first of equal ones, in the source's order.
std::vector<CorpusDocument> Corpus::catalogue(const TextSource& source, const PrepareOptions& options) {
  const TextRules& rules = source.rules();
  struct Look {
    bool binary = false, cleaned = false, odd = false;
  };
  std::vector<CorpusDocument> all(source.size());
  std::vector<Look> looks(source.size());
  std::vector<std::string> problems(source.size());
  if (options.phase) options.phase("reading", "documents", static_cast<double>(all.size()));
  parallel_for(all.size(), options.threads, [&](std::size_t i) {
    if (options.advance) options.advance(1);
    JsonLine read = source.read(i);
    problems[i] = std::move(read.problem);
    const std::string& raw = read.text;
    const std::string text = rules.clean ? clean_text(raw) : std::string();
    const std::string& used = rules.clean ? text : raw;
    const bool binary = raw.find('\0') != std::string::npos;
    looks[i] = {binary, used != raw, !binary && !is_utf8(used)};
    all[i] = {&source, i, digest_of(used), used.size(), raw.size()};
  });
  if (options.phase) options.phase("", "", 0);
  require_good_lines(source, problems);
  note_files(source);
  std::vector<CorpusDocument> kept;
  std::map<std::string, std::size_t> seen;
  for (const CorpusDocument& document : all) {
    const std::size_t i = document.index;
    const auto note = [&](std::string what) { changes.push_back({document.name(), std::move(what)}); };
    if (!problems[i].empty()) {
      ++manifest.text.bad_lines_dropped;
      note("left out: " + problems[i]);
    } else if (looks[i].binary && (rules.skip_binary || rules.clean)) {
      ++manifest.text.binary_dropped;
      note("left out: it holds a NUL byte");
    } else if (document.bytes == 0) {
      ++manifest.empty_dropped;
      note(document.source_bytes == 0 ? "left out: it is empty" : "left out: cleaning left nothing of it");
    } else if (const auto [twin, fresh] = seen.emplace(document.digest, i); !fresh) {
      ++manifest.duplicates_dropped;
      note("left out: it equals " + source.name(twin->second));
    } else {
      if (looks[i].cleaned) {
        ++manifest.text.documents_cleaned;
        note(fmt::format("cleaned: {} bytes became {}", document.source_bytes, document.bytes));
      }
      if (looks[i].binary) ++manifest.text.documents_with_nul;
      if (looks[i].odd) remarks.emplace_back(document.name(), TextForm::other_bytes);
      kept.push_back(document);
    }
  }
  return kept;
}

// How the inputs were read, and what of them was not.
void Corpus::note_files(const TextSource& source) {
  const TextFiles& found = source.found();
  for (const auto& path : found.hidden) changes.push_back({path.string(), "left out: its name is hidden"});
  for (const auto& [path, reason] : found.left_out) changes.push_back({path.string(), "left out: " + reason});
  manifest.text.hidden_left_out += found.hidden.size();
  manifest.text.paths_left_out += found.left_out.size();
  manifest.text.links_followed += found.links;
  const TextSource::ReadAs& read_as = source.read_as();
  manifest.text.plain_files += read_as.plain_files;
  manifest.text.json_files += read_as.json_files;
  manifest.text.json_lines += read_as.json_lines;
  manifest.text.json_by_contents += read_as.json_by_contents;
  remarks.insert(remarks.end(), read_as.remarks.begin(), read_as.remarks.end());
}

void Corpus::split_by_digest(std::vector<CorpusDocument> documents, const PrepareOptions& options) {
  const char* text_used = options.text.clean ? "cleaned text" : "text";
  data_error_if(
      documents.size() == 1 && !remarks.empty() && remarks.front().second == TextForm::json_collection,
      "'{}' is a JSON array and would be one document; make one line of each element with: jq -c '.[]' FILE > "
      "FILE.jsonl",
      documents[0].name());
  data_error_if(
      documents.size() == 1,
      "the inputs hold one document, '{}', which cannot be divided into training and validation; give "
      "validation documents of their own with --validation, or the text as several files or JSONL lines",
      documents[0].name());
  std::vector<std::string> digests;
  for (const CorpusDocument& document : documents) digests.push_back(document.digest);
  std::ranges::sort(digests);
  std::size_t held = 0;  // for validation, those with the smallest digests
  if (options.validation_documents > 0) {
    held = static_cast<std::size_t>(options.validation_documents);
    data_error_if(
        held >= documents.size(),
        "{} validation documents were asked for, but there are only {} different documents in all; ask "
        "for fewer or give more text",
        held, documents.size());
    manifest.split_rule =
        fmt::format("validation: the {} documents with the smallest sha256 of the {}", held, text_used);
  } else {
    config_error_if(!(options.validation_fraction > 0.0 && options.validation_fraction < 1.0),
                    "a validation fraction of {} is not possible; give a number above 0 and below 1",
                    options.validation_fraction);
    const auto first_bytes = static_cast<std::uint64_t>(std::ldexp(options.validation_fraction, 64));
    std::string limit;
    for (int shift = 56; shift >= 0; shift -= 8) limit += static_cast<char>(first_bytes >> shift);
    manifest.split_rule =
        fmt::format("validation: documents whose sha256 of the {}, read as a fraction, is below {}",
                    text_used, options.validation_fraction);
    // Neither side is empty.
    held = static_cast<std::size_t>(std::ranges::lower_bound(digests, limit) - digests.begin());
    if (held == 0) manifest.split_rule += "; there is none, so that the one with the smallest sha256 is";
    if (held == digests.size())
      manifest.split_rule += "; these were all, so that the one with the largest sha256 is not";
    held = std::clamp<std::size_t>(held, 1, digests.size() - 1);
  }
  for (CorpusDocument& document : documents) {
    (document.digest < digests[held] ? validation : train).push_back(document);
  }
}

void Corpus::take_separate_inputs(std::vector<CorpusDocument> training, std::vector<CorpusDocument> scored,
                                  bool drop_shared) {
  data_error_if(scored.empty(),
                "the validation inputs hold no text document; give some or divide the inputs");
  std::map<std::string, std::string> held;
  for (const CorpusDocument& document : scored) held.emplace(document.digest, document.name());
  std::size_t shared = 0;
  std::string example;
  std::erase_if(training, [&](const CorpusDocument& document) {
    const auto twin = held.find(document.digest);
    if (twin == held.end()) return false;
    if (shared++ == 0) example = fmt::format("'{}' equals '{}'", twin->second, document.name());
    changes.push_back({document.name(), "left out: it is a validation document"});
    return true;
  });
  data_error_if(
      shared > 0 && !drop_shared,
      "{} validation documents are also training documents (for example {}); remove them from one side, or leave "
      "them out of training with --drop-overlap",
      shared, example);
  manifest.duplicates_dropped += shared;
  data_error_if(training.empty(), "all training documents are validation documents; give others");
  train = std::move(training);
  validation = std::move(scored);
  manifest.split_rule = "validation: inputs of its own, checked to share no document with training";
}

}  // namespace mulligan
