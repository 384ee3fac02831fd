// submission.json and logs of runs. A sound folder passes; after one change the right check reports it.
#include "tools/record/make_submission.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/unit/record_support.h"
#include "tools/record/seed_log.h"
#include "tools/record/submission.h"

namespace mulligan::record::record_verify_test {
namespace {

namespace fs = std::filesystem;
using doctor::CheckOutcome;
using doctor::Finding;
using mulligan::test_support::ScratchFolder;
using samples::failed;
using samples::refused_with;

class VerifyRecord : public ::testing::Test {
 protected:
  void SetUp() override { submission_ = samples::write_sample(folder()); }
  fs::path folder() const { return scratch_.path(); }
  fs::path file(const std::string& name) const { return folder() / name; }
  // submission.json and README.md anew, after a change of what they say; sums as they were.
  void restate() const {
    write_file_atomically(file(submission_file), submission_json(submission_).dump(1));
    write_file_atomically(file(readme_file), readme_text(submission_));
  }
  // The sums of the files as they lie there now.
  void sum_again() {
    for (auto& [name, sum] : submission_.files) sum = sha256_hex_of_file(file(name));
    restate();
  }
  Submission submission_;
  const ScratchFolder scratch_;
};

TEST_F(VerifyRecord, ASoundFolderPassesEveryCheck) {
  const std::vector<Finding> findings = verify_submission(folder());
  EXPECT_EQ(findings.size(), 12U);
  for (const Finding& finding : findings)
    EXPECT_EQ(finding.verdict, CheckOutcome::pass) << finding.id << ": " << finding.message;
  EXPECT_EQ(refused_with(folder()), 0);
}

TEST_F(VerifyRecord, FreeTextOfTheReadmeMayChangeItsFiguresMayNot) {
  samples::edit(file(readme_file), "## Files", "Thanks to all.\n\n## Files");
  EXPECT_EQ(failed(folder()), "");
  samples::edit(file(readme_file), "| 42 |", "| 43 |");
  EXPECT_EQ(failed(folder()), "R11");
}

// A score that was lowered in log, submission.json, means, sums and README still contradicts its own loss.
TEST_F(VerifyRecord, AScoreThatIsNotItsLossOverItsBytes) {
  SeedResult& result = submission_.results[0];
  *result.val_bpb -= 0.01;
  *submission_.val_bpb -= 0.01 / 3;
  submission_.val_bpb_std.reset();
  write_file_atomically(file(result.log), samples::sample_log(result));
  sum_again();
  EXPECT_EQ(failed(folder()), "R05");
}

TEST_F(VerifyRecord, AnEditedMissingOrSwappedLog) {
  samples::edit(file("train_seed42.log"), "step 20", "step 21");
  EXPECT_EQ(failed(folder()), "R10");
  EXPECT_EQ(refused_with(folder()), 3);
  fs::remove(file("train_seed314.log"));
  EXPECT_EQ(failed(folder()), "R04 R10");
  fs::copy_file(file("train_seed42.log"), file("train_seed314.log"));
  EXPECT_TRUE(contains(failed(folder()), "R04"));
}

TEST_F(VerifyRecord, ADroppedSeed) {
  submission_.results.erase(submission_.results.begin());  // still listed
  restate();
  EXPECT_TRUE(contains(failed(folder()), "R02"));
  submission_.seeds.erase(submission_.seeds.begin());  // dropped everywhere, but the mean is that of three
  restate();
  EXPECT_TRUE(contains(failed(folder()), "R03"));
}

TEST_F(VerifyRecord, OtherFiguresThanTheLogs) {
  const Submission sound = submission_;
  const auto changed = [&](void (*change)(Submission&)) {
    change(submission_ = sound);
    restate();
    return failed(folder());
  };
  EXPECT_EQ(changed([](Submission& s) { s.results[1].artifact_bytes = 4999; }), "R06");
  EXPECT_EQ(changed([](Submission& s) { s.bytes_total = 1; }), "R06");
  EXPECT_EQ(changed([](Submission& s) { s.results[1].train_seconds = 1.0; }), "R07");
  EXPECT_TRUE(contains(changed([](Submission& s) { s.results[0].eval_seconds.reset(); }), "R07"));
}

TEST_F(VerifyRecord, ABrokenBudgetIsARuleBroken) {
  submission_.budgets->artifact_bytes = 5000;
  restate();
  EXPECT_EQ(failed(folder()), "R08");
  EXPECT_EQ(refused_with(folder()), 1);
}

// Bytes with the right length and sum are not yet the source.
TEST_F(VerifyRecord, OtherCodeThanWasCounted) {
  auto tree = samples::sample_tree();
  tree[1].second = "int main() { return 1; }\n";
  for (const auto& [name, bytes] : {std::pair<const char*, std::string>{source_file, "packed code!"},
                                    {unpacker_file, "int main() { return 0; }"},
                                    {whole_source_file, std::string(100, 'x')},
                                    {whole_source_file, compress(Compression::brotli, tar_archive(tree))}}) {
    const std::string before = read_file(file(name));
    write_file_atomically(file(name), bytes);
    sum_again();
    EXPECT_EQ(failed(folder()), "R09") << name;
    write_file_atomically(file(name), before);
  }
}

// README tells how to unpack the source.
TEST_F(VerifyRecord, SourceThatLeadsOutOfItsFolder) {
  for (const char* name : {"../.bashrc", "/etc/profile", "framework/../../x"}) {
    std::vector<std::pair<std::string, std::string>> tree = samples::sample_tree();
    tree.emplace_back(name, "x");
    write_file_atomically(file(whole_source_file), compress(Compression::brotli, tar_archive(tree)));
    for (SeedResult& result : submission_.results) {
      result.digests["source"] = source_digest(tree);
      write_file_atomically(file(result.log), samples::sample_log(result));
    }
    sum_again();
    EXPECT_EQ(failed(folder()), "R09") << name;
  }
}

TEST_F(VerifyRecord, TheFilesOfOwnPluginsCount) {
  const std::string own = compress(Compression::brotli, tar_archive({{"libmine.so", "code"}}));
  write_file_atomically(file(own_code_file), own);
  submission_.files[own_code_file];
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
  *submission_.bytes_code += own.size();
  *submission_.bytes_total += own.size();
  for (SeedResult& result : submission_.results) {
    *result.code_bytes += own.size();
    *result.artifact_bytes += own.size();
    write_file_atomically(file(result.log), samples::sample_log(result));
  }
  sum_again();
  EXPECT_EQ(failed(folder()), "");
}

TEST_F(VerifyRecord, OtherSettingsDataOrModelThanTheLogs) {
  for (const char* what : {"artifact", "config", "source", "train", "validation", "tokenizer"}) {
    std::string& sum = submission_.results[1].digests[what];
    const std::string before = sum;
    sum = sha256_hex("another");
    restate();
    EXPECT_TRUE(contains(failed(folder()), "R12")) << what;
    EXPECT_EQ(refused_with(folder()), 3) << what;
    sum = before;
  }
}

TEST_F(VerifyRecord, SettingsOrAModelThatWereNotRun) {
  write_file_atomically(file(config_file), "[run]\nseed = 43  # default\n");
  sum_again();
  EXPECT_EQ(failed(folder()), "R12");
  write_file_atomically(file(config_file), samples::sample_config);
  const std::string name = artifact_name(submission_.results[0]);
  write_file_atomically(file(name), "another model");
  submission_.files[name];
  sum_again();
  EXPECT_EQ(failed(folder()), "R12");
}

TEST_F(VerifyRecord, AKeyThatStandsTwice) {
  samples::edit(file(submission_file), R"("track":)", R"("val_bpb": 0.5, "track":)");
  EXPECT_TRUE(refuses([&] { verify_submission(folder()); }, "says 'val_bpb' twice"));
}

TEST_F(VerifyRecord, ALinkOutOfTheFolder) {
  const ScratchFolder elsewhere;
  const fs::path log = file(submission_.results[0].log);
  fs::rename(log, elsewhere / "log");
  fs::create_symlink(elsewhere / "log", log);
  EXPECT_EQ(failed(folder()), "R04 R10");
}

TEST_F(VerifyRecord, AFileThatIsNotListedOrAListedNameThatLeadsOutOfTheFolder) {
  write_file_atomically(file("weights.bin"), "more");
  EXPECT_EQ(failed(folder()), "R10");
  fs::remove(file("weights.bin"));
  auto listed = submission_.files.extract(source_file);
  listed.key() = "../" + folder().filename().string() + "/" + source_file;
  submission_.files.insert(std::move(listed));
  restate();
  EXPECT_TRUE(contains(failed(folder()), "R10"));
}

TEST_F(VerifyRecord, AReadmeThatIsNoFile) {
  fs::remove(file(readme_file));
  fs::create_directory(file(readme_file));
  EXPECT_EQ(failed(folder()), "R01");
}

TEST_F(VerifyRecord, AFolderThatIsNone) {
  EXPECT_TRUE(refuses([&] { verify_submission(file("nowhere")); }, "is not a folder"));
  fs::create_directory(file("empty"));
  EXPECT_TRUE(refuses([&] { verify_submission(file("empty")); }, "holds no submission.json"));
}

Submission read_text(const std::string& text) {
  const ScratchFolder scratch;
  write_file_atomically(scratch / "submission.json", text);
  return read_submission(scratch / "submission.json");
}

LogClaims only_run(const std::string& log) {
  return read_seed_log(log).at(0);
}

// What is written is what is read, to the last digit.
TEST(Submission, IsReadAsItWasWritten) {
  const ScratchFolder scratch;
  const Submission written = samples::write_sample(scratch.path());
  const Submission read = read_submission(scratch / submission_file);
  EXPECT_TRUE(read.own);
  Submission stated = written;
  stated.comparison.reset();  // what is written for readers alone
  EXPECT_EQ(submission_json(read).dump(), submission_json(stated).dump());
  EXPECT_EQ(read.results.size(), 3U);
  EXPECT_EQ(read.results[1].eval_seconds, written.results[1].eval_seconds);
  EXPECT_EQ(read.results[1].byte_rule, "original");
  EXPECT_TRUE(contains(read_file(scratch / readme_file), "Bits per byte are of the original text"));
}

TEST(Submission, OfOthersIsReadAsFarAsItGoes) {
  const Submission three = read_text(
      R"({"author":"a","github_id":"b","name":"n","val_bpb":1.081,"val_bpb_std":0.0002,"seeds":[42,314],
          "seed_results":{"42":{"val_bpb":1.08079,"artifact_bytes":15991930,"eval_time_s":366.5},"314":1.08103},
          "hardware":{"cards":8},"compliance":{"three_seeds":true}})");
  EXPECT_FALSE(three.own);
  ASSERT_EQ(three.results.size(), 2U);
  EXPECT_EQ(three.results[0].seed, 42);
  EXPECT_EQ(three.results[0].artifact_bytes, 15991930U);
  EXPECT_EQ(three.results[0].eval_seconds, 366.5);
  EXPECT_EQ(three.results[1].val_bpb, 1.08103);
  const Submission listed = read_text(R"({"val_bpb":1.1,"seed_results":[{"seed":7,"val_bpb":1.1}]})");
  EXPECT_EQ(listed.results.at(0).seed, 7);
  const Submission single = read_text(
      R"({"name":"Naive Baseline","val_loss":2.06035852,"val_bpb":1.21687994,"bytes_total":15863068,"bytes_code":48140})");
  ASSERT_EQ(single.results.size(), 1U);
  EXPECT_FALSE(single.results[0].seed.has_value());
  EXPECT_EQ(single.results[0].artifact_bytes, 15863068U);
  EXPECT_EQ(single.results[0].code_bytes, 48140U);
}

// Other places and words for the seeds' results than the challenge's own.
TEST(Submission, OfOthersUnderOtherNames) {
  const ScratchFolder folder;
  const auto read = [&](const std::string& json) {
    write_file_atomically(folder.path() / "submission.json", json);
    return read_submission(folder.path() / "submission.json");
  };
  const std::string listed[] = {
      R"({"val_bpb": 1.065, "seeds": [7, 8], "per_seed": {"7": {"post_ttt_bpb": 1.06}, "8": {"post_ttt_bpb": 1.07}}})",
      R"({"val_bpb_mean": 1.065, "seeds": {"7": {"val_bpb": 1.06}, "8": {"val_bpb": 1.07}}})",
      R"({"val_bpb": 1.065, "seeds": [7, 8], "results": [{"seed": 7, "quantized_ttt_val_bpb": 1.06},
          {"seed": 8, "quantized_ttt_val_bpb": 1.07}]})"};
  for (const std::string& json : listed) {
    const Submission submission = read(json);
    EXPECT_EQ(submission.val_bpb, 1.065) << json;
    ASSERT_EQ(submission.results.size(), 2U) << json;
    EXPECT_EQ(submission.results[0].seed, 7) << json;
    EXPECT_EQ(submission.results[1].val_bpb, 1.07) << json;
  }
}

TEST(Submission, DamagedFilesAreRefusedByName) {
  for (const char* text : {"", "[1]"}) {
    EXPECT_TRUE(refuses([&] { read_text(text); }, "submission.json' is not a JSON object"));
  }
  for (const auto& [text, says] :
       {std::pair{R"({"val_bpb":"1.08"})", "val_bpb is not a finite number"},
        std::pair{R"({"seed_results":{"fourty-two":1.0}})", "has a seed 'fourty-two'"},
        std::pair{R"({"seed_results":3})", "neither an object nor a list"},
        std::pair{R"({"seed_results":[{"val_bpb":1}]})", "has no seed"},
        std::pair{R"({"seed_results":{"1":{"artifact_bytes":-5}}})", "artifact_bytes is not a count"},
        std::pair{R"({"seed_results":{"1":{"artifact_bytes":1.5}}})", "artifact_bytes is not a count"},
        std::pair{R"({"seed_results":{"1":[]}})", "is not an object"},
        std::pair{R"({"seeds":[18446744073709551574]})", "seeds has something other"},
        std::pair{R"({"name":4})", "name is not text"}}) {
    const Submission others = read_text(text);
    ASSERT_FALSE(others.oddities.empty()) << text;
    EXPECT_TRUE(contains(others.oddities.front(), says));
  }
}

// The lines of the challenge's scripts, of their later and their first form.
TEST(SeedLog, OfTheChallengesScripts) {
  const LogClaims late = only_run(
      "Hyperparameters:\n  seed: 42\n4500/20000 train_loss: 2.2771 train_time: 9.0m tok/s: 6589668\n"
      "4945/20000 val_loss: 2.3539 val_bpb: 1.0756\n"
      "stopping_early: wallclock_cap train_time: 599592ms step: 4945/20000\n"
      "diagnostic pre-quantization post-ema val_loss:2.32848665 val_bpb:1.06395844 eval_time:6718ms\n"
      "Serialized model: 135417533 bytes\nCode size (uncompressed): 157868 bytes\nCode size (compressed): "
      "31999 bytes\n"
      "Serialized model quantized+pergroup: 15865260 bytes\nTotal submission size quantized+pergroup: "
      "15897259 bytes\n"
      "diagnostic quantized val_loss:2.34727563 val_bpb:1.07254371 eval_time:49995ms\n"
      "quantized_ttt_phased val_loss:2.31944212 val_bpb:1.05989454 "
      "eval_time:508778ms\ntotal_eval_time:508.8s\n");
  EXPECT_EQ(late.seed, 42);
  EXPECT_EQ(late.steps, 4945);
  EXPECT_DOUBLE_EQ(late.train_seconds.value(), 599.592);
  EXPECT_EQ(late.model_bytes, 15865260U);
  EXPECT_EQ(late.code_bytes, 31999U);
  EXPECT_TRUE(late.code_compressed);
  EXPECT_EQ(late.code_uncompressed_bytes, 157868U);
  EXPECT_EQ(late.total_bytes, 15897259U);
  ASSERT_EQ(late.scores.size(), 1U);  // what is called diagnostic is not a result
  EXPECT_EQ(late.scores[0].val_bpb, 1.05989454);
  EXPECT_DOUBLE_EQ(late.scores[0].eval_seconds.value(), 508.778);
  EXPECT_EQ(late.total_eval_seconds, 508.8);
  const LogClaims first = only_run(
      "step:13780/20000 val_loss:2.0606 val_bpb:1.2172 train_time:600038ms step_avg:43.54ms\r\n"
      "Serialized model: 67224983 bytes\r\nCode size: 47642 bytes\r\nTotal submission size: 67272625 "
      "bytes\r\n"
      "Serialized model int8+zlib: 15815847 bytes (payload:17178912 raw_torch:17224025 "
      "payload_ratio:3.91x)\r\n"
      "Total submission size int8+zlib: 15863489 bytes\r\n"
      "final_int8_zlib_roundtrip val_loss:2.0727 val_bpb:1.2244 eval_time:1401ms\r\n"
      "final_int8_zlib_roundtrip_exact val_loss:2.07269931 val_bpb:1.22436570\r\n");
  EXPECT_EQ(first.steps, 13780);
  EXPECT_EQ(first.model_bytes, 15815847U);
  EXPECT_EQ(first.code_bytes, 47642U);
  EXPECT_EQ(first.total_bytes, 15863489U);
  EXPECT_EQ(first.scores.size(), 2U);
  EXPECT_EQ(first.scores.back().val_bpb, 1.22436570);
}

TEST(SeedLog, WhatIsNoStatementSaysNothing) {
  const LogClaims claims = only_run(
      "seed: many\nTotal submission size quantized: lots\nCode size\nquantized_ttt val_loss:nan val_bpb:nan\n"
      "quantized val_bpb:1.0\nstopping train_time:\nrecord_sha256 none\n");
  EXPECT_FALSE(claims.seed || claims.total_bytes || claims.code_bytes || claims.train_seconds);
  EXPECT_TRUE(claims.digests.empty());
  EXPECT_TRUE(claims.scores.empty());
  EXPECT_TRUE(only_run("").scores.empty());
}

// A folder as others publish it, where some checks cannot be made.
class VerifyOthers : public ::testing::Test {
 protected:
  void SetUp() override {
    write("README.md", "# A record\n");
    write("train_gpt.py", std::string(47642, '#'));
    write("train_seed42.log", log("42", "1.08079352", "15975300", "15991930"));
    write("train_seed314.log", log("314", "1.08103112", "15976299", "15992929"));
    write("submission.json",
          R"({"author":"a","github_id":"a","name":"n","track":"10min_16mb","val_bpb":1.08091,"seeds":[42,314],
      "seed_results":{"42":{"val_bpb":1.08079,"artifact_bytes":15991930},"314":{"val_bpb":1.08103,"artifact_bytes":15992929}}})");
  }
  void write(const std::string& name, const std::string& text) const { scratch_.write(name, text); }
  static std::string log(const char* seed, const char* bpb, const char* model, const char* total) {
    return fmt::format(
        "  seed: {}\nstopping_early: wallclock_cap train_time: 588047ms step: 4550/20000\nCode size "
        "(compressed): 16630 bytes\n"
        "Serialized model quantized+brotli: {} bytes\nTotal submission size quantized+brotli: {} bytes\n"
        "quantized_ttt val_loss:2.79180191 val_bpb:{} eval_time:366525ms\n",
        seed, model, total, bpb);
  }
  const ScratchFolder scratch_;
};

TEST_F(VerifyOthers, IsCheckedAsFarAsItGoes) {
  EXPECT_EQ(failed(scratch_.path()), "");
  std::string skipped;
  for (const Finding& finding : verify_submission(scratch_.path())) {
    if (finding.verdict != CheckOutcome::skip) continue;
    skipped += finding.id + " ";
    EXPECT_FALSE(finding.message.empty());
  }
  EXPECT_EQ(verify_submission(scratch_.path() / "")[3].verdict,
            CheckOutcome::pass);               // a separator at its end
  EXPECT_EQ(skipped, "R07 R09 R10 R11 R12 ");  // no claims of seconds, packed code, sums, digests
}

TEST_F(VerifyOthers, AClaimThatTheLogDoesNotBear) {
  samples::edit(scratch_ / "submission.json", "1.08079", "1.07979");
  EXPECT_EQ(failed(scratch_.path()), "R03 R05");
}

// Some publish one log of all runs, and the mean of them as the only figure.
TEST_F(VerifyOthers, AMeanOfTheRunsInOneLog) {
  for (const char* name : {"train_seed42.log", "train_seed314.log", "submission.json"})
    fs::remove(scratch_.path() / name);
  write("train.log",
        "final_int8_zlib_roundtrip val_loss:0.577989 val_bpb:0.833862 eval_time:68102ms\n"
        "final_int8_zlib_roundtrip val_loss:0.578192 val_bpb:0.834155 eval_time:46921ms\n"
        "final_int8_zlib_roundtrip val_loss:0.577101 val_bpb:0.832581 eval_time:39105ms\n");
  const auto claim = [&](const char* bpb) {
    write("submission.json", fmt::format(R"({{"author":"a","github_id":"a","name":"n","val_bpb":{}}})", bpb));
    return failed(scratch_.path());
  };
  EXPECT_EQ(claim("0.833533"), "");
  EXPECT_EQ(claim("0.833633"), "R05");
}

// The script's size as it is read is no contradiction of the compressed one that is counted; any other is.
TEST_F(VerifyOthers, TheSizeOfTheScriptAsItIsRead) {
  for (const char* seed : {"42", "314"})
    samples::edit(scratch_.path() / fmt::format("train_seed{}.log", seed), "Code size (compressed)",
                  "Code size (uncompressed): 47642 bytes\nCode size (compressed)");
  samples::edit(scratch_ / "submission.json", R"("artifact_bytes":15991930)",
                R"("artifact_bytes":15991930,"code_bytes":47642)");
  EXPECT_EQ(failed(scratch_.path()), "");
  samples::edit(scratch_ / "submission.json", R"("code_bytes":47642)", R"("code_bytes":47000)");
  EXPECT_EQ(failed(scratch_.path()), "R06");
}

TEST_F(VerifyOthers, TooManySecondsOrBytes) {
  samples::edit(scratch_ / "train_seed314.log", "588047ms", "601153ms");
  EXPECT_EQ(failed(scratch_.path()), "R08");
  samples::edit(scratch_ / "train_seed314.log", "601153ms", "588047ms");
  samples::edit(scratch_ / "submission.json", "15992929", "16000001");
  samples::edit(scratch_ / "train_seed314.log", "15976299", "15983371");
  samples::edit(scratch_ / "train_seed314.log", "15992929", "16000001");
  EXPECT_EQ(failed(scratch_.path()), "R08");
  EXPECT_EQ(refused_with(scratch_.path()), 1);
}

std::string warned(const fs::path& folder) {
  std::string ids;
  for (const Finding& finding : verify_submission(folder))
    if (finding.verdict == CheckOutcome::warn) ids += finding.id + " ";
  return ids;
}

// These fields and files are not required: their absence contradicts no number.
TEST_F(VerifyOthers, WhatIsMissingOfTheFormIsAWarning) {
  fs::remove(scratch_ / "train_seed314.log");
  fs::remove(scratch_ / "README.md");
  samples::edit(scratch_ / "submission.json", R"("github_id":"a",)", "");
  EXPECT_EQ(failed(scratch_.path()), "");
  EXPECT_EQ(warned(scratch_.path()), "R01 R04 ");
  EXPECT_EQ(refused_with(scratch_.path()), 0);
}

// Logs as people keep them: in folders, all runs in one, with a time before each line.
TEST_F(VerifyOthers, LogsOfOtherForms) {
  const std::string one = log("42", "1.08079352", "15975300", "15991930"),
                    two = log("314", "1.08103112", "15976299", "15992929");
  const auto is_sound_until_changed = [&](const std::vector<std::pair<std::string, std::string>>& logs) {
    for (const char* name : {"train_seed42.log", "train_seed314.log"}) fs::remove(scratch_.path() / name);
    for (const auto& [name, text] : logs) write(name, text);
    EXPECT_EQ(failed(scratch_.path()), "");
    EXPECT_EQ(warned(scratch_.path()), "");
    samples::edit(scratch_ / "submission.json", "15991930", "15981930");
    EXPECT_EQ(failed(scratch_.path()), "R06");
    samples::edit(scratch_ / "submission.json", "15981930", "15991930");
    for (const auto& [name, text] : logs) fs::remove(scratch_.path() / name);
  };
  is_sound_until_changed({{"logs/train_seed42.log", one}, {"logs/train_seed314.log", two}});
  is_sound_until_changed({{"seed_42/train.LOG", one}, {"seed_314/train.LOG", two}});
  is_sound_until_changed({{"train.out", one + two}});
  is_sound_until_changed(
      {{"seed_42/train.log", one}, {"seed_314/train.log", two}, {"notes", log("42", "1.5", "1", "2")}});
  const auto stamped = [](std::string text) {
    for (std::size_t at = text.find('\n'); at + 1 < text.size(); at = text.find('\n', at + 1))
      text.insert(at + 1, "2026-04-30T20:16:31Z ");
    return text;
  };
  is_sound_until_changed({{"a_seed42.log", stamped(one)}, {"a_seed314.log", stamped(two)}});
}

TEST_F(VerifyOthers, TheLogOfASeedThatStatesItsScore) {
  write("baseline_seed42.log", log("42", "1.09", "15975300", "15991930"));
  EXPECT_EQ(failed(scratch_.path()), "");
  samples::edit(scratch_ / "train_seed42.log", "quantized_ttt", "slot_exact");
  samples::edit(scratch_ / "baseline_seed42.log", "quantized_ttt val_loss", "step:10/20 val_loss");
  write("train_seed42.log",
        log("42", "1.0999", "15975300", "15991930") + "slot_exact val_loss:2.79180191 val_bpb:1.08079352\n");
  EXPECT_EQ(failed(scratch_.path()), "");
  EXPECT_EQ(warned(scratch_.path()), "R05 ");
  write("train_seed42.log", log("42", "1.0999", "15975300", "15991930") +
                                "diagnostic pre-quantization val_loss:2.79180191 val_bpb:1.08079352\n");
  EXPECT_EQ(failed(scratch_.path()), "R05");
}

TEST_F(VerifyOthers, FiguresInOtherPlaces) {
  const auto claim = [&](const std::string& more) {
    write("submission.json",
          R"({"author":"a","github_id":"a","name":"n","val_bpb":1.08091,"seeds":["42","314"],
      "seed_results":{"seed_42":{"val_bpb":"1.08079"},"seed_314":{"val_bpb":1.08103}},)" +
              more + "}");
    return failed(scratch_.path());
  };
  EXPECT_EQ(claim(R"("bytes_total":16100000)"), "R08");
  EXPECT_EQ(claim(R"("val_bpb_std":0.00017)"), "");
  EXPECT_EQ(claim(R"("val_bpb_std":0.00117)"), "R03");
  samples::edit(scratch_ / "submission.json", R"("1.08079")", R"("1.07")");
  EXPECT_EQ(failed(scratch_.path()), "R03 R05");
}

// The seconds of a track are those of ten minutes, unless the folder says that it is of another.
TEST_F(VerifyOthers, WorkThatIsNoRecord) {
  samples::edit(scratch_ / "train_seed314.log", "588047ms", "4601153ms");
  samples::edit(scratch_ / "submission.json", R"("track":"10min_16mb",)", "");
  EXPECT_EQ(failed(scratch_.path()), "R08");
  write("README.md", "# A Non-Record submission\n");
  EXPECT_EQ(failed(scratch_.path()), "");
}

}  // namespace
}  // namespace mulligan::record::record_verify_test
