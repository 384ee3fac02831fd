// What mulligan record --verify says of folders that others publish, in their forms.
#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"
#include "tests/unit/record_support.h"
#include "tools/record/verify.h"

namespace mulligan::record::record_verify_others_test {
namespace {

namespace fs = std::filesystem;
using doctor::CheckOutcome;
using doctor::Finding;
using mulligan::test_support::ScratchFolder;
using samples::failed;
using samples::refused_with;

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
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(scratch_.path() / name, text);
  }
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

TEST_F(VerifyOthers, TooManyBytes) {
  samples::edit(scratch_ / "submission.json", "15992929", "16000001");
  samples::edit(scratch_ / "train_seed314.log", "15976299", "15983371");
  samples::edit(scratch_ / "train_seed314.log", "15992929", "16000001");
  EXPECT_EQ(failed(scratch_.path()), "R08");
  EXPECT_EQ(refused_with(scratch_.path()), 1);
}

TEST_F(VerifyOthers, TooManySeconds) {
  samples::edit(scratch_ / "train_seed314.log", "588047ms", "601153ms");
  EXPECT_EQ(failed(scratch_.path()), "R08");
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
    for (const auto& [name, text] : logs) {
      fs::create_directories((scratch_.path() / name).parent_path());
      write(name, text);
    }
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
}  // namespace mulligan::record::record_verify_others_test
