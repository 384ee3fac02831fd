// submission.json and logs of runs: of this program and of the challenge's publications.
#include "tools/record/submission.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/unit/record_support.h"
#include "tools/record/seed_log.h"

namespace mulligan::record::record_submission_test {
namespace {

using mulligan::test_support::ScratchFolder;

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
    EXPECT_TRUE(contains(sentence_of([&] { read_text(text); }), "submission.json' is not a JSON object"));
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

// The summary keeps every digit.
TEST(SeedLog, OfThisProgramIsReadAsItWasWritten) {
  const SeedResult result = samples::sample_result(314, 2.7123456789012345);
  const LogClaims log = only_run(samples::sample_log(result));
  EXPECT_EQ(log.seed, 314);
  EXPECT_EQ(log.scores.back().val_bpb, result.val_bpb);
  EXPECT_EQ(log.scores.back().val_loss, result.val_loss);
  EXPECT_NEAR(log.train_seconds.value(), *result.train_seconds, 1e-12);
  EXPECT_NEAR(log.scores.back().eval_seconds.value(), *result.eval_seconds, 1e-12);
  EXPECT_EQ(log.model_bytes, result.model_bytes);
  EXPECT_EQ(log.total_bytes, result.artifact_bytes);
  EXPECT_EQ(log.digests, result.digests);
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

TEST(SeedLog, SeedsOfNames) {
  EXPECT_EQ(seed_of_name("train_seed42.log"), 42);
  EXPECT_EQ(seed_of_name("seed_1337.txt"), 1337);
  EXPECT_EQ(seed_of_name("seed-7.log"), 7);
  EXPECT_EQ(seed_of_name("train.log"), std::nullopt);
  EXPECT_EQ(seed_of_name("seeds.log"), std::nullopt);
}

}  // namespace
}  // namespace mulligan::record::record_submission_test
