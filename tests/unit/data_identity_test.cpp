// Shards are read as they were written, and damage is refused. Digests of data: what is checked and what is compared.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/data/data_identity.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "framework/data/shard_checks.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_identity_test {
namespace {

namespace fs = std::filesystem;

using Tokens = std::vector<std::uint16_t>;

constexpr int kPieces = 50;

// Documents of 20 tokens each, all different, none beyond kPieces.
Tokens documents(std::uint16_t first, int count) {
  Tokens tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(1);
    for (int j = 0; j < 19; ++j) {
      tokens.push_back(static_cast<std::uint16_t>(2 + (first + i * 7 + j * (i + first + 1)) % (kPieces - 2)));
    }
  }
  return tokens;
}

std::string tokenizer_digest() {
  return sha256_hex("a tokenizer");
}

// A prepared folder: two training shards, one for validation, and their manifest.
fs::path prepared(const std::string& name) {
  const fs::path folder = fresh_folder(name);
  Manifest manifest;
  manifest.tokenizer_file = "tokenizer.model";
  manifest.tokenizer_sha256 = tokenizer_digest();
  manifest.vocabulary = kPieces;
  manifest.validation_text_file = "validation.txt";
  const auto add = [&](SplitRecord& split, const std::string& file, const Tokens& tokens) {
    write_shard(folder / file, tokens);
    split.shards.push_back({file, tokens.size(), sha256_hex_of_file(folder / file)});
  };
  add(manifest.train, "fineweb_train_000000.bin", documents(3, 30));
  add(manifest.train, "fineweb_train_000001.bin", documents(1003, 30));
  add(manifest.validation, "fineweb_val_000000.bin", documents(2003, 10));
  save_manifest(folder, manifest);
  return folder;
}

ShardUse use_of(DataSplit split) {
  return {split, kPieces, "given.model", tokenizer_digest(), kPieces};
}

CheckedShards checked(const fs::path& folder, DataSplit split) {
  return check_shards(find_shards({folder.string()}, split), use_of(split));
}

std::string refusal(const std::vector<fs::path>& files, const ShardUse& use,
                    ExitCode code = ExitCode::bad_data) {
  return sentence_of(code, [&] { check_shards(files, use); });
}

TEST(FindShards, AFolderMeansTheShardsOfItsManifestsSide) {
  const fs::path folder = prepared("find_side");
  write_shard(folder / "left_over.bin", Tokens{1, 2, 3});
  const auto names = [&](DataSplit split) {
    std::string joined;
    for (const auto& path : find_shards({folder.string()}, split)) joined += path.filename().string() + " ";
    return joined;
  };
  EXPECT_EQ(names(DataSplit::train), "fineweb_train_000000.bin fineweb_train_000001.bin ");
  EXPECT_EQ(names(DataSplit::validation), "fineweb_val_000000.bin ");
  // Published sets have no manifest, or one of another kind.
  write_file_atomically(folder / "manifest.json", R"({"datasets": []})");
  EXPECT_EQ(names(DataSplit::validation), "fineweb_val_000000.bin left_over.bin ");
  fs::remove(folder / "manifest.json");
  fs::remove(folder / "left_over.bin");
  EXPECT_EQ(names(DataSplit::train), "fineweb_train_000000.bin fineweb_train_000001.bin ");
}

TEST(FindShards, AShardThatItsManifestMissesIsNamed) {
  const fs::path folder = prepared("find_missing");
  fs::remove(folder / "fineweb_train_000001.bin");
  EXPECT_TRUE(refuses([&] { find_shards({folder.string()}, DataSplit::train); }, ExitCode::bad_data,
                      "fineweb_train_000001.bin"));
  EXPECT_EQ(find_shards({folder.string()}, DataSplit::validation).size(), 1u);
}

TEST(CheckShards, DigestsAndCountsAreThoseOfTheFiles) {
  const fs::path folder = prepared("check_sound");
  const CheckedShards train = checked(folder, DataSplit::train);
  ASSERT_EQ(train.identity.shards.size(), 2u);
  EXPECT_EQ(train.identity.tokens, 1200u);
  EXPECT_EQ(train.identity.shards[1].sha256, sha256_hex_of_file(folder / "fineweb_train_000001.bin"));
  EXPECT_EQ(train.tokenizer_sha256, tokenizer_digest());
  // The digest of the set depends on the order, not on the folder.
  const fs::path other = prepared("check_sound_moved");
  EXPECT_EQ(checked(other, DataSplit::train).identity, train.identity);
  auto reversed = train.identity.shards;
  std::swap(reversed[0], reversed[1]);
  EXPECT_NE(shard_set(reversed).sha256, train.identity.sha256);
}

TEST(CheckShards, WhatTheManifestContradictsIsRefused) {
  const fs::path folder = prepared("check_refused"), shard = folder / "fineweb_val_000000.bin";
  const auto damaged = [&](const fs::path& file, const std::function<void(std::string&)>& change) {
    const std::string sound = read_file(file);
    std::string bytes = sound;
    change(bytes);
    write_file_atomically(file, bytes);
    const std::string said = sentence_of(ExitCode::bad_data, [&] { checked(folder, DataSplit::validation); });
    write_file_atomically(file, sound);
    return said;
  };
  // The high byte of a token, so that no length changes.
  const auto flip = [](std::string& bytes) { bytes[1024 + 51] = static_cast<char>(bytes[1024 + 51] ^ 1); };
  EXPECT_TRUE(contains(damaged(shard, flip), "fineweb_val_000000.bin", "sha256"));
  // A damaged manifest is no foreign one.
  damaged(folder / "manifest.json",
          [](std::string& text) { text.replace(text.find("mulligan-data"), 8, "muxligan"); });
  damaged(folder / "manifest.json", [](std::string& text) { text = "{"; });

  write_shard(folder / "fineweb_train_000002.bin", documents(9, 3));
  EXPECT_TRUE(contains(refusal({folder / "fineweb_train_000002.bin"}, use_of(DataSplit::train)),
                       "not in the manifest"));
  ShardUse use = use_of(DataSplit::validation);
  use.tokenizer_sha256 = sha256_hex("another");
  EXPECT_TRUE(contains(refusal({shard}, use), short_digest(tokenizer_digest()),
                       short_digest(use.tokenizer_sha256), std::string("data.tokenizer"),
                       (folder / "tokenizer.model").string()));
}

// Far into the shard, where a run would have met it after its first checkpoint.
TEST(CheckShards, EveryTokenIsLookedAtBeforeARunStarts) {
  const fs::path folder = fresh_folder("check_tokens");
  Tokens tokens = documents(5, 40'000);
  tokens[700'001] = kPieces;
  write_shard(folder / "a.bin", tokens);
  const std::string said = refusal({folder / "a.bin"}, use_of(DataSplit::train));
  EXPECT_TRUE(contains(said, "token 50", "position 700001", "50 pieces", "given.model"));
  ShardUse without = use_of(DataSplit::train);
  without.tokenizer_file.clear();
  without.pieces = 0;
  EXPECT_TRUE(contains(refusal({folder / "a.bin"}, without), "model.vocabulary = 50"));
  without.vocabulary = kPieces + 1;
  EXPECT_EQ(check_shards({folder / "a.bin"}, without).identity.tokens, tokens.size());
}

// The same file again, changed in place: what was read before must not stand for it.
TEST(CheckShards, AChangedFileIsReadAnew) {
  const fs::path folder = fresh_folder("check_again");
  write_shard(folder / "a.bin", documents(5, 10));
  const auto digest = [&] {
    return check_shards({folder / "a.bin"}, use_of(DataSplit::train)).identity.sha256;
  };
  const std::string before = digest();
  EXPECT_EQ(digest(), before);
  write_shard(folder / "a.bin", documents(6, 10));
  EXPECT_NE(digest(), before);
}

TEST(Vocabulary, SmallerThanTheTokenizerIsRefusedAndLargerIsTold) {
  EXPECT_TRUE(refuses([] { check_vocabulary(300, 320, "tokenizer.model"); }, ExitCode::bad_configuration,
                      "set model.vocabulary = 320"));
  EXPECT_EQ(check_vocabulary(320, 320, "tokenizer.model", true), "");
  EXPECT_EQ(check_vocabulary(50304, 50257, "").find("model.vocabulary = 50304 is padded"), 0u);
  EXPECT_EQ(check_vocabulary(8192, 1024, "").find("warning: "), 0u);
}

DataIdentity identity_of(const std::string& name) {
  const fs::path folder = prepared(name);
  return {tokenizer_digest(), sha256_hex("bytes"), "rows of 64 tokens",
          checked(folder, DataSplit::train).identity, checked(folder, DataSplit::validation).identity};
}

TEST(DataIdentity, ComesBackFromJson) {
  const DataIdentity data = identity_of("identity_json");
  EXPECT_EQ(data_identity_from_text(to_json_text(data), "x"), data);
  const DataIdentity short_form = without_shards(data);
  EXPECT_TRUE(short_form.train.shards.empty());
  EXPECT_EQ(data_identity_from_text(to_json_text(short_form), "x"), short_form);
  EXPECT_TRUE(data_identity_from_text("{}", "x").empty());
  for (const char* bad : {"[]", "", "{\"train\": 3}", "{\"tokenizer_sha256\": \"abc\"}",
                          "{\"train\": {\"tokens\": -1}}", "{\"train\": {\"shards\": {}}}"}) {
    sentence_of(ExitCode::bad_data, [&] { data_identity_from_text(bad, "x"); });
  }
}

TEST(DataIdentity, TheValidationOfARunIsToldFromAnother) {
  const DataIdentity run = identity_of("identity_compare");
  EXPECT_EQ(validation_difference(run, run), "");
  EXPECT_EQ(validation_difference(without_shards(run), run), "") << "an artifact has no lists";
  DataIdentity other = run;
  other.validation = run.train;
  EXPECT_TRUE(contains(validation_difference(run, other), "1200 tokens"));
  other = run;
  other.byte_table_sha256 = sha256_hex("other bytes");
  EXPECT_TRUE(contains(validation_difference(run, other), "byte table"));
  other = run;
  other.packing = "rows of 128 tokens";
  EXPECT_TRUE(contains(validation_difference(run, other), "rows of 128 tokens instead of"));
  other.packing.clear();  // test-time training scores documents, no rows
  EXPECT_EQ(validation_difference(run, other), "");
  EXPECT_TRUE(contains(validation_difference({}, run), "do not say"));
}

TEST(DataIdentity, AnotherOrNoTokenizerIsRefusedWithBothDigests) {
  const DataIdentity run = identity_of("identity_tokenizer");
  DataIdentity now = run;
  require_same_tokenizer({"the weights", run}, now, "t.model");
  now.tokenizer_sha256 = sha256_hex("another");
  const std::string said = sentence_of(ExitCode::bad_data, [&] {
    require_same_tokenizer({"the weights", run}, now, "t.model");
  });
  EXPECT_TRUE(contains(said, short_digest(run.tokenizer_sha256), short_digest(now.tokenizer_sha256),
                       std::string("data.tokenizer")));
  // Nothing to compare with, and yet bytes would be counted.
  sentence_of(ExitCode::bad_data, [&] { require_same_tokenizer({"the artifact", {}}, now, "t.model"); });
  require_same_tokenizer({"the artifact", {}}, {}, "");
}

TEST(DataIdentity, OtherTrainingShardsOfTheSameNamesAreNamed) {
  const DataIdentity run = identity_of("identity_train");
  require_same_training_shards({"the checkpoint", run}, run.train);
  auto shards = run.train.shards;
  shards[1].sha256 = sha256_hex("other text");
  const std::string said = sentence_of(ExitCode::bad_data, [&] {
    require_same_training_shards({"the checkpoint", run}, shard_set(shards));
  });
  EXPECT_TRUE(contains(said, "fineweb_train_000001.bin"));
  shards = run.train.shards;
  shards.pop_back();
  sentence_of(ExitCode::bad_data, [&] {
    require_same_training_shards({"the checkpoint", run}, shard_set(shards));
  });
}

TEST(DataIdentity, OneShardOnBothSidesIsRefusedUnderAnyName) {
  DataIdentity run = identity_of("identity_apart");
  require_apart(run.train, run.validation);
  run.validation.shards.push_back({"renamed.bin", 600, run.train.shards[0].sha256});
  EXPECT_TRUE(refuses([&] { require_apart(run.train, run.validation); }, ExitCode::bad_data, "renamed.bin"));
}

TEST(Shard, RoundTripsTheExtremeTokensInThePublishedLayout) {
  const fs::path folder = fresh_folder("shard_round_trip");
  const std::vector<std::uint16_t> tokens{1, 0, 65535, 258, 1};
  write_shard(folder / "a.bin", tokens);
  const Shard shard(folder / "a.bin");
  EXPECT_EQ(shard.read_all(), tokens);
  const std::string bytes = read_file(folder / "a.bin");
  ASSERT_EQ(bytes.size(), 1024u + 10u);
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x88\xd8\x34\x01\x01\0\0\0\x05\0\0\0", 12));
  EXPECT_EQ(bytes.substr(12, 1012), std::string(1012, '\0'));
  EXPECT_EQ(bytes.substr(1024 + 4, 4), "\xff\xff\x02\x01");
}

TEST(Shard, RefusesEveryKindOfDamageNamingFileAndBytes) {
  const fs::path folder = fresh_folder("shard_damage");
  write_shard(folder / "good.bin", std::vector<std::uint16_t>(100, 7));
  const std::string good = read_file(folder / "good.bin");
  const auto with_word = [&](std::size_t word, std::int32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + 4 * word, &value, 4);
    return bytes;
  };
  const struct {
    const char* name;
    std::string bytes;
    std::vector<std::string> said;
  } cases[] = {
      {"empty.bin", "", {"truncated", "0 bytes", "1024"}},
      {"header_only_half.bin", good.substr(0, 500), {"truncated", "500"}},
      {"last_token_missing.bin",
       good.substr(0, good.size() - 2),
       {"truncated", "100 tokens", "1224", "1222"}},
      {"odd_size.bin", good.substr(0, good.size() - 1), {"truncated", "1224", "1223"}},
      {"too_long.bin", good + "xx", {"corrupt", "1224", "1226"}},
      {"magic.bin", with_word(0, 20240521), {"20240521", "20240520"}},
      {"version.bin", with_word(1, 2), {"version 2"}},
      {"no_tokens.bin", with_word(2, 0), {"0 tokens"}},
      {"negative.bin", with_word(2, -5), {"-5 tokens"}},
      {"text.bin", std::string(4096, 'a'), {"not a token shard"}},
  };
  for (const auto& test : cases) {
    write_file_atomically(folder / test.name, test.bytes);
    const std::string message = sentence_of(ExitCode::bad_data, [&] { Shard shard(folder / test.name); });
    EXPECT_TRUE(contains(message, test.name));
    for (const std::string& part : test.said) EXPECT_TRUE(contains(message, part)) << part << ": " << message;
  }
  sentence_of(ExitCode::bad_data, [&] { Shard shard(folder / "missing.bin"); });
  sentence_of(ExitCode::bad_data, [&] { Shard shard{folder}; });
  sentence_of(ExitCode::run_failed, [&] { write_shard(folder / "none.bin", {}); });
}

TEST(Shard, APipeIsRefusedWithoutWaitingForIt) {
  const fs::path folder = fresh_folder("shard_pipe");
  ASSERT_EQ(::mkfifo((folder / "a.bin").c_str(), 0600), 0);
  sentence_of(ExitCode::bad_data, [&] { Shard shard(folder / "a.bin"); });
}

TEST(FindShards, TakesFoldersGlobsAndFilesSortedByNameOnce) {
  const fs::path folder = fresh_folder("find_shards");
  for (const char* name : {"b.bin", "a.bin", "c.bin", "note.txt"}) write_file_atomically(folder / name, "x");
  const auto names = [&](const std::vector<std::string>& patterns) {
    std::string joined;
    for (const auto& path : find_shards(patterns, DataSplit::train)) joined += path.filename().string() + " ";
    return joined;
  };
  EXPECT_EQ(names({folder.string()}), "a.bin b.bin c.bin ");
  EXPECT_EQ(names({(folder / "[bc].bin").string()}), "b.bin c.bin ");
  EXPECT_EQ(names({(folder / "c.bin").string(), (folder / "?.bin").string()}), "a.bin b.bin c.bin ");
  EXPECT_TRUE(refuses([&] { find_shards({(folder / "train_*.bin").string()}, DataSplit::train); },
                      ExitCode::bad_data, "train_*.bin"));
}

}  // namespace
}  // namespace mulligan::data_identity_test
