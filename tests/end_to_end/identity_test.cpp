// A score knows what it is of: weights, checkpoints and artifacts refuse another tokenizer and other data,
// through the functions that the commands call.
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "framework/artifact/artifact_run.h"
#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/file.h"
#include "framework/core/safetensors.h"
#include "framework/data/shard.h"
#include "framework/run/weights.h"
#include "framework/ttt/ttt_session.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::identity_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Eight steps, a checkpoint after every second, and what scoring with test-time training needs.
const Overrides kRun = {"train.steps=8",          "checkpoint.every_steps=2", "checkpoint.keep=100",
                        "ttt.batch_documents=4",  "ttt.context_tokens=64",    "ttt.chunk_tokens=16",
                        "ttt.optimizer.lr=0.002", "ttt.optimizer.beta1=0.0",  "ttt.document_fraction=0.2",
                        "ttt.adapters.rank=2",    "ttt.adapters.alpha=2"};

class Identity : public testing::Test {
 protected:
  static TinyRun& tiny() {
    static TinyRun run;
    return run;
  }
  static const RunResult& trained() {
    static const RunResult result = tiny().train(kRun);
    return result;
  }

  static fs::path data() { return tiny().folder() / "data"; }
  // The same shards without a manifest, as published sets come.
  static fs::path published(const char* name = "published") {
    fs::path folder = tiny().folder() / name;
    if (fs::exists(folder)) return folder;
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(data()))
      if (entry.path().extension() == ".bin") fs::copy(entry.path(), folder);
    return folder;
  }
  static fs::path weights() { return trained().directory / "weights.safetensors"; }
  static std::string tokenizer_of(const fs::path& folder) {
    return "data.tokenizer=" + (folder / "tokenizer.model").string();
  }
  static Overrides shards_of(const fs::path& folder) {
    return {"data.train=" + folder.string(), "data.validation=" + folder.string()};
  }

  static RunResult train(const Overrides& overrides, const std::string& resume = "") {
    LoadedConfig loaded =
        tiny().config(with(with(kRun, {"run.directory=" + tiny().next_directory()}), overrides));
    return train_loaded(loaded, resume);
  }
  static EvalResult eval(const Overrides& overrides, const fs::path& file = weights()) {
    LoadedConfig loaded = tiny().config(with(kRun, overrides));
    return evaluate_weights(loaded, test_plugin_host(), file, {nullptr});
  }
  static void ttt(const Overrides& overrides) {
    LoadedConfig loaded = tiny().config(with(kRun, overrides));
    TttOptions options;
    options.console = nullptr;
    run_ttt(loaded, test_plugin_host(), origin_of_weights(weights()), weights_in(weights()), options);
  }
  static MadeArtifact quantize(const fs::path& output, const Overrides& overrides,
                               const fs::path& file = weights()) {
    return quantize_run(trained(), output, overrides, file);
  }
};

TEST_F(Identity, TheRunAndAllThatItLeavesSayWhatTheyAreOf) {
  const Json result = result_of(trained().directory);
  const std::string tokenizer = sha256_hex_of_file(data() / "tokenizer.model");
  EXPECT_EQ(result.at("data").at("tokenizer_sha256"), tokenizer);
  EXPECT_EQ(result.at("data").at("validation").at("shards").at(0).at("sha256"),
            sha256_hex_of_file(data() / "fineweb_val_000000.bin"));
  EXPECT_EQ(result.at("data").at("overlap").at("duplicates"), 0);

  const DataIdentity said = origin_of_weights(weights()).data;
  EXPECT_EQ(said.tokenizer_sha256, tokenizer);
  EXPECT_EQ(said.train.tokens, result.at("data").at("train").at("tokens").get<std::uint64_t>());
  EXPECT_NE(said.byte_table_sha256, "");
  EXPECT_NE(said.packing, "");
  EXPECT_EQ(find_checkpoint(trained().directory).manifest.identity, said);
  EXPECT_EQ(SafetensorsFile(weights()).metadata().at(tensors_sha256_key), result.at("weights_sha256"));

  EXPECT_EQ(validation_difference(said, eval({}).data), "");
  EXPECT_TRUE(validation_difference(said, eval({"eval.sequence_length=32"}).data).starts_with("rows of"));
  const std::string other = "data.validation=" + (data() / "*_train_*.bin").string();
  EXPECT_TRUE(validation_difference(said, eval({other}).data).starts_with("validation shards"));

  const fs::path artifact = tiny().folder() / "says.mulligan";
  EXPECT_EQ(quantize(artifact, {}).artifact.data, without_shards(said));
  EXPECT_EQ(read_artifact(artifact).data, without_shards(said));
}

TEST_F(Identity, AnotherTokenizerOfTheSameSizeIsRefusedEverywhere) {
  const std::string other = tokenizer_of(tiny().other_data());
  ASSERT_NE(sha256_hex_of_file(tiny().other_data() / "tokenizer.model"),
            sha256_hex_of_file(data() / "tokenizer.model"));
  // The manifest next to the shards knows better.
  for (const auto& said : {sentence_of(ExitCode::bad_data, [&] { train({other}); }),
                           sentence_of(ExitCode::bad_data, [&] { eval({other}); }),
                           sentence_of(ExitCode::bad_data, [&] { ttt({other}); })}) {
    EXPECT_TRUE(contains(said, "the manifest next to it"));
  }
  // Without a manifest the shards themselves know: their tokens are not what it makes of their text.
  const Overrides bare = with(shards_of(published()), {other});
  const fs::path artifact = tiny().folder() / "tokenizer.mulligan";
  quantize(artifact, {});
  for (const auto& said :
       {sentence_of(ExitCode::bad_data, [&] { eval(bare); }),
        sentence_of(ExitCode::bad_data, [&] { ttt(bare); }),
        sentence_of(ExitCode::bad_data, [&] { quantize(artifact, bare); }),
        sentence_of(ExitCode::bad_data,
                    [&] { evaluate_artifact(artifact, bare, test_plugin_host(), {nullptr}); }),
        sentence_of(ExitCode::bad_data, [&] { train(bare, trained().directory); })}) {
    const bool by_shards = said.find("did not make the validation shards") != std::string::npos,
               by_weights = said.find("weights file") != std::string::npos;
    EXPECT_TRUE(by_shards || by_weights) << said;
    EXPECT_TRUE(contains(said, "data.tokenizer"));
  }
  EXPECT_TRUE(
      contains(sentence_of(ExitCode::bad_data, [&] { train(bare); }), "did not make the validation shards"));
  // The right one is taken wherever it lies.
  fs::copy_file(data() / "tokenizer.model", published() / "own.model");
  const std::string own = "data.tokenizer=" + (published() / "own.model").string();
  EXPECT_EQ(eval(with(shards_of(published()), {own})).val_bpb, trained().validation->val_bpb);
}

TEST_F(Identity, AnArtifactThatDoesNotSayItsTokenizerGivesNoBitsPerByte) {
  const fs::path file = tiny().folder() / "silent.mulligan";
  Artifact artifact = quantize(file, {}).artifact;
  artifact.data.tokenizer_sha256.clear();
  write_file_atomically(file, serialize_artifact(artifact, Compression::zlib));
  const auto score = [&](const Overrides& overrides) {
    return evaluate_artifact(file, overrides, test_plugin_host(), {nullptr});
  };
  EXPECT_TRUE(contains(sentence_of(ExitCode::bad_data, [&] { score({}); }), "no digest of its tokenizer"));
  EXPECT_EQ(score({"data.tokenizer="}).bytes, 0u);
}

TEST_F(Identity, AFolderMeansItsSideAndNothingStandsOnBoth) {
  const RunResult same = train(shards_of(data()));
  EXPECT_EQ(same.validation->val_bpb, trained().validation->val_bpb);
  EXPECT_EQ(same.final_loss_nats, trained().final_loss_nats);
  EXPECT_EQ(train(shards_of(published())).final_loss_nats, trained().final_loss_nats);

  for (const char* pattern : {"*.bin", "fineweb_val_000000.bin"}) {
    const std::string said =
        sentence_of(ExitCode::bad_data, [&] { train({"data.train=" + (data() / pattern).string()}); });
    EXPECT_TRUE(contains(said, "a validation shard"));
  }
  // Without a manifest, and under another name: the contents decide.
  const fs::path renamed = tiny().folder() / "renamed" / "some.bin";
  fs::create_directories(renamed.parent_path());
  fs::copy_file(data() / "fineweb_val_000000.bin", renamed);
  const std::string said =
      sentence_of(ExitCode::bad_data, [&] { train({"data.train=" + renamed.string()}); });
  EXPECT_TRUE(contains(said, "'some.bin' holds exactly what the validation shard"));
  const fs::path artifact = tiny().folder() / "calibrated.mulligan";
  for (const fs::path& shard : {renamed, data() / "fineweb_val_000000.bin"}) {
    sentence_of(ExitCode::bad_data, [&] { quantize(artifact, {"data.train=" + shard.string()}); });
  }
  EXPECT_FALSE(fs::exists(artifact));
}

TEST_F(Identity, AResumedRunReadsAndScoresTheSameTokens) {
  const fs::path folder = tiny().folder() / "resumed";
  const auto fresh = [&] {
    fs::remove_all(folder);
    published("resumed");
  };
  const auto change_one_token = [&](const char* name) {
    std::vector<std::uint16_t> tokens = read_tokens({folder / name});
    tokens[tokens.size() / 2] ^= 1;
    write_shard(folder / name, tokens);
  };
  // One that falls due while another is being written is put off, so which there are depends on the disk.
  const std::string checkpoint = list_checkpoints(trained().directory / "checkpoints").front().path.string();
  ASSERT_LT(open_checkpoint(checkpoint).manifest.step, 8);
  fresh();
  EXPECT_EQ(train(shards_of(folder), checkpoint).final_loss_nats, trained().final_loss_nats);
  change_one_token("fineweb_train_000001.bin");
  std::string said = sentence_of(ExitCode::bad_data, [&] { train(shards_of(folder), checkpoint); });
  EXPECT_TRUE(contains(said, "fineweb_train_000001.bin"));
  fresh();
  change_one_token("fineweb_val_000000.bin");
  said = sentence_of(ExitCode::bad_data, [&] { train(shards_of(folder), checkpoint); });
  EXPECT_TRUE(contains(said, "validation shards"));
}

TEST_F(Identity, AFlippedBitInTheWeightsIsRefused) {
  std::string bytes = read_file(weights());
  const fs::path damaged = tiny().folder() / "damaged.safetensors";
  bytes[bytes.size() - 1000] = static_cast<char>(bytes[bytes.size() - 1000] ^ 0x40);
  write_file_atomically(damaged, bytes);
  for (const auto& said :
       {sentence_of(ExitCode::bad_data, [&] { eval({}, damaged); }),
        sentence_of(ExitCode::bad_data, [&] { quantize(tiny().folder() / "x", {}, damaged); })}) {
    EXPECT_TRUE(contains(said, "is damaged"));
  }
}

// Weights of other programs carry no digests: no tokenizer is known to be theirs, so the loss alone is scored, and it is
// said what was not checked.
TEST_F(Identity, WeightsWithoutDigestsAreScoredWithoutATokenizerOnly) {
  const SafetensorsFile file(weights());
  auto metadata = file.metadata();
  metadata.erase(data_identity_key);
  metadata.erase(tensors_sha256_key);
  const fs::path bare = tiny().folder() / "bare.safetensors";
  write_safetensors(bare, file.tensors(), metadata);
  const auto notes = require_data_of(origin_of_weights(bare), {}, {});
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(contains(notes[0], "no checksum"));
  EXPECT_TRUE(contains(notes[1], "no digests"));
  const std::string said = sentence_of(ExitCode::bad_data, [&] { eval({}, bare); });
  EXPECT_TRUE(contains(said, "no digest of its tokenizer"));
  const EvalResult score = eval({"data.tokenizer="}, bare);
  EXPECT_EQ(score.bytes, 0u);
  EXPECT_GT(score.val_loss_nats, 0);
}

// A shard that is cut off while a run reads it: the state before the failing step is saved, and the restored
// run goes on bit for bit.
TEST_F(Identity, AShardThatFailsInMidRunCostsOneStep) {
  const fs::path folder = tiny().folder() / "failing";
  fs::create_directories(folder);
  const fs::path shard = folder / "a.bin";
  fs::copy_file(data() / "fineweb_train_000000.bin", shard);
  const std::string whole = read_file(shard);
  const std::string directory = tiny().next_directory();
  const auto run = [&](const std::string& place, const std::string& steps, const std::string& resume) {
    return train({"data.train=" + shard.string(), "run.directory=" + place, "train.steps=" + steps,
                  "model.loop.start_fraction=0.0", "checkpoint.every_steps=0", "train.log_every=1"},
                 resume);
  };
  std::thread saboteur([&] {
    const fs::path metrics = fs::path(directory) / "metrics.jsonl";
    for (int i = 0; i < 60'000; ++i) {
      if (fs::exists(metrics) && read_file(metrics).find("\"step\":3,") != std::string::npos) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    fs::resize_file(shard, 1024 + 600);
  });
  const std::string said = sentence_of(ExitCode::bad_data, [&] { run(directory, "1000000", ""); });
  saboteur.join();
  EXPECT_TRUE(contains(said, "changed while it was read", "--resume"));
  write_file_atomically(shard, whole);
  const Checkpoint saved = find_checkpoint(directory);
  EXPECT_TRUE(contains(said, saved.path.string()));
  EXPECT_GE(saved.manifest.step, 3);
  const std::string steps = std::to_string(saved.manifest.step + 3);
  const RunResult resumed = run(directory, steps, "auto");
  const RunResult straight = run(tiny().next_directory(), steps, "");
  EXPECT_EQ(resumed.final_loss_nats, straight.final_loss_nats);
  EXPECT_EQ(resumed.validation->val_loss_nats, straight.validation->val_loss_nats);
}

// Pieces with the space mark inside make the two counts differ. Test-time training must report it before
// hours of work.
TEST_F(Identity, TestTimeTrainingCountsBytesBeforeItScores) {
  const fs::path folder = tiny().folder() / "ambiguous";
  fs::create_directories(folder);
  std::string text;
  for (std::uint64_t i = 0; i < 200; ++i) text += synthetic_document(i) + "\n";
  write_file_atomically(folder / "text.txt", text);
  // Decoding writes two letters for each "e" of a piece, which the table of pieces does not know.
  write_file_atomically(folder / "rules.tsv", "65\t65 65\n");
  const std::unordered_map<std::string, std::string> settings{
      {"input", (folder / "text.txt").string()},
      {"model_prefix", (folder / "tokenizer").string()},
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(tiny_vocabulary)},
      {"denormalization_rule_tsv", (folder / "rules.tsv").string()},
      {"byte_fallback", "true"},
      {"minloglevel", "2"}};
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings);
  ASSERT_TRUE(status.ok()) << status.ToString();
  bool loaded_weights = false;
  const std::string said = sentence_of(ExitCode::bad_data, [&] {
    // Weights of this process say nothing of a tokenizer, so that the count itself is reached.
    LoadedConfig loaded = tiny().config(with(with(kRun, shards_of(published())), {tokenizer_of(folder)}));
    TttOptions options;
    options.console = nullptr;
    run_ttt(
        loaded, test_plugin_host(), "weights",
        [&](TensorStore&, const std::vector<ParameterLayout>&) { loaded_weights = true; }, options);
  });
  EXPECT_TRUE(contains(said, "decoding them gives"));
  EXPECT_FALSE(loaded_weights) << "nothing was scored yet";
}

}  // namespace
}  // namespace mulligan::end_to_end::identity_test
