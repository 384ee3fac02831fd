// Preparing data: text kept or cleaned, inputs, the split, the written files, and every refusal.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <set>

#include "framework/core/file.h"
#include "framework/data/byte_count.h"
#include "framework/data/documents.h"
#include "framework/data/shard.h"
#include "framework/data/text_source.h"
#include "framework/data/tokenizer.h"
#include "tests/unit/data_support.h"
#include "tools/prepare/corpus.h"
#include "tools/prepare/prepare.h"

namespace mulligan::data_prepare_test {
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
  return read_tokens(find_shards({(folder / ("fineweb_" + split + "_*.bin")).string()}, DataSplit::train));
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
    EXPECT_FALSE(contains(entry.path().string(), ".tmp.")) << entry.path();
  }
}

// A table of numbers has no space, and bytes are counted by the piece of the space.
TEST(Prepare, TextWithoutSpacesIsText) {
  const fs::path texts = fresh_folder("prepare_tables");
  for (int i = 0; i < 40; ++i) {
    std::string table = "id,name,price\n";
    for (int row = 0; row < 40; ++row)
      table += fmt::format("{},{:x},{}.{}\n", row, row * 7919 + i * 104729, row * i % 89, row % 7);
    write_file_atomically(texts / fmt::format("{}.csv", i), table);
  }
  const fs::path output = fresh_folder("prepare_tables_out") / "data";
  const Manifest manifest = prepare(options_for({texts}, output)).manifest;
  EXPECT_EQ(manifest.validation.bytes, fs::file_size(output / "validation.txt"));
  EXPECT_GT(manifest.train.documents, 10u);
}

TEST(Prepare, TheSameDocumentsGiveTheSameFilesHoweverTheyAreGiven) {
  const fs::path folder = folder_of_documents("prepare_same", 40);
  std::vector<fs::path> list;
  std::string jsonl;
  for (int i = 39; i >= 0; --i) {
    list.push_back(folder / (i % 2 == 0 ? "even" : "odd") / (std::to_string(i) + ".txt"));
    jsonl += "{\"id\": 1, \"text\": \"" + document(i) + "\"}\n" + (i % 5 == 0 ? "\n" : "");
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
  for (const char* name :
       {"fineweb_train_000000.bin", "fineweb_val_000000.bin", "tokenizer.model", "validation.txt"}) {
    EXPECT_EQ(sha256_hex_of_file(out_a / name), sha256_hex_of_file(out_b / name)) << name;
    EXPECT_EQ(sha256_hex_of_file(out_a / name), sha256_hex_of_file(out_c / name)) << name;
  }
}

// The lines of changes.jsonl.
std::string changes_of(const fs::path& folder) {
  return read_file(folder / "changes.jsonl");
}

// Every document is there to the byte; what is left out is named.
TEST(Prepare, KeepsEveryByteAndNamesWhatItLeavesOut) {
  const fs::path folder = folder_of_documents("prepare_bytes", 30);
  const std::vector<std::string> strange{" \n", "  def f():\r\n\treturn 1   \r\n\r\n\r\n",
                                         std::string("ELF\0\1\0", 6), "\xC3\x28 \xFF\xFE broken",
                                         "the mark \xE2\x96\x81 and \x1B[0m"};
  for (std::size_t i = 0; i < strange.size(); ++i) {
    write_file_atomically(folder / ("strange" + std::to_string(i)), strange[i]);
  }
  write_file_atomically(folder / "z_copy.txt", document(3));
  write_file_atomically(folder / "empty.txt", "");
  write_file_atomically(folder / ".git" / "secret.txt", "hidden text");
  write_file_atomically(folder / ".hidden", "hidden text");
  const fs::path output = fresh_folder("prepare_bytes_out");
  const Manifest manifest = prepare(options_for({folder}, output)).manifest;
  std::multiset<std::string> expected(strange.begin(), strange.end()), found;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 30; ++i) expected.insert(document(i));
  for (const std::string& text : expected) bytes += text.size();
  for (const char* split : {"train", "val"}) {
    for (const std::string& text : texts_of(output, split)) found.insert(text);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(manifest.train.bytes + manifest.validation.bytes, bytes);
  EXPECT_EQ(manifest.train.source_bytes + manifest.validation.source_bytes, bytes);
  EXPECT_TRUE(manifest.text.kept);
  EXPECT_EQ(manifest.text.normalization, "identity");
  EXPECT_EQ(manifest.text.documents_with_nul, 1u);
  EXPECT_EQ(manifest.duplicates_dropped, 1u);
  EXPECT_EQ(manifest.empty_dropped, 1u);
  EXPECT_EQ(manifest.text.hidden_left_out, 2u);
  const std::string changes = changes_of(output);
  EXPECT_TRUE(contains(changes, "z_copy.txt", "empty.txt", ".git", ".hidden"));
  EXPECT_EQ(std::count(changes.begin(), changes.end(), '\n'), 4);
  EXPECT_EQ(verify_manifest(output).text.changes.sha256, sha256_hex(changes));
}

TEST(Prepare, CleansOnlyWhenAskedAndCountsWhatThatChanged) {
  const fs::path folder = folder_of_documents("prepare_clean", 30);
  write_file_atomically(folder / "spaced.txt", document(100) + "  \r\n\r\n  x\x07");
  write_file_atomically(folder / "copy.txt", document(3) + "\n\n");
  write_file_atomically(folder / "empty.txt", " \n");
  write_file_atomically(folder / "binary", std::string("ELF\0\1", 5));
  PrepareOptions options = options_for({folder}, fresh_folder("prepare_clean_out"));
  options.text.clean = true;
  options.normalization = "nmt_nfkc";
  const Manifest manifest = prepare(options).manifest;
  EXPECT_EQ(manifest.train.documents + manifest.validation.documents, 31u);
  EXPECT_EQ(manifest.duplicates_dropped, 1u);
  EXPECT_EQ(manifest.empty_dropped, 1u);
  EXPECT_FALSE(manifest.text.kept);
  EXPECT_TRUE(manifest.text.cleaned);
  EXPECT_EQ(manifest.text.binary_dropped, 1u);
  EXPECT_GE(manifest.text.documents_cleaned, 1u);
  EXPECT_GE(manifest.text.documents_changed_by_tokenizer, 1u) << "a line end becomes a space";
  EXPECT_TRUE(contains(changes_of(options.output), "spaced.txt", "normalisation"));
  EXPECT_NO_THROW(verify_manifest(options.output));

  options = options_for({folder}, fresh_folder("prepare_skip_out"));
  options.text.skip_binary = true;
  const Manifest skipped = prepare(options).manifest;
  EXPECT_EQ(skipped.text.binary_dropped, 1u);
  EXPECT_TRUE(skipped.text.kept);
}

// A document long enough to be cut into parts has the tokens it has by itself.
TEST(Prepare, ALongDocumentIsEncodedAsItWouldBeWhole) {
  const fs::path folder = folder_of_documents("prepare_long", 30);
  std::string large;
  for (int i = 0; large.size() < 2'500'000; ++i) large += document(i % 997) + (i % 3 == 0 ? "\n\n   " : " ");
  write_file_atomically(folder / "large.txt", large);
  PrepareOptions options = options_for({folder}, fresh_folder("prepare_long_out"));
  options.tokenizer_bytes = 50'000;
  std::string lines;
  options.phase = [&](const std::string& what, const std::string&, double) { lines += what + "\n"; };
  prepare(options);
  EXPECT_TRUE(contains(lines, "50000 bytes"));
  const Tokenizer tokenizer = Tokenizer::load(options.output / "tokenizer.model");
  std::vector<int> whole = tokenizer.encode(large);
  whole.insert(whole.begin(), tokenizer.bos_id());
  whole.push_back(tokenizer.bos_id());  // of the next document
  const auto holds = [&](const char* split) {
    std::vector<std::uint16_t> tokens = tokens_of(options.output, split);
    tokens.push_back(static_cast<std::uint16_t>(tokenizer.bos_id()));
    return !std::ranges::search(tokens, whole).empty();
  };
  EXPECT_TRUE(holds("train") || holds("val"));
}

// The output is replaced as a whole, only when asked to, and never with files that are not the preparation's.
TEST(Prepare, TouchesAnExistingOutputOnlyAsAWhole) {
  const fs::path folder = folder_of_documents("prepare_again", 30);
  const fs::path output = fresh_folder("prepare_again_out");
  PrepareOptions options = options_for({folder}, output);
  prepare(options);
  const std::string manifest = read_file(output / "manifest.json");
  EXPECT_TRUE(refuses([&] { prepare(options); }, ExitCode::bad_configuration, "--overwrite"));
  EXPECT_EQ(read_file(output / "manifest.json"), manifest);

  options.overwrite = true;
  write_file_atomically(output / "fineweb_train_000007.bin", "another's");
  EXPECT_TRUE(refuses([&] { prepare(options); }, ExitCode::bad_configuration, "fineweb_train_000007.bin"));
  EXPECT_EQ(read_file(output / "fineweb_train_000007.bin"), "another's");
  EXPECT_NO_THROW(verify_manifest(output));
  fs::remove(output / "fineweb_train_000007.bin");

  // A failure in the middle leaves the old data whole, and nothing else.
  options.vocab_size = 60000;
  sentence_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_EQ(read_file(output / "manifest.json"), manifest);
  EXPECT_NO_THROW(verify_manifest(output));
  EXPECT_FALSE(fs::exists(output.string() + ".preparing"));

  // What a killed preparation left there is removed by the next.
  write_file_atomically(fs::path(output.string() + ".preparing") / "fineweb_train_000000.bin", "half");
  options.vocab_size = 330;
  prepare(options);
  EXPECT_EQ(verify_manifest(output).vocabulary, 330);
  EXPECT_FALSE(fs::exists(output.string() + ".preparing"));

  const fs::path foreign_folder = fresh_folder("prepare_again_foreign");
  write_file_atomically(foreign_folder / "thesis.txt", "years of work");
  options.output = foreign_folder;
  EXPECT_TRUE(refuses([&] { prepare(options); }, ExitCode::bad_configuration, "thesis.txt"));
}

TEST(Prepare, RefusesAnUnwritableOutputBeforeItReads) {
  const fs::path folder = folder_of_documents("prepare_unwritable", 20);
  PrepareOptions options = options_for({folder}, folder / "even" / "0.txt" / "out");
  bool read = false;
  options.phase = [&](const std::string&, const std::string&, double) { read = true; };
  sentence_of(ExitCode::run_failed, [&] { prepare(options); });
  options.output = "/proc/nothing_can_be_made_here";
  EXPECT_TRUE(refuses([&] { prepare(options); }, ExitCode::run_failed, "nothing_can_be_made_here"));
  options.output = folder / "even" / "0.txt";
  sentence_of(ExitCode::bad_configuration, [&] { prepare(options); });
  EXPECT_FALSE(read);
}

TEST(Prepare, ReadsTheTextUnderAnotherKeyAndNamesTheKeysThereAre) {
  const fs::path file = fresh_folder("prepare_keys") / "documents.jsonl";
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "{\"id\": 7, \"content\": \"" + document(i) + "\"}\n";
  write_file_atomically(file, lines);
  PrepareOptions options = options_for({file}, fresh_folder("prepare_keys_out"));
  options.threads = 1;
  const std::string message = sentence_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_TRUE(contains(message, "documents.jsonl:1", "'content'", "'id'", "--json-key"));
  options.text.json_key = "content";
  EXPECT_EQ(prepare(options).manifest.empty_dropped, 0u);
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
  options.overwrite = true;
  prepare(options);
  EXPECT_EQ(find_shards({(output / "*.bin").string()}, DataSplit::train).size(), 2u);
  EXPECT_NO_THROW(verify_manifest(output));
}

// A BPE model without byte fallback: characters it has not seen become unknown tokens.
std::string model_without_byte_fallback(const fs::path& folder) {
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "plain words only, number " + std::to_string(i) + "\n";
  write_file_atomically(folder / "lines.txt", lines);
  const std::string settings =
      "--model_type=bpe --vocab_size=60 --hard_vocab_limit=false --minloglevel=2 --input=" +
      (folder / "lines.txt").string();
  std::string model;
  EXPECT_TRUE(sentencepiece::SentencePieceTrainer::Train(settings, nullptr, &model).ok());
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
  const fs::path models = fresh_folder("prepare_given_models");
  options.output = fresh_folder("prepare_given_refused");
  write_file_atomically(models / "broken.model", "no model");
  options.tokenizer = models / "broken.model";
  sentence_of(ExitCode::bad_data, [&] { prepare(options); });
  write_file_atomically(models / "lossy.model", model_without_byte_fallback(models));
  options.tokenizer = models / "lossy.model";
  EXPECT_TRUE(refuses([&] { prepare(options); }, ExitCode::bad_data, "byte fallback"));
}

TEST(Prepare, SplitsByNumberAndBySeparateInputs) {
  const fs::path folder = folder_of_documents("prepare_split", 40);
  PrepareOptions options = options_for({folder}, fresh_folder("prepare_split_out"));
  options.validation_documents = 7;
  options.overwrite = true;
  EXPECT_EQ(prepare(options).manifest.validation.documents, 7u);
  options.validation_documents = 40;
  EXPECT_TRUE(refuses([&] { prepare(options); }, ExitCode::bad_data, "40"));

  const fs::path own = fresh_folder("prepare_split_validation");
  write_file_atomically(own / "v.txt", "A text of its own for validation.");
  options.validation_inputs = {own};
  EXPECT_EQ(prepare(options).manifest.validation.documents, 1u);
}

// Text that one document took over from another is in both; the division by whole documents does not part them.
TEST(Prepare, DropsTrainingDocumentsThatHoldAPassageOfValidation) {
  const auto words = [](int from, int count) {
    std::string text;
    for (int i = from; i < from + count; ++i) text += "w" + std::to_string(i * 7919 % 100003) + " ";
    return text;
  };
  const fs::path train = fresh_folder("overlap_train"), validation = fresh_folder("overlap_validation");
  for (int i = 0; i < 8; ++i) {
    const int own = 1000 * (i + 1);
    const std::string passage = i == 3 ? words(100, 80) : i == 5 ? words(100, 5) : "";
    write_file_atomically(train / (std::to_string(i) + ".txt"),
                          words(own, 150) + passage + words(own + 200, 150));
  }
  write_file_atomically(validation / "v.txt", words(0, 300));
  PrepareOptions options = options_for({train}, fresh_folder("overlap_out"));
  options.vocab_size = 272;  // byte pieces and digits
  options.validation_inputs = {validation};
  const Manifest kept = prepare(options).manifest;
  EXPECT_EQ(kept.train.documents, 8u);

  options.drop_overlap = true;
  options.output = fresh_folder("overlap_dropped");
  const PrepareSummary dropped = prepare(options);
  EXPECT_EQ(dropped.manifest.train.documents, 7u) << "five words are not a passage";
  EXPECT_EQ(dropped.manifest.text.overlap_left_out, 1u);
  EXPECT_EQ(load_manifest(options.output).text.overlap_left_out, 1u);
  EXPECT_TRUE(dropped.manifest.text.kept);
  ASSERT_EQ(dropped.changes.size(), 1u);
  EXPECT_TRUE(contains(dropped.changes[0].document, "3.txt"));
  EXPECT_TRUE(fs::exists(options.output / "changes.jsonl"));
  EXPECT_EQ(dropped.manifest.overlap->similar, 0);
  EXPECT_GT(kept.overlap->similar, 0.1);
  EXPECT_EQ(load_manifest(options.output).overlap, dropped.manifest.overlap);

  for (const auto& entry : fs::directory_iterator(train))
    write_file_atomically(entry.path(), words(0, 300) + entry.path().filename().string());
  options.output = fresh_folder("overlap_none");
  EXPECT_THROW(prepare(options), Error) << "nothing left to train on";
  options.ablation.classes = {SymbolClass::digits};
  EXPECT_THROW(prepare(options), Error) << "symbols taken out hide passages";
}

TEST(Prepare, RefusesADocumentOnBothSides) {
  const fs::path folder = folder_of_documents("prepare_overlap", 20);
  const fs::path own = fresh_folder("prepare_overlap_validation");
  write_file_atomically(own / "twin.txt", document(4));
  write_file_atomically(own / "fine.txt", "Another text.");
  PrepareOptions options = options_for({folder}, fresh_folder("prepare_overlap_out"));
  options.validation_inputs = {own};
  const std::string message = sentence_of(ExitCode::bad_data, [&] { prepare(options); });
  EXPECT_TRUE(contains(message, "twin.txt", "4.txt"));
  EXPECT_FALSE(fs::exists(options.output / "manifest.json"));
  EXPECT_TRUE(contains(message, "--drop-overlap"));

  options.drop_overlap = true;
  const Corpus corpus(options);
  EXPECT_EQ(corpus.validation.size(), 2u);
  EXPECT_EQ(corpus.train.size(), 19u);
  ASSERT_EQ(corpus.changes.size(), 1u);
  EXPECT_TRUE(contains(corpus.changes[0].document, "4.txt"));
  EXPECT_EQ(corpus.changes[0].change, "left out: it is a validation document");
  options.inputs = options.validation_inputs;
  EXPECT_THROW(Corpus{options}, Error) << "nothing is left to train on";
}

TEST(Prepare, RefusesWhatCannotBePrepared) {
  const fs::path folder = folder_of_documents("prepare_refuse", 20);
  const fs::path output = fresh_folder("prepare_refuse_out");
  const auto refused = [&](ExitCode code, const std::function<void(PrepareOptions&)>& change) {
    PrepareOptions options = options_for({folder}, output);
    change(options);
    return sentence_of(code, [&] { prepare(options); });
  };
  const fs::path empty = fresh_folder("prepare_refuse_empty");
  refused(ExitCode::bad_data, [&](auto& o) { o.inputs = {empty}; });
  const std::string single =
      refused(ExitCode::bad_data, [&](auto& o) { o.inputs = {folder / "even" / "0.txt"}; });
  EXPECT_TRUE(contains(single, "--validation", "0.txt"));
  refused(ExitCode::bad_data, [&](auto& o) { o.inputs = {folder / "missing"}; });
  EXPECT_TRUE(contains(refused(ExitCode::bad_configuration, [](auto& o) { o.vocab_size = 65537; }), "65537"));
  refused(ExitCode::bad_data, [](auto& o) { o.vocab_size = 60000; });
  refused(ExitCode::bad_configuration, [](auto& o) { o.validation_fraction = 1.0; });
  refused(ExitCode::bad_configuration, [](auto& o) { o.inputs.clear(); });
  refused(ExitCode::bad_configuration, [](auto& o) { o.output.clear(); });
  refused(ExitCode::bad_configuration, [](auto& o) { o.tokens_per_shard = 10; });
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
    const std::string message = sentence_of(ExitCode::bad_data, [&] { verify_manifest(output); });
    write_file_atomically(output / name, original);
    return message;
  };
  const auto flip = [](std::string& bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 1); };
  for (const char* name :
       {"fineweb_train_000000.bin", "fineweb_val_000000.bin", "tokenizer.model", "validation.txt"}) {
    EXPECT_TRUE(contains(damaged(name, flip), "sha256"));
  }
  EXPECT_TRUE(contains(damaged("fineweb_train_000000.bin", [](std::string& b) { b.resize(b.size() - 2); }),
                       "truncated"));
  damaged("manifest.json", [](std::string& b) { b.resize(b.size() / 2); });
  // Totals that the files do not bear out.
  for (const char* key : {"documents", "tokens", "bytes", "vocabulary", "bos_id"}) {
    SCOPED_TRACE(key);
    const std::string sentence = damaged("manifest.json", [&](std::string& b) {
      const std::size_t value = b.rfind("\"" + std::string(key) + "\": ") + std::string(key).size() + 4;
      b.insert(value, "1");  // a digit in front: another number
    });
    EXPECT_TRUE(contains(sentence, "manifest.json"));
  }
  damaged("manifest.json", [](std::string& b) { b.replace(b.find("fineweb_val"), 11, "../../e/val"); });
  damaged("manifest.json",
          [](std::string& b) { b.replace(b.find("mulligan-data-1"), 15, "mulligan-data-9"); });
  fs::remove(output / "fineweb_val_000000.bin");
  sentence_of(ExitCode::bad_data, [&] { verify_manifest(output); });
  fs::remove(output / "manifest.json");
  sentence_of(ExitCode::bad_data, [&] { load_manifest(output); });
}

}  // namespace
}  // namespace mulligan::data_prepare_test
