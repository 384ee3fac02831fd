#include "tools/prepare/prepare.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/byte_count.h"
#include "framework/data/shard.h"
#include "framework/data/text_overlap.h"
#include "framework/data/text_transform.h"
#include "framework/data/tokenizer.h"
#include "framework/data/transformed_encoding.h"
#include "tools/prepare/corpus.h"
#include "tools/prepare/encode_documents.h"
#include "tools/prepare/output_folder.h"
#include "tools/prepare/tokenizer_training.h"

namespace mulligan {
namespace {

constexpr const char* kModelFile = "tokenizer.model";
constexpr const char* kValidationTextFile = "validation.txt";
constexpr const char* kValidationDocumentsFile = "validation.jsonl";  // under a text transform
constexpr const char* kChangesFile = "changes.jsonl";

// The stages of one preparation.
class Preparation {
 public:
  explicit Preparation(const PrepareOptions& options) : options_(options) {
    config_error_if(
        options.inputs.empty(),
        "prepare needs a text folder, text files or JSONL files to read; name them before --out.");
    config_error_if(options.output.empty(), "prepare needs --out FOLDER for the shards and the manifest.");
    config_error_if(options.tokens_per_shard < 1024 || options.tokens_per_shard > INT32_MAX,
                    "{} tokens per shard is outside 1024..2147483647", options.tokens_per_shard);
    config_error_if(
        options.ablation.any() && !(options.ablation.probability >= 0 && options.ablation.probability <= 1),
        "a probability of {} for taking a symbol is not possible; give a number from 0 to 1",
        options.ablation.probability);
    config_error_if(options.ablation.mode == AblationMode::mask && options.ablation.mask.empty(),
                    "an empty mask would remove symbols; give some text, or choose the mode remove");
    config_error_if(
        options.ablation.any() && options.drop_overlap,
        "--drop-overlap and --ablate do not go together: symbols that are taken out hide shared passages; "
        "prepare once with one and once with the other");
    config_error_if(options.tokenizer_bytes < 1, "a tokenizer needs at least one byte of text to train on");
    if (!options.transform.empty()) transform_ = &text_transform(options.transform);
  }

  PrepareSummary run() {
    OutputFolder folder(options_.output, options_.overwrite);
    folder_ = folder.path();
    begin("finding documents", "", 0);
    const Corpus corpus(options_);
    Manifest& manifest = summary_.manifest;
    manifest = corpus.manifest;
    const std::string model =
        options_.tokenizer.empty() ? trained_model(corpus) : read_file(options_.tokenizer);
    const std::string origin =
        options_.tokenizer.empty() ? "the trained tokenizer" : options_.tokenizer.string();
    const Tokenizer tokenizer = Tokenizer::from_bytes(model, origin);
    require_usable(tokenizer, origin);
    require_symbols(tokenizer, origin);

    double bytes = 0;
    for (const auto* side : {&corpus.train, &corpus.validation})
      for (const CorpusDocument& document : *side) bytes += static_cast<double>(document.bytes);
    begin("encoding", "bytes", bytes);
    summary_.changes = corpus.changes;
    summary_.remarks = corpus.remarks;
    DocumentEncoder encoder(options_, tokenizer, folder_, manifest.text, summary_.changes);
    std::string validation_text;
    encode_splits(corpus, tokenizer, encoder, validation_text);
    begin("comparing training and validation text", "", 0);
    manifest.overlap =
        measure_text_overlap(shard_files(manifest.train), shard_files(manifest.validation), &tokenizer);
    if (options_.symbol_statistics) {
      begin("counting symbols", "", 0);
      const std::uint64_t tokens =
          manifest.ablation ? manifest.ablation->train.tokens_before : manifest.train.tokens;
      manifest.symbols = symbol_statistics(corpus.train, tokens, options_.threads);
    }
    begin("checking and writing", "", 0);
    write_file_atomically(folder_ / kModelFile, model);
    const char* text_file = transform_ ? kValidationDocumentsFile : kValidationTextFile;
    write_file_atomically(folder_ / text_file, validation_text);
    check_bytes(tokenizer);

    manifest.source = options_.source;
    if (manifest.source.empty())
      manifest.source = fmt::format(
          "{}", fmt::join(options_.inputs | std::views::transform(&std::filesystem::path::native), ", "));
    manifest.tokenizer_file = kModelFile;
    manifest.tokenizer_sha256 = sha256_hex(model);
    manifest.tokenizer_trained = options_.tokenizer.empty();
    manifest.vocabulary = tokenizer.vocab_size();
    manifest.bos_id = tokenizer.bos_id();
    manifest.validation_text_file = text_file;
    manifest.validation_text_sha256 = sha256_hex(validation_text);
    if (transform_) manifest.text.transform = transform_->name();
    if (manifest.tokenizer_trained) manifest.text.normalization = options_.normalization;
    const std::optional<AblationRecord>& ablation = manifest.ablation;
    const bool ablated =
        ablation && ablation->train.documents + ablation->validation.value_or(AblatedSplit{}).documents > 0;
    manifest.text.kept =
        !ablated && manifest.text.documents_cleaned + manifest.text.documents_changed_by_tokenizer == 0;
    write_changes();
    save_manifest(folder_, manifest);
    verify_manifest(folder_);
    folder.publish();
    begin("", "", 0);
    return std::move(summary_);
  }

 private:
  void encode_splits(const Corpus& corpus, const Tokenizer& tokenizer, DocumentEncoder& encoder,
                     std::string& validation_text) {
    Manifest& manifest = summary_.manifest;
    const AblationRules& rules = options_.ablation;
    AblationRecord record;
    require_domains(corpus);
    if (rules.any() && rules.validation) record.validation.emplace();
    manifest.validation = encoder.encode(corpus.validation, "fineweb_val", &validation_text,
                                         record.validation ? &*record.validation : nullptr);
    require_documents(manifest.validation, "validation");
    std::optional<OverlapMeter> meter;
    if (options_.drop_overlap) meter.emplace(&tokenizer, read_tokens(shard_files(manifest.validation)));
    manifest.train = encoder.encode(corpus.train, "fineweb_train", nullptr,
                                    rules.any() ? &record.train : nullptr, meter ? &*meter : nullptr);
    if (!options_.drop_overlap) require_documents(manifest.train, "training");
    data_error_if(
        manifest.train.documents == 0,
        "each of the {} training documents holds a passage of the validation text, so --drop-overlap leaves "
        "none; give other documents, or name validation documents of their own with --validation",
        corpus.train.size());
    if (!rules.any()) return;
    for (const SymbolClass kind : rules.classes) {
      const std::string name(word_of(kind));
      record.classes.push_back(name);
      record.taken[name] = encoder.symbols_taken()[static_cast<std::size_t>(kind)];
    }
    record.mode = word_of(rules.mode);
    record.domains = rules.domains;
    record.mask = rules.mode == AblationMode::mask ? rules.mask : "";
    record.probability = rules.probability;
    record.seed = rules.seed;
    record.comparable = !rules.validation || rules.mode == AblationMode::mask;
    manifest.ablation = std::move(record);
  }

  static void require_documents(const SplitRecord& split, const char* side) {
    if (split.documents > 0) return;
    throw data_error(
        "the tokenizer reads nothing of any {} document, for its normalisation leaves all of their characters out; "
        "give other documents, or another --normalization or --tokenizer",
        side);
  }

  // A domain without a document is a mistake in its glob.
  void require_domains(const Corpus& corpus) const {
    if (!options_.ablation.any()) return;
    for (const std::string& domain : options_.ablation.domains) {
      AblationRules one;
      one.domains = {domain};
      const auto takes = [&](const CorpusDocument& document) { return one.takes(document.name()); };
      if (std::ranges::any_of(corpus.train, takes)) continue;
      throw data_error(
          "no training document is of the domain '{}', a glob over names such as '{}'; correct it, or leave "
          "--ablate-domains out",
          domain, corpus.train.front().name());
    }
  }

  void begin(const std::string& what, const std::string& unit, double total) const {
    if (options_.phase) options_.phase(what, unit, total);
  }

  // Every document that is not in the tokens as it was given, by name.
  void write_changes() {
    if (summary_.changes.empty()) return;
    std::string lines;
    for (const DocumentChange& change : summary_.changes) {
      const nlohmann::json line{{"document", change.document}, {"change", change.change}};
      // File names may be no UTF-8.
      lines += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    }
    write_file_atomically(folder_ / kChangesFile, lines);
    summary_.manifest.text.changes.file = kChangesFile;
    summary_.manifest.text.changes.sha256 = sha256_hex(lines);
  }

  // Trains on the training documents with the smallest digests, as many as fit tokenizer_bytes, and on the
  // start of the next one: a sample that does not depend on the order of the inputs.
  std::string trained_model(const Corpus& corpus) const {
    std::vector<const CorpusDocument*> sample;
    for (const CorpusDocument& document : corpus.train) sample.push_back(&document);
    std::ranges::sort(sample, {}, &CorpusDocument::digest);
    const auto most = static_cast<std::uint64_t>(options_.tokenizer_bytes);
    std::uint64_t bytes = 0;
    std::size_t count = 0;
    while (count < sample.size() && bytes < most) bytes += sample[count++]->bytes;
    bytes = std::min(bytes, most);
    begin(fmt::format("training a tokenizer of {} pieces on {} documents, {} bytes", options_.vocab_size,
                      count, bytes),
          "", 0);
    const auto train = [&](const std::string& required) {
      std::size_t next = 0;
      std::uint64_t left = bytes;
      bool shown = required.empty();  // a character that never occurs cannot be required
      return train_tokenizer(
          [&]() -> std::optional<std::string> {
            if (next == count && !std::exchange(shown, true)) return ". .";
            if (next == count) return std::nullopt;
            std::string text = sample[next++]->text();
            if (text.size() > left) text.resize(left);
            left -= text.size();
            return transform_ ? transform_->apply(text) : text;
          },
          options_.vocab_size, options_.normalization,
          transform_ ? transform_->symbols() : std::vector<std::string>{}, required);
    };
    std::string model;
    try {
      model = train("");
    } catch (const VocabularyRefused&) {  // too few words for all pieces: the space mark may be one
    }
    // Text with hardly a space (tables, some scripts) leaves the space out of the characters that are covered, and bytes are
    // counted by it.
    if (model.empty() || Tokenizer::from_bytes(model, "the trained tokenizer").find(kSpaceMark) < 0)
      model = train(std::string(kSpaceMark));
    return model;
  }

  std::vector<std::filesystem::path> shard_files(const SplitRecord& split) const {
    std::vector<std::filesystem::path> files;
    for (const ShardRecord& shard : split.shards) files.push_back(folder_ / shard.file);
    return files;
  }

  // The validation bytes are what bits per byte are divided by: by the table of pieces and by decoding they must agree.
  // verify_manifest() compares them with the text and the side tables.
  void check_bytes(const Tokenizer& tokenizer) const {
    if (transform_) return;
    const SplitRecord& validation = summary_.manifest.validation;
    const std::uint64_t decoded =
        count_bytes_by_decoding(tokenizer, read_tokens(shard_files(validation)), options_.threads);
    data_error_if(
        decoded != validation.bytes,
        "the validation tokens hold {} bytes by the byte table but {} by decoding; the tokenizer has "
        "pieces whose bytes are ambiguous, use another",
        validation.bytes, decoded);
  }

  // A tokenizer that knows the transform's symbols.
  void require_symbols(const Tokenizer& tokenizer, const std::string& origin) const {
    if (!transform_ || transform_of(tokenizer) == transform_) return;
    throw data_error(
        "tokenizer '{}' has no piece of its own for the symbols of the text "
        "transform {}; use one trained for it, or leave --tokenizer out and train one",
        origin, transform_->name());
  }

  const PrepareOptions& options_;
  const TextTransform* transform_ = nullptr;
  std::filesystem::path folder_;  // being filled
  PrepareSummary summary_;
};

}  // namespace

PrepareSummary prepare(const PrepareOptions& options) {
  return Preparation(options).run();
}

}  // namespace mulligan
