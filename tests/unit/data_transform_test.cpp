// Data under a text transform: what `prepare` writes and how its bytes are counted, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "framework/data/side_table.h"
#include "framework/data/text_transform.h"
#include "framework/data/transformed_encoding.h"
#include "framework/eval/evaluate.h"
#include "tests/unit/data_support.h"
#include "tests/unit/published_encoding.h"
#include "tools/prepare/prepare.h"

namespace mulligan::data_transform_test {
namespace {

namespace fs = std::filesystem;

// Capitals, text that the normalisation changes, white space at the ends, control characters, and a byte that vanishes.
std::vector<std::string> documents() {
  std::vector<std::string> all = {
      "A\xCC\x81 BC and \xEF\xAC\x81ne \xC2\xBD",  // A with a combining accent, a ligature, a half
      "  Leading and trailing  \n",                // white space at both ends
      "ends with a control character\x01",         // which vanishes
      "ends so and with a space\x01 ",
      "literal \xEE\x80\x81 and \xEE\x80\x84\xEE\x80\x83X in text",
      "\xE2\x80\x8Bzero width\xE2\x80\x8B in\xE2\x80\x8Bside \xC2\xAD soft",
      "NASA's iPhone, McDonald's USA; X-Ray x-ray X-RAY 3.50 USD",
      "\xE6\x97\xA5\xE6\x9C\xAC Text \xF0\x9F\x98\x80 Done"};
  const std::vector<std::string> words = {"Bridge", "water",  "STONE", "iPad",
                                          "light",  "Garden", "NASA",  "record"};
  std::uint32_t state = 7;
  for (int i = 0; i < 60; ++i) {
    std::string text;
    for (int w = 0; w < 30; ++w) {
      state = state * 1664525u + 1013904223u;
      text += words[(state >> 16) % words.size()] + (w % 7 == 6 ? ". " : " ");
    }
    all.push_back(text + std::to_string(i));
  }
  return all;
}

fs::path documents_file(const fs::path& folder) {
  std::string lines;
  for (const std::string& text : documents()) lines += nlohmann::json{{"text", text}}.dump() + "\n";
  write_file_atomically(folder / "documents.jsonl", lines);
  return folder / "documents.jsonl";
}

PrepareOptions options_for(const std::string& name) {
  PrepareOptions options;
  options.inputs = {documents_file(fresh_folder(name + "_in"))};
  options.output = fresh_folder(name) / "data";
  options.vocab_size = 340;
  options.normalization = "nmt_nfkc";
  options.validation_fraction = 0.4;
  options.transform = "caseops";
  return options;
}

// Prepared once.
const fs::path& prepared() {
  static const fs::path folder = [] {
    const PrepareOptions options = options_for("transform_prepared");
    prepare(options);
    return options.output;
  }();
  return folder;
}

DataConfig data_config(const fs::path& folder) {
  DataConfig data;
  data.validation = folder.string();
  data.tokenizer = (folder / "tokenizer.model").string();
  return data;
}

// A copy of the prepared data without its manifest, as a published set has none of ours.
fs::path published(const std::string& name) {
  const fs::path folder = fresh_folder(name);
  for (const auto& entry : fs::directory_iterator(prepared())) {
    if (entry.path().filename() != "manifest.json") fs::copy(entry.path(), folder / entry.path().filename());
  }
  return folder;
}

TEST(TransformedData, PreparesAndVerifies) {
  const Manifest manifest = verify_manifest(prepared());
  EXPECT_EQ(manifest.text.transform, "caseops");
  EXPECT_EQ(manifest.validation_text_file, "validation.jsonl");
  for (const ShardRecord& shard : manifest.validation.shards) EXPECT_FALSE(shard.bytes_file.empty());
  for (const ShardRecord& shard : manifest.train.shards) EXPECT_TRUE(shard.bytes_file.empty());
  const Tokenizer tokenizer = Tokenizer::load(prepared() / manifest.tokenizer_file);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(tokenizer.piece(4 + i), TextTransform().symbols()[static_cast<std::size_t>(i)]);
  // Bytes are those of the originals, white space at their ends included.
  const TextSource originals({prepared() / "validation.jsonl"});
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i < originals.size(); ++i) counted += originals.raw(i).size();
  EXPECT_EQ(manifest.validation.bytes, counted);
  EXPECT_EQ(counted, manifest.validation.source_bytes);
}

// However the transformed text is cut, its pieces give the original.
TEST(TransformedData, AStreamOfPiecesGivesTheOriginal) {
  const TextTransform transform;
  for (const std::string& document : documents()) {
    const std::string transformed = transform.apply(document);
    for (const std::size_t size : {1u, 2u, 3u, 7u, 1000u}) {
      OriginalTextStream stream(&transform);
      std::string original;
      for (std::size_t at = 0; at < transformed.size(); at += size)
        original += stream.take(std::string_view(transformed).substr(at, size));
      EXPECT_EQ(original + stream.finish(), document) << size;
    }
  }
  OriginalTextStream broken(&transform);  // a mark that no letter follows, as a model may write it
  EXPECT_EQ(broken.take("\xEE\x80\x81 \xEE\x80\x81word"), "\xEE\x80\x81 ");
  EXPECT_EQ(broken.finish(), "Word");
  OriginalTextStream none(nullptr);
  EXPECT_EQ(none.take("\xEE\x80\x81"), "\xEE\x80\x81");
  EXPECT_EQ(none.finish(), "");
}

TEST(TransformedData, ATokenizerTellsWhatItWasTrainedFor) {
  EXPECT_EQ(transform_of(Tokenizer::load(prepared() / "tokenizer.model")), &text_transform("caseops"));
  PrepareOptions options = options_for("transform_plain");
  options.transform.clear();
  prepare(options);
  EXPECT_EQ(transform_of(Tokenizer::load(options.output / "tokenizer.model")), nullptr);
}

TEST(TransformedData, ATokenizerThatKeepsTextCountsEveryByte) {
  PrepareOptions options = options_for("transform_identity");
  options.normalization = "identity";
  const PrepareSummary summary = prepare(options);
  EXPECT_EQ(summary.manifest.validation.bytes, summary.manifest.validation.source_bytes);
  EXPECT_TRUE(summary.manifest.text.kept);
  verify_manifest(options.output);
}

// A published set: tables next to the shards, found by a folder and by a pattern that matches both.
TEST(TransformedData, PublishedShardsWorkAsTheyAre) {
  const fs::path folder = published("transform_published");
  const std::uint64_t bytes = load_manifest(prepared()).validation.bytes;
  for (const std::string& pattern : {folder.string(), (folder / "fineweb_val_*.bin").string()}) {
    DataConfig data = data_config(folder);
    data.validation = pattern;
    const ValidationSet set = load_validation(data, 340);
    EXPECT_EQ(set.files.size(), 1u);
    EXPECT_FALSE(set.counts_pieces);
    EXPECT_EQ(set.data.byte_table_sha256, set.tokenizer_counter->sha256());
    EXPECT_EQ(set.counter()->count(set.tokens), bytes);
    EXPECT_TRUE(contains(set.byte_note, "no original documents"));
    data.validation_documents = (folder / "validation.jsonl").string();
    EXPECT_TRUE(contains(load_validation(data, 340).byte_note, "agree with"));
    data.validation_bytes = (folder / "fineweb_val_bytes_*.bin").string();
    EXPECT_EQ(load_validation(data, 340).counter()->count(set.tokens), bytes);
  }
}

// Published tables leave out what the tokenizer does not read at a document's ends; the original's count does not.
TEST(TransformedData, PublishedTablesLeaveOutEnds) {
  const fs::path folder = published("transform_ends");
  const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.model");
  const TextSource originals({folder / "validation.jsonl"});
  std::vector<std::uint16_t> counts;
  std::uint64_t whole = 0, published_bytes = 0;
  for (std::size_t i = 0; i < originals.size(); ++i) {
    const std::string text = originals.raw(i);
    const PublishedEncoding encoded = encode_published(tokenizer, TextTransform(), text);
    counts.push_back(0);
    counts.insert(counts.end(), encoded.bytes.begin(), encoded.bytes.end());
    whole += text.size();
    published_bytes +=
        text.size() -
        encode_document(tokenizer, transform_of(tokenizer), text, TextOrigin(text.size())).left_out;
  }
  ASSERT_LT(published_bytes, whole);
  write_shard(folder / "fineweb_val_bytes_000000.bin", counts);
  DataConfig data = data_config(folder);
  data.validation_documents = (folder / "validation.jsonl").string();
  const ValidationSet original = load_validation(data, 340);
  EXPECT_EQ(original.counter()->count(original.tokens), whole);
  data.byte_rule = ByteRule::tokenizer;
  const ValidationSet contest = load_validation(data, 340);
  EXPECT_EQ(contest.counter()->count(contest.tokens), published_bytes);
  EXPECT_EQ(contest.original_counter->count(contest.tokens), whole);
}

TEST(TransformedData, PieceTablesAreRefused) {
  const fs::path folder = published("transform_no_tables");
  fs::remove(folder / "fineweb_val_bytes_000000.bin");
  const std::string message = sentence_of([&] { load_validation(data_config(folder), 340); });
  EXPECT_TRUE(contains(message, "caseops", "3 bytes", "data.validation_bytes"));
}

TEST(TransformedData, TablesThatDoNotFitAreRefused) {
  const fs::path folder = published("transform_other_tables");
  const fs::path table = folder / "fineweb_val_bytes_000000.bin";
  const std::vector<std::uint16_t> good = read_tokens({table});
  const DataConfig data = data_config(folder);
  const auto refusal = [&](std::vector<std::uint16_t> counts, bool originals = false) {
    write_shard(table, counts);
    DataConfig with = data;
    if (originals) with.validation_documents = (folder / "validation.jsonl").string();
    return sentence_of([&] { load_validation(with, 340); });
  };
  std::vector<std::uint16_t> counts(good.begin(), good.end() - 1);
  EXPECT_TRUE(contains(refusal(counts), "counts, but its shard"));
  counts = good;
  counts[0] = 3;
  EXPECT_TRUE(contains(refusal(counts), "BOS"));
  counts = good;
  ++counts[5];  // one byte more in the first document
  EXPECT_TRUE(contains(refusal(counts, true), "validation document 1"));
  // Without originals they are believed only near what the tokens decode to, and never under strict rules.
  counts = good;
  for (std::uint16_t& count : counts)
    count = static_cast<std::uint16_t>(count + (count > 0 ? 1 : 0));  // everywhere a little
  EXPECT_TRUE(contains(refusal(counts), "in the validation set"));
  counts = good;
  counts[5] = 5000;  // a lot in one document
  EXPECT_TRUE(contains(refusal(counts), "validation document 1"));
  write_shard(table, good);
  EXPECT_TRUE(contains(unproven_bytes(load_validation(data, 340), data), "no original documents"));
  DataConfig fewer = data;
  fewer.validation_documents = (fresh_folder("transform_fewer") / "one.jsonl").string();
  write_file_atomically(fewer.validation_documents, "{\"text\": \"one\"}\n");
  EXPECT_TRUE(refuses([&] { load_validation(fewer, 340); }, "holds 1 documents"));
  DataConfig tables = data;
  tables.validation = (folder / "fineweb_val_bytes_*.bin").string();
  EXPECT_TRUE(refuses([&] { load_validation(tables, 340); }, "data.validation_bytes"));
}

// Padded originals with tables that agree with them are not what the tokens say.
TEST(TransformedData, OriginalsOfOtherTextAreRefused) {
  const fs::path folder = published("transform_padded");
  const fs::path table = folder / "fineweb_val_bytes_000000.bin";
  std::vector<std::uint16_t> counts = read_tokens({table});
  const std::vector<std::uint16_t> tokens = read_tokens({folder / "fineweb_val_000000.bin"});
  const TextSource originals({folder / "validation.jsonl"});
  DataConfig data = data_config(folder);
  data.validation_documents = (folder / "validation.jsonl").string();
  EXPECT_EQ(unproven_bytes(load_validation(data, 340), data), "");
  std::string lines;
  std::size_t at = 0;
  for (std::size_t i = 0; i < originals.size(); ++i) {
    const std::string word(100, 'x');
    lines += nlohmann::json{{"text", "a" + word + originals.raw(i)}}.dump() + "\n";
    const Tokenizer tokenizer = Tokenizer::load(data.tokenizer);
    while (tokens[at] != tokenizer.bos_id()) ++at;
    counts[at + 1] = static_cast<std::uint16_t>(counts[at + 1] + 1 + word.size());
    ++at;
  }
  write_file_atomically(folder / "padded.jsonl", lines);
  write_shard(table, counts);
  data.validation_documents = (folder / "padded.jsonl").string();
  EXPECT_TRUE(refuses([&] { load_validation(data, 340); }, "is not what its tokens say"));
}

TEST(TransformedData, WhatCannotBePreparedIsRefused) {
  PrepareOptions unknown = options_for("transform_unknown");
  unknown.transform = "casefold";
  EXPECT_TRUE(refuses([&] { prepare(unknown); }, "there is caseops"));
  PrepareOptions foreign = options_for("transform_foreign");
  PrepareOptions plain = options_for("transform_plain");
  plain.transform.clear();
  prepare(plain);
  foreign.tokenizer = plain.output / "tokenizer.model";
  EXPECT_TRUE(refuses([&] { prepare(foreign); }, "symbols of the text transform caseops"));
  PrepareOptions bytes = options_for("transform_bytes");
  const fs::path folder = fresh_folder("transform_bytes_texts");
  write_file_atomically(folder / "a.txt", "not \xFF UTF-8");
  write_file_atomically(folder / "b.txt", "another");
  bytes.inputs.push_back(folder);
  EXPECT_TRUE(refuses([&] { prepare(bytes); }, "is not UTF-8"));
  EXPECT_FALSE(fs::exists(bytes.output));
}

TEST(CaseOps, EveryShortTextComesBack) {
  const TextTransform caseops;
  const std::vector<std::string> alphabet = {"a",
                                             "B",
                                             " ",
                                             "\xEE\x80\x81",
                                             "\xEE\x80\x82",
                                             "\xEE\x80\x83",
                                             "\xEE\x80\x84",
                                             "\xEE\x80\x85",
                                             "\xC3\x89",
                                             "\xEE",
                                             "\x80"};
  std::vector<std::string> texts = {""};
  for (int length = 1; length <= 4; ++length) {
    std::vector<std::string> longer;
    for (const std::string& text : texts) {
      for (const std::string& letter : alphabet) longer.push_back(text + letter);
    }
    for (const std::string& text : longer) {
      std::vector<std::uint64_t> ends;
      const std::string transformed = caseops.apply(text, &ends);
      ASSERT_EQ(caseops.undo(transformed), text);
      ASSERT_EQ(ends.size(), transformed.size());
      ASSERT_TRUE(std::ranges::is_sorted(ends));
      ASSERT_EQ(ends.back(), text.size());
    }
    texts = std::move(longer);
  }
}

}  // namespace
}  // namespace mulligan::data_transform_test
