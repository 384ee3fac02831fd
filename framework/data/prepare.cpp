#include "framework/data/prepare.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/byte_count.h"
#include "framework/data/corpus.h"
#include "framework/core/parallel.h"
#include "framework/data/shard.h"
#include "framework/data/tokenizer.h"
#include "framework/data/tokenizer_training.h"

namespace mulligan {
namespace {

constexpr const char* kModelFile = "tokenizer.model";
constexpr const char* kVocabFile = "tokenizer.vocab";
constexpr const char* kValidationTextFile = "validation.txt";

class Stopwatch {
 public:
  // Seconds since construction or the last call.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Collects whole documents into shards of a limited size.
class ShardWriter {
 public:
  ShardWriter(std::filesystem::path folder, std::string stem, std::int64_t tokens_per_shard)
      : folder_(std::move(folder)),
        stem_(std::move(stem)),
        limit_(static_cast<std::size_t>(tokens_per_shard)) {}

  void add(std::span<const std::uint16_t> document) {
    if (!tokens_.empty() && tokens_.size() + document.size() > limit_) flush();
    for (; document.size() > limit_; document = document.subspan(limit_)) {
      tokens_.assign(document.begin(), document.begin() + static_cast<std::ptrdiff_t>(limit_));
      flush();
    }
    tokens_.insert(tokens_.end(), document.begin(), document.end());
  }

  std::vector<ShardRecord> finish() {
    flush();
    return std::move(records_);
  }

 private:
  void flush() {
    if (tokens_.empty()) return;
    const std::string name = fmt::format("{}_{:06d}.bin", stem_, records_.size());
    write_shard(folder_ / name, tokens_);
    records_.push_back({name, tokens_.size(), sha256_hex_of_file(folder_ / name)});
    tokens_.clear();
  }

  std::filesystem::path folder_;
  std::string stem_;
  std::size_t limit_;
  std::vector<std::uint16_t> tokens_;
  std::vector<ShardRecord> records_;
};

struct EncodedDocument {
  std::vector<std::uint16_t> tokens;  // BOS first
  std::uint64_t bytes = 0;
};

// The stages of one preparation.
class Preparation {
 public:
  explicit Preparation(const PrepareOptions& options) : options_(options) {
    if (options.inputs.empty())
      throw config_error("nothing to prepare: give a folder, text files or JSONL files");
    if (options.output.empty()) throw config_error("no output folder was given for the prepared data");
    if (options.tokens_per_shard < 1024 || options.tokens_per_shard > INT32_MAX) {
      throw config_error("{} tokens per shard is outside 1024..2147483647", options.tokens_per_shard);
    }
    if (options.tokenizer_bytes < 1)
      throw config_error("a tokenizer needs at least one byte of text to train on");
  }

  PrepareSummary run() {
    Stopwatch watch;
    report("reading documents");
    const Corpus corpus(options_);
    summary_.read_seconds = watch.lap();
    report(fmt::format(
        "{} training and {} validation documents ({} duplicates and {} empty or binary ones dropped)",
        corpus.train().size(), corpus.validation().size(), corpus.duplicates_dropped(),
        corpus.empty_dropped()));
    const std::string model =
        options_.tokenizer.empty() ? trained_model(corpus) : read_file(options_.tokenizer);
    const std::string origin =
        options_.tokenizer.empty() ? "the trained tokenizer" : options_.tokenizer.string();
    const Tokenizer tokenizer = Tokenizer::from_bytes(model, origin);
    require_usable(tokenizer, origin);
    summary_.tokenizer_seconds = watch.lap();

    // Without a manifest the folder is not taken for prepared data while it is being rewritten.
    std::filesystem::create_directories(options_.output);
    std::filesystem::remove(options_.output / "manifest.json");
    remove_old_shards();
    Manifest& manifest = summary_.manifest;
    report("encoding and writing shards");
    std::string validation_text;
    manifest.validation = encode(corpus.validation(), tokenizer, "fineweb_val", &validation_text);
    manifest.train = encode(corpus.train(), tokenizer, "fineweb_train", nullptr);
    check_bytes(tokenizer, validation_text);
    write_file_atomically(options_.output / kModelFile, model);
    write_file_atomically(options_.output / kVocabFile, vocab_listing(tokenizer));
    write_file_atomically(options_.output / kValidationTextFile, validation_text);

    manifest.source = options_.source.empty() ? input_names() : options_.source;
    manifest.split_rule = corpus.split_rule();
    manifest.tokenizer_file = kModelFile;
    manifest.tokenizer_sha256 = sha256_hex(model);
    manifest.tokenizer_trained = options_.tokenizer.empty();
    manifest.vocabulary = tokenizer.vocab_size();
    manifest.bos_id = tokenizer.bos_id();
    manifest.duplicates_dropped = corpus.duplicates_dropped();
    manifest.empty_dropped = corpus.empty_dropped();
    manifest.validation_text_file = kValidationTextFile;
    manifest.validation_text_sha256 = sha256_hex(validation_text);
    save_manifest(options_.output, manifest);
    summary_.encode_seconds = watch.lap();
    return std::move(summary_);
  }

 private:
  void report(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  std::string input_names() const {
    std::string names;
    for (const auto& input : options_.inputs) names += (names.empty() ? "" : ", ") + input.string();
    return names;
  }

  void remove_old_shards() const {
    for (const auto& entry : std::filesystem::directory_iterator(options_.output)) {
      const std::string name = entry.path().filename().string();
      const bool ours = name.starts_with("fineweb_train_") || name.starts_with("fineweb_val_");
      if (ours && name.ends_with(".bin")) std::filesystem::remove(entry.path());
    }
  }

  // Trains on the training documents with the smallest digests, as many as fit tokenizer_bytes (at least
  // one): a sample that does not depend on the order of the inputs.
  std::string trained_model(const Corpus& corpus) const {
    std::vector<const CorpusDocument*> sample;
    for (const CorpusDocument& document : corpus.train()) sample.push_back(&document);
    std::sort(sample.begin(), sample.end(),
              [](const CorpusDocument* a, const CorpusDocument* b) { return a->digest < b->digest; });
    std::uint64_t bytes = 0;
    std::size_t count = 0;
    while (count < sample.size() && bytes < static_cast<std::uint64_t>(options_.tokenizer_bytes)) {
      bytes += sample[count++]->bytes;
    }
    report(fmt::format("training a tokenizer of {} pieces on {} documents, {} bytes", options_.vocab_size,
                       count, bytes));
    std::size_t next = 0;
    return train_tokenizer(
        [&]() -> std::optional<std::string> {
          if (next == count) return std::nullopt;
          return sample[next++]->text();
        },
        options_.vocab_size);
  }

  EncodedDocument encode_one(const CorpusDocument& document, const Tokenizer& tokenizer,
                             const ByteTable& table) const {
    const std::vector<int> ids = tokenizer.encode(document.text());
    EncodedDocument encoded;
    encoded.tokens.reserve(ids.size() + 1);
    encoded.tokens.push_back(static_cast<std::uint16_t>(tokenizer.bos_id()));
    for (const int id : ids) {
      if (tokenizer.is_textless(id)) {
        throw data_error(
            "tokenizer '{}' has no piece for some text of '{}', so its bytes could not be counted; use one "
            "trained with byte fallback",
            options_.tokenizer.string(), document.source->name(document.index));
      }
      encoded.tokens.push_back(static_cast<std::uint16_t>(id));
    }
    encoded.bytes = table.count(encoded.tokens);
    return encoded;
  }

  // Encodes in parallel by blocks and writes in order. Appends the documents' text to `text` when asked to.
  SplitRecord encode(const std::vector<CorpusDocument>& documents, const Tokenizer& tokenizer,
                     const std::string& stem, std::string* text) const {
    constexpr std::size_t kBlock = 512;
    const ByteTable table = ByteTable::from_tokenizer(tokenizer);
    ShardWriter writer(options_.output, stem, options_.tokens_per_shard);
    SplitRecord split;
    std::vector<EncodedDocument> block;
    for (std::size_t first = 0; first < documents.size(); first += kBlock) {
      block.assign(std::min(kBlock, documents.size() - first), {});
      parallel_for(block.size(), options_.threads,
                   [&](std::size_t i) { block[i] = encode_one(documents[first + i], tokenizer, table); });
      for (const EncodedDocument& encoded : block) {
        writer.add(encoded.tokens);
        ++split.documents;
        split.tokens += encoded.tokens.size();
        split.bytes += encoded.bytes;
        if (text != nullptr) *text += tokenizer.document_text(encoded.tokens);
      }
    }
    split.shards = writer.finish();
    return split;
  }

  // The validation bytes are what bits per byte are divided by: three counts of them must agree.
  void check_bytes(const Tokenizer& tokenizer, const std::string& validation_text) const {
    std::vector<std::filesystem::path> files;
    for (const ShardRecord& shard : summary_.manifest.validation.shards)
      files.push_back(options_.output / shard.file);
    const std::uint64_t decoded = count_bytes_by_decoding(tokenizer, read_tokens(files), options_.threads);
    const std::uint64_t table = summary_.manifest.validation.bytes;
    if (decoded != table || validation_text.size() != table) {
      throw data_error(
          "the validation tokens hold {} bytes by the byte table but {} by decoding; the tokenizer has "
          "pieces "
          "whose bytes are ambiguous, use another",
          table, decoded);
    }
  }

  const PrepareOptions& options_;
  PrepareSummary summary_;
};

}  // namespace

PrepareSummary prepare(const PrepareOptions& options) {
  return Preparation(options).run();
}

}  // namespace mulligan
