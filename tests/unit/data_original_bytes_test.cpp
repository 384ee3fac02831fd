// Bits per byte are per byte of the documents as they were given, whatever tokenizer or preparation makes of them.
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

#include "framework/core/file.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "framework/data/text_source.h"
#include "framework/data/transformed_encoding.h"
#include "framework/eval/evaluate.h"
#include "tests/unit/data_support.h"
#include "tools/prepare/prepare.h"

namespace mulligan::data_original_bytes_test {
namespace {

namespace fs = std::filesystem;

// Words; every second one is followed by `mark`. Documents have white space at both ends and within.
std::vector<std::string> documents(const std::string& mark, int count = 60) {
  std::vector<std::string> all;
  std::uint32_t state = 11;
  const auto draw = [&](std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  for (int i = 0; i < count; ++i) {
    std::string text = i % 3 == 0 ? "  " : "";
    for (int word = 0; word < 30; ++word) {
      for (std::uint32_t letter = 0, letters = 2 + draw(5); letter < letters; ++letter)
        text += "bdgklmnrstaeioue"[draw(16)];
      if (word % 2 == 0) text += mark;
      text += word % 5 == 0 ? "\n   " : " ";
    }
    all.push_back(text + std::to_string(i) + (i % 2 == 0 ? "\n" : ""));
  }
  return all;
}

PrepareOptions options_for(const std::string& name, const std::string& mark) {
  const fs::path folder = fresh_folder(name + "_texts");
  int number = 0;
  for (const std::string& text : documents(mark))
    write_file_atomically(folder / fmt::format("{:03d}.txt", number++), text);
  PrepareOptions options;
  options.inputs = {folder};
  options.output = fresh_folder(name) / "data";
  options.vocab_size = 340;
  options.normalization = "nmt_nfkc";
  options.validation_fraction = 0.3;
  return options;
}

// The sizes of the validation documents as they were given, in the order of the shards.
std::vector<std::uint64_t> given_sizes(const PrepareOptions& options) {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  const TextSource source(options.inputs);
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::string raw = source.raw(i);
    const std::string used = options.text.clean ? clean_text(raw) : raw;
    all.emplace_back(sha256_hex(used), raw.size());
  }
  std::ranges::sort(all);
  const std::size_t held = load_manifest(options.output).validation.documents;
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < held; ++i) sizes.push_back(all[i].second);
  return sizes;
}

DataConfig data_config(const fs::path& folder) {
  DataConfig data;
  data.validation = folder.string();
  data.tokenizer = (folder / "tokenizer.model").string();
  return data;
}

// Bytes between two BOS.
std::vector<std::uint64_t> counted_sizes(const ValidationSet& set) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t at = 0; at < set.tokens.size(); ++at) {
    if (set.tokens[at] == set.bos_id) sizes.push_back(0);
    if (at > 0) sizes.back() += static_cast<std::uint64_t>(set.counter()->bytes_at(set.tokens, at));
  }
  return sizes;
}

std::uint64_t sum(const std::vector<std::uint64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

// What is scored of a preparation: every document counts its own bytes, and strict rules accept that.
void expect_original(const PrepareOptions& options, const std::string& what) {
  SCOPED_TRACE(what);
  prepare(options);
  const std::vector<std::uint64_t> given = given_sizes(options);
  const Manifest manifest = verify_manifest(options.output);
  const int vocabulary = manifest.vocabulary;
  const DataConfig data = data_config(options.output);
  const ValidationSet set = load_validation(data, vocabulary);
  EXPECT_EQ(manifest.validation.source_bytes, sum(given));
  EXPECT_EQ(set.byte_rule(), ByteRule::original);
  EXPECT_EQ(counted_sizes(set), given);
  EXPECT_EQ(unproven_bytes(set, data), "");
  DataConfig other = data;
  other.byte_rule = ByteRule::tokenizer;
  const ValidationSet spelled = load_validation(other, vocabulary);
  EXPECT_EQ(spelled.byte_rule(), ByteRule::tokenizer);
  EXPECT_EQ(spelled.counter()->count(spelled.tokens), manifest.validation.bytes);
  EXPECT_EQ(unproven_bytes(spelled, other), "");
}

// One character of 3 bytes becomes 33, another of 3 becomes 1, one becomes nothing.
TEST(OriginalBytes, WhateverNormalisationMakesOfACharacter) {
  int number = 0;
  for (const char* mark :
       {"\xEF\xB7\xBA", "\xEF\xBC\xA1", "\xE2\x80\x8B", "\x07", "\xC2\xBD", "\xFF\xFE", ""})
    expect_original(options_for("bytes_mark_" + std::to_string(number++), mark), mark);
}

TEST(OriginalBytes, OfEveryNormalization) {
  for (const char* rule : {"nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}) {
    PrepareOptions options = options_for(std::string("bytes_") + rule, "\xEF\xB7\xBA");
    options.normalization = rule;
    expect_original(options, rule);
  }
}

TEST(OriginalBytes, OfCleanedDocuments) {
  for (const char* rule : {"identity", "nmt_nfkc"}) {
    PrepareOptions options = options_for(std::string("bytes_clean_") + rule, "\x07\xFF    \xEF\xB7\xBA");
    options.normalization = rule;
    options.text.clean = true;
    expect_original(options, rule);
  }
}

// A given tokenizer with the options that SentencePiece has; most of them are Llama's.
TEST(OriginalBytes, OfAGivenTokenizersOptions) {
  const std::vector<std::pair<std::string, std::string>> all = {{"add_dummy_prefix", "true"},
                                                                {"remove_extra_whitespaces", "true"},
                                                                {"treat_whitespace_as_suffix", "true"},
                                                                {"normalization_rule_name", "nfkc_cf"}};
  for (const auto& [key, value] : all) {
    PrepareOptions options = options_for("bytes_option_" + key, "\xEF\xB7\xBA");
    std::string sentences;
    for (std::string text : documents("\xEF\xB7\xBA")) {
      std::ranges::replace(text, '\n', ' ');
      sentences += text + "\n";
    }
    const fs::path file = options.output.parent_path() / "sentences.txt";
    write_file_atomically(file, sentences);
    const std::string settings = fmt::format(  // of a key given twice the first counts
        "--{}={} --input={} --model_type=bpe --vocab_size=340 --pad_id=0 --bos_id=1 --eos_id=2 --unk_id=3 "
        "--byte_fallback=true --add_dummy_prefix=false --hard_vocab_limit=false --remove_extra_whitespaces=false "
        "--normalization_rule_name=identity --num_threads=2 --minloglevel=2",
        key, value, file.string());
    std::string model;
    ASSERT_TRUE(sentencepiece::SentencePieceTrainer::Train(settings, nullptr, &model).ok());
    options.tokenizer = options.output.parent_path() / "given.model";
    write_file_atomically(options.tokenizer, model);
    expect_original(options, key);
  }
}

// Masked or removed symbols of the validation text are bytes of the original, and stay so in the right document.
TEST(OriginalBytes, OfAnAblatedValidationText) {
  for (const AblationMode mode : {AblationMode::remove, AblationMode::mask, AblationMode::decontext}) {
    PrepareOptions options = options_for("bytes_ablated", " 123 + 45");
    options.normalization = "identity";
    options.ablation.classes = {SymbolClass::digits, SymbolClass::operators};
    options.ablation.mode = mode;
    options.ablation.validation = true;
    expect_original(options, std::string(word_of(mode)));
  }
}

// Shards without a manifest: by themselves they say nothing of the original, and with the documents all of it.
TEST(OriginalBytes, OfShardsWithoutAManifest) {
  const PrepareOptions options = options_for("bytes_bare", "\xEF\xB7\xBA");
  prepare(options);
  const fs::path bare = fresh_folder("bytes_bare_shards");
  for (const char* name : {"fineweb_val_000000.bin", "tokenizer.model"})
    fs::copy(options.output / name, bare / name);
  DataConfig data = data_config(bare);
  const ValidationSet unknown = load_validation(data, 340);
  EXPECT_EQ(unknown.byte_rule(), ByteRule::tokenizer);
  EXPECT_TRUE(contains(unknown.byte_note, "data.byte_rule"));
  EXPECT_NE(unproven_bytes(unknown, data), "");
  const Manifest manifest = load_manifest(options.output);
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::string& text : documents("\xEF\xB7\xBA")) texts.emplace_back(sha256_hex(text), text);
  std::ranges::sort(texts);
  std::string lines;
  for (std::size_t i = 0; i < manifest.validation.documents; ++i)
    lines += nlohmann::json{{"text", texts[i].second}}.dump() + "\n";
  data.validation_documents = (bare / "originals.jsonl").string();
  write_file_atomically(data.validation_documents, lines);
  const ValidationSet known = load_validation(data, 340);
  EXPECT_EQ(known.byte_rule(), ByteRule::original);
  EXPECT_EQ(counted_sizes(known), given_sizes(options));
  EXPECT_EQ(unproven_bytes(known, data), "");
  EXPECT_EQ(known.original_counter->sha256(),
            load_validation(data_config(options.output), 340).counter()->sha256());
}

// A manifest that does not say how many bytes the original has proves nothing under strict rules.
TEST(OriginalBytes, AManifestWithoutThemIsRefusedByStrictRules) {
  const PrepareOptions options = options_for("bytes_old", "\xEF\xB7\xBA");
  prepare(options);
  Manifest manifest = load_manifest(options.output);
  manifest.validation.source_bytes = 0;
  for (ShardRecord& shard : manifest.validation.shards) {
    fs::remove(options.output / shard.bytes_file);
    shard.bytes_file.clear();
  }
  save_manifest(options.output, manifest);
  DataConfig data = data_config(options.output);
  const ValidationSet set = load_validation(data, 340);
  EXPECT_TRUE(contains(set.byte_note, "warning"));
  EXPECT_TRUE(contains(unproven_bytes(set, data), "data.byte_rule"));
  data.byte_rule = ByteRule::tokenizer;
  EXPECT_EQ(unproven_bytes(load_validation(data, 340), data), "");
}

TEST(OriginalBytes, ADocumentOfWhichNothingIsReadIsLeftOut) {
  PrepareOptions options = options_for("bytes_nothing", "x");
  write_file_atomically(options.inputs.front() / "spaces.txt", "   \n  ");
  const PrepareSummary summary = prepare(options);
  EXPECT_EQ(summary.manifest.text.unread_left_out, 1u);
  EXPECT_EQ(summary.manifest.train.documents + summary.manifest.validation.documents, 60u);
}

// A count that side tables cannot say goes on with the next token; the sum stays.
TEST(OriginalBytes, ALongStretchIsCountedByTheTokensAfterIt) {
  EXPECT_EQ(original_counts({{5, 6, 7}, {1, 70001, 70002}}), (std::vector<std::uint16_t>{1, 65535, 4466}));
  EXPECT_EQ(original_counts({{5, 6, 7}, {1, 2, 70003}}), (std::vector<std::uint16_t>{1, 4467, 65535}));
  EXPECT_TRUE(refuses([&] { original_counts({{5, 6, 7}, {1, 2, 200000}}); }, ExitCode::bad_data, "65535"));
}

TEST(OriginalBytes, CleaningKeepsTheOriginOfEveryByte) {
  std::vector<std::uint64_t> ends;
  EXPECT_EQ(clean_text("\xEF\xBB\xBF a\t \xC3\xA9\x07 \r\n\r\n\r\nz \n", &ends), "a \xC3\xA9\n\nz");
  EXPECT_EQ(ends, (std::vector<std::uint64_t>{5, 7, 7, 9, 17, 17, 18}));
}

// The same ids with other letters in the tokenizer's pieces are other bytes, and no check of ids finds that.
TEST(OriginalBytes, PlainTextIsProvenByATextNextToTheShards) {
  PrepareOptions options = options_for("bytes_plain", "x");
  options.normalization = "identity";
  prepare(options);
  const fs::path& folder = options.output;
  const auto unproven = [&] {
    const DataConfig data = data_config(folder);
    return unproven_bytes(load_validation(data, 340), data);
  };
  EXPECT_EQ(unproven(), "");
  write_file_atomically(folder / "validation.txt", read_file(folder / "validation.txt") + "more");
  EXPECT_TRUE(contains(unproven(), "is not the text that the validation shards hold"));
  fs::remove(folder / "validation.txt");
  EXPECT_TRUE(contains(unproven(), "no original documents"));
  fs::remove(folder / "manifest.json");
  EXPECT_TRUE(contains(unproven(), "no original documents"));
}

}  // namespace
}  // namespace mulligan::data_original_bytes_test
