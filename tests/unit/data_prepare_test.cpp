// Preparing data: cleaning, reading folders, files and JSONL, the split, the written files, and every
// refusal.
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <set>
#include <unordered_map>

#include "framework/core/file.h"
#include "framework/data/byte_count.h"
#include "framework/data/documents.h"
#include "framework/data/prepare.h"
#include "framework/data/shard.h"
#include "framework/data/text_source.h"
#include "framework/data/tokenizer.h"
#include "tests/unit/data_support.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

std::string document(int i) {
  return "Document number " + std::to_string(i) + " tells how the function f" + std::to_string(i * i) +
         " opens a file, reads some bytes and closes the file again. Na\xC3\xAFve caf\xC3\xA9s are open "
         "\xF0\x9F\x98\x80.";
}

fs::path folder_of_documents(const std::string& name, int count) {
  const fs::path folder = fresh_folder(name);
  for (int i = 0; i < count; ++i) {
    write_file_atomically(folder / (i % 2 == 0 ? "even" : "odd") / (std::to_string(i) + ".txt"), document(i));
  }
  return folder;
}

PrepareOptions options_for(const std::vector<fs::path>& inputs, const fs::path& output) {
  PrepareOptions options;
  options.inputs = inputs;
  options.output = output;
  options.vocab_size = 320;
  options.validation_fraction = 0.3;
  options.threads = 2;
  return options;
}

std::vector<std::uint16_t> tokens_of(const fs::path& folder, const std::string& split) {
  return read_tokens(find_shards({(folder / ("fineweb_" + split + "_*.bin")).string()}));
}

// The texts of all documents of a split, in order.
std::vector<std::string> texts_of(const fs::path& folder, const std::string& split) {
  const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.model");
  std::vector<std::string> texts;
  std::vector<std::uint16_t> tokens = tokens_of(folder, split);
  for (const Document& part : find_documents(tokens)) {
    texts.push_back(tokenizer.document_text(std::span(tokens).subspan(
        static_cast<std::size_t>(part.start), static_cast<std::size_t>(part.length))));
  }
  return texts;
}

TEST(CleanText, DropsControlsAndBrokenUtf8AndCollapsesSpace) {
  EXPECT_EQ(clean_text("  a\t b \r\n\r\n\r\n\r\n  c\x07\x7F\xC2\x85 \n"), "a b\n\n c");
  EXPECT_EQ(clean_text("\xEF\xBB\xBFmark"), "mark");
  EXPECT_EQ(clean_text("ok \xC3\xA9 \xF0\x9F\x98\x80"), "ok \xC3\xA9 \xF0\x9F\x98\x80");
  // Lone continuation, overlong, surrogate, beyond U+10FFFF, cut off at the end.
  EXPECT_EQ(clean_text("a\x80"
                       "b\xC0\xAF"
                       "c\xED\xA0\x80"
                       "d\xF4\x90\x80\x80"
                       "e\xE2\x82"),
            "abcde");
  EXPECT_EQ(clean_text(" \n\t\r"), "");
  EXPECT_EQ(clean_text("a\rb"), "a\nb");
}

TEST(Prepare, WritesShardsTokenizerAndManifestThatVerify) {
  const fs::path inputs = folder_of_documents("prepare_folder", 60);
  const fs::path output = fresh_folder("prepare_folder_out");
  const PrepareSummary summary = prepare(options_for({inputs}, output));
  const Manifest manifest = verify_manifest(output);
  EXPECT_EQ(manifest.train.documents + manifest.validation.documents, 60u);
  EXPECT_GT(manifest.train.documents, manifest.validation.documents);
  EXPECT_EQ(manifest.vocabulary, 320);
  EXPECT_TRUE(manifest.tokenizer_trained);
  EXPECT_EQ(manifest.train.tokens, tokens_of(output, "train").size());
  EXPECT_EQ(manifest.train.tokens, summary.manifest.train.tokens);

  std::set<std::string> seen;
  std::size_t bytes = 0;
  for (const std::string& text : texts_of(output, "train")) seen.insert(text);
  for (const std::string& text : texts_of(output, "val")) {
    EXPECT_TRUE(seen.insert(text).second) << "in both splits: " << text;
    bytes += text.size();
  }
  std::set<std::string> expected;
  for (int i = 0; i < 60; ++i) expected.insert(document(i));
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(manifest.validation.bytes, bytes);
  EXPECT_EQ(read_file(output / "validation.txt").size(), bytes);
  const Tokenizer tokenizer = Tokenizer::load(output / "tokenizer.model");
  EXPECT_EQ(count_bytes_by_decoding(tokenizer, tokens_of(output, "train")), manifest.train.bytes);
  for (const auto& entry : fs::directory_iterator(output)) {
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
  }
}

TEST(Prepare, TheSameDocumentsGiveTheSameFilesHoweverTheyAreGiven) {
  const fs::path folder = folder_of_documents("prepare_same", 40);
  std::vector<fs::path> list;
  std::string jsonl;
  for (int i = 39; i >= 0; --i) {
    list.push_back(folder / (i % 2 == 0 ? "even" : "odd") / (std::to_string(i) + ".txt"));
    jsonl += "{\"id\": 1, \"text\": \"" + document(i) + "  \\u0007\"}\n" + (i % 5 == 0 ? "\n" : "");
  }
  const fs::path extra = fresh_folder("prepare_same_jsonl") / "documents.jsonl";
  write_file_atomically(extra, jsonl);
  const fs::path out_a = fresh_folder("prepare_same_a");
  const fs::path out_b = fresh_folder("prepare_same_b");
  const fs::path out_c = fresh_folder("prepare_same_c");
  prepare(options_for({folder}, out_a));
  PrepareOptions one_thread = options_for(list, out_b);
  one_thread.threads = 1;
  prepare(one_thread);
  prepare(options_for({extra}, out_c));
  for (const char* name : {"fineweb_train_000000.bin", "fineweb_val_000000.bin", "tokenizer.model",
                           "tokenizer.vocab", "validation.txt"}) {
    EXPECT_EQ(sha256_hex_of_file(out_a / name), sha256_hex_of_file(out_b / name)) << name;
    EXPECT_EQ(sha256_hex_of_file(out_a / name), sha256_hex_of_file(out_c / name)) << name;
  }
}

TEST(Prepare, KeepsDuplicatesOnceAndLeavesBinaryEmptyAndHiddenFilesOut) {
  const fs::path folder = folder_of_documents("prepare_duplicates", 30);
  write_file_atomically(folder / "copy.txt", document(3) + "\n\n");
  write_file_atomically(folder / "empty.txt", " \n");
  write_file_atomically(folder / "binary", std::string("ELF\0\1", 5));
  write_file_atomically(folder / ".git" / "secret.txt", "hidden text");
  write_file_atomically(folder / ".hidden", "hidden text");
  const PrepareSummary summary = prepare(options_for({folder}, fresh_folder("prepare_duplicates_out")));
  EXPECT_EQ(summary.manifest.train.documents + summary.manifest.validation.documents, 30u);
  EXPECT_EQ(summary.manifest.duplicates_dropped, 1u);
  EXPECT_EQ(summary.manifest.empty_dropped, 2u);
}

TEST(Prepare, LimitsShardsAtDocumentsAndReplacesAnEarlierPreparation) {
  const fs::path folder = folder_of_documents("prepare_shards", 60);
  std::string large;
  for (int i = 0; i < 40; ++i) large += document(1000 + i) + " ";
  write_file_atomically(folder / "large.txt", large);
  const fs::path output = fresh_folder("prepare_shards_out");
  PrepareOptions options = options_for({folder}, output);
  options.tokens_per_shard = 1024;
  const auto shards = prepare(options).manifest.train.shards;
  ASSERT_GT(shards.size(), 3u);
  std::size_t cut = 0;
  for (const ShardRecord& record : shards) {
    EXPECT_LE(record.tokens, 1024u);
    cut += Shard(output / record.file).read_all().front() == 1 ? 0 : 1;
  }
  EXPECT_GT(cut, 0u) << "the document longer than a shard is cut";
  EXPECT_LT(cut, shards.size() - 2) << "others are not";
  options.tokens_per_shard = 1'000'000;
  prepare(options);
  EXPECT_EQ(find_shards({output.string()}).size(), 2u);
  EXPECT_NO_THROW(verify_manifest(output));
}

// A BPE model without byte fallback: characters it has not seen become unknown tokens.
std::string model_without_byte_fallback() {
  std::vector<std::string> sentences;
  for (int i = 0; i < 50; ++i) sentences.push_back("plain words only, number " + std::to_string(i));
  class Iterator : public sentencepiece::SentenceIterator {
   public:
    explicit Iterator(const std::vector<std::string>& sentences) : sentences_(sentences) {}
    bool done() const override { return next_ == sentences_.size(); }
    void Next() override { ++next_; }
    const std::string& value() const override { return sentences_[next_]; }
    sentencepiece::util::Status status() const override { return {}; }

   private:
    const std::vector<std::string>& sentences_;
    std::size_t next_ = 0;
  } iterator(sentences);
  const std::unordered_map<std::string, std::string> settings{
      {"model_type", "bpe"}, {"vocab_size", "60"}, {"hard_vocab_limit", "false"}, {"minloglevel", "2"}};
  std::string model;
  EXPECT_TRUE(sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model).ok());
  return model;
}

TEST(Prepare, UsesAGivenTokenizerAndRefusesOneThatLosesText) {
  const fs::path folder = folder_of_documents("prepare_given", 40);
  const fs::path first = fresh_folder("prepare_given_first");
  prepare(options_for({folder}, first));
  PrepareOptions options = options_for({folder}, fresh_folder("prepare_given_out"));
  options.tokenizer = first / "tokenizer.model";
  const Manifest manifest = prepare(options).manifest;
  EXPECT_FALSE(manifest.tokenizer_trained);
  EXPECT_EQ(manifest.tokenizer_sha256, sha256_hex_of_file(first / "tokenizer.model"));
  write_file_atomically(options.output / "broken.model", "no model");
  options.tokenizer = options.output / "broken.model";
  message_of(ExitCode::bad_data, [&] { prepare(options); });
  write_file_atomically(options.output / "lossy.model", model_without_byte_fallback());
  options.tokenizer = options.output / "lossy.model";
  const std::string message = message_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_NE(message.find("byte fallback"), std::string::npos) << message;
}

TEST(Prepare, SplitsByNumberAndBySeparateInputs) {
  const fs::path folder = folder_of_documents("prepare_split", 40);
  PrepareOptions options = options_for({folder}, fresh_folder("prepare_split_out"));
  options.validation_documents = 7;
  EXPECT_EQ(prepare(options).manifest.validation.documents, 7u);
  options.validation_documents = 40;
  const std::string message = message_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_NE(message.find("40"), std::string::npos) << message;

  const fs::path own = fresh_folder("prepare_split_validation");
  write_file_atomically(own / "v.txt", "A text of its own for validation.");
  options.validation_inputs = {own};
  EXPECT_EQ(prepare(options).manifest.validation.documents, 1u);
}

TEST(Prepare, RefusesADocumentOnBothSides) {
  const fs::path folder = folder_of_documents("prepare_overlap", 20);
  const fs::path own = fresh_folder("prepare_overlap_validation");
  write_file_atomically(own / "twin.txt", "  " + document(4) + "\r\n");  // equal after cleaning
  write_file_atomically(own / "fine.txt", "Another text.");
  PrepareOptions options = options_for({folder}, fresh_folder("prepare_overlap_out"));
  options.validation_inputs = {own};
  const std::string message = message_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_NE(message.find("twin.txt"), std::string::npos) << message;
  EXPECT_NE(message.find("4.txt"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(options.output / "manifest.json"));
}

TEST(Prepare, RefusesWhatCannotBePrepared) {
  const fs::path folder = folder_of_documents("prepare_refuse", 20);
  const fs::path output = fresh_folder("prepare_refuse_out");
  const auto refused = [&](ExitCode code, const std::function<void(PrepareOptions&)>& change) {
    PrepareOptions options = options_for({folder}, output);
    change(options);
    return message_of(code, [&] { prepare(options); });
  };
  const fs::path empty = fresh_folder("prepare_refuse_empty");
  const fs::path broken = fresh_folder("prepare_refuse_jsonl") / "bad.jsonl";
  write_file_atomically(broken, "{\"text\": \"fine\"}\n{\"texts\": 3}\n");
  refused(ExitCode::bad_data, [&](auto& o) { o.inputs = {empty}; });
  refused(ExitCode::bad_data, [&](auto& o) { o.inputs = {folder / "missing"}; });
  EXPECT_NE(refused(ExitCode::bad_data, [&](auto& o) { o.inputs = {broken}; }).find("bad.jsonl:2"),
            std::string::npos);
  EXPECT_NE(refused(ExitCode::bad_configuration, [](auto& o) { o.vocab_size = 65537; }).find("65537"),
            std::string::npos);
  refused(ExitCode::bad_data, [](auto& o) { o.vocab_size = 60000; });
  refused(ExitCode::bad_configuration, [](auto& o) { o.validation_fraction = 1.0; });
  refused(ExitCode::bad_configuration, [](auto& o) { o.inputs.clear(); });
  refused(ExitCode::bad_configuration, [](auto& o) { o.output.clear(); });
  refused(ExitCode::bad_configuration, [](auto& o) { o.tokens_per_shard = 10; });
  EXPECT_NE(refused(ExitCode::bad_data, [](auto& o) { o.validation_fraction = 1e-12; }).find("validation"),
            std::string::npos);
}

TEST(Manifest, NoticesChangedTruncatedAndMissingFiles) {
  const fs::path output = fresh_folder("manifest_out");
  prepare(options_for({folder_of_documents("manifest_in", 40)}, output));
  EXPECT_NO_THROW(verify_manifest(output / "manifest.json"));
  const auto damaged = [&](const std::string& name, const std::function<void(std::string&)>& change) {
    const std::string original = read_file(output / name);
    std::string bytes = original;
    change(bytes);
    write_file_atomically(output / name, bytes);
    const std::string message = message_of(ExitCode::bad_data, [&] { verify_manifest(output); });
    write_file_atomically(output / name, original);
    return message;
  };
  const auto flip = [](std::string& bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 1); };
  for (const char* name :
       {"fineweb_train_000000.bin", "fineweb_val_000000.bin", "tokenizer.model", "validation.txt"}) {
    EXPECT_NE(damaged(name, flip).find("sha256"), std::string::npos);
  }
  EXPECT_NE(
      damaged("fineweb_train_000000.bin", [](std::string& b) { b.resize(b.size() - 2); }).find("truncated"),
      std::string::npos);
  damaged("manifest.json", [](std::string& b) { b.resize(b.size() / 2); });
  damaged("manifest.json", [](std::string& b) { b.replace(b.find("fineweb_val"), 11, "../../e/val"); });
  damaged("manifest.json",
          [](std::string& b) { b.replace(b.find("mulligan-data-1"), 15, "mulligan-data-9"); });
  fs::remove(output / "fineweb_val_000000.bin");
  message_of(ExitCode::bad_data, [&] { verify_manifest(output); });
  fs::remove(output / "manifest.json");
  message_of(ExitCode::bad_data, [&] { load_manifest(output); });
}

}  // namespace
}  // namespace mulligan
