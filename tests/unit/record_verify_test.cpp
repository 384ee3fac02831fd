// What mulligan record --verify refuses: a folder is sound, then one thing in it is changed, and the right
// check says so.
#include "tools/record/verify.h"

#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/unit/record_support.h"

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
    for (ShippedFile& shipped : submission_.files) {
      shipped.bytes = fs::file_size(file(shipped.name));
      shipped.sha256 = sha256_hex_of_file(file(shipped.name));
    }
    restate();
  }
  Submission submission_;
  const ScratchFolder scratch_;
};

TEST_F(VerifyRecord, ASoundFolderPassesEveryCheck) {
  const std::vector<Finding> findings = verify_submission(folder());
  EXPECT_EQ(findings.size(), 14U);
  for (const Finding& finding : findings)
    EXPECT_EQ(finding.verdict, CheckOutcome::pass) << finding.id << ": " << finding.message;
  EXPECT_EQ(refused_with(folder()), 0);
}

TEST_F(VerifyRecord, FreeTextOfTheReadmeMayChangeItsFiguresMayNot) {
  samples::edit(file(readme_file), "## Files", "Thanks to all.\n\n## Files");
  EXPECT_EQ(failed(folder()), "");
  samples::edit(file(readme_file), "| 42 |", "| 43 |");
  EXPECT_EQ(failed(folder()), "R12");
}

TEST_F(VerifyRecord, AnEditedLog) {
  samples::edit(file("train_seed42.log"), "step 20", "step 21");
  EXPECT_EQ(failed(folder()), "R10");
  EXPECT_EQ(refused_with(folder()), 3);
}

// Somebody lowers a score in log, submission.json, sums, means, statistics and README alike.
TEST_F(VerifyRecord, ALogEditedWithItsSums) {
  const double lower = *submission_.results[0].val_bpb - 0.01;
  const fs::path log = file("train_seed42.log");
  samples::edit(log, fmt::format("val_bpb:{}", *submission_.results[0].val_bpb),
                fmt::format("val_bpb:{}", lower));
  submission_.results[0].val_bpb = lower;
  sum_again();
  EXPECT_NE(failed(folder()).find("R05"),
            std::string::npos);  // neither the log's own line nor the arithmetic agree
  EXPECT_NE(failed(folder()).find("R03"), std::string::npos);
}

// What would contradict a claim is taken out instead: in a folder of this program nothing may be missing.
TEST_F(VerifyRecord, ALogWithoutItsOwnLine) {
  samples::edit(file("train_seed42.log"), "with test-time training:", "without:");
  sum_again();
  EXPECT_EQ(failed(folder()), "R05");
}

TEST_F(VerifyRecord, AClaimTakenOut) {
  submission_.results[0].eval_seconds.reset();
  restate();
  EXPECT_NE(failed(folder()).find("R07"), std::string::npos);
}

TEST_F(VerifyRecord, AMissingOrSwappedLog) {
  fs::remove(file("train_seed314.log"));
  EXPECT_EQ(failed(folder()), "R04 R10");
  fs::copy_file(file("train_seed42.log"), file("train_seed314.log"));
  EXPECT_NE(failed(folder()).find("R04"), std::string::npos);
}

TEST_F(VerifyRecord, ADroppedSeed) {
  submission_.results.pop_back();  // still listed
  restate();
  EXPECT_NE(failed(folder()).find("R02"), std::string::npos);
  submission_.seeds.pop_back();  // dropped everywhere, but the mean is that of three
  restate();
  EXPECT_NE(failed(folder()).find("R03"), std::string::npos);
}

TEST_F(VerifyRecord, OtherBytesThanTheLogs) {
  submission_.results[1].artifact_bytes = 4999;
  restate();
  EXPECT_EQ(failed(folder()), "R06");
}

TEST_F(VerifyRecord, OtherSecondsThanTheLogs) {
  submission_.results[1].train_seconds = 2.0;
  restate();
  EXPECT_EQ(failed(folder()), "R07");
}

TEST_F(VerifyRecord, ABrokenBudgetIsARuleBroken) {
  submission_.budgets->artifact_bytes = 5000;
  for (const SeedResult& result : submission_.results) {
    write_file_atomically(file(result.log),
                          samples::sample_log(result) + samples::sample_summary(submission_, result));
  }
  sum_again();
  EXPECT_EQ(failed(folder()), "R08");
  EXPECT_EQ(refused_with(folder()), 1);
}

TEST_F(VerifyRecord, BudgetsThatTheRunsWereNotMadeUnder) {
  submission_.budgets->train_seconds = 9;
  restate();
  EXPECT_EQ(failed(folder()), "R08");
}

TEST_F(VerifyRecord, OtherCodeThanWasCounted) {
  write_file_atomically(file(source_file), "packed code!");
  EXPECT_EQ(failed(folder()), "R09 R10");
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
}

// Bytes of the right length, sums and all: noise, another tree, a counted file that the whole source has otherwise.
TEST_F(VerifyRecord, SourceThatIsNone) {
  const std::string packed = read_file(file(source_file)), whole = read_file(file(whole_source_file));
  write_file_atomically(file(source_file), std::string(packed.size(), 'x'));
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
  write_file_atomically(file(source_file), packed);
  write_file_atomically(file(whole_source_file), std::string(whole.size(), 'x'));
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
  auto tree = samples::sample_tree();
  tree[1].second = "int main() { return 1; }\n";
  write_file_atomically(file(whole_source_file), compress(Compression::brotli, tar_archive(tree)));
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
  submission_.source_sha256 = source_digest(tree);  // stated anew; the logs still say another
  restate();
  EXPECT_EQ(failed(folder()), "R09");
}

TEST_F(VerifyRecord, OtherSettingsThanWereRun) {
  write_file_atomically(file(config_file), "[run]\nseed = 43  # default\n");
  sum_again();
  EXPECT_EQ(failed(folder()), "R14");
  submission_.config_sha256 = settings_digest("[run]\nseed = 43\n");
  submission_.results[0].config_sha256 = submission_.config_sha256;
  restate();
  EXPECT_EQ(failed(folder()), "R14");  // the log says which
}

// The log holds the digest of the artifact: another in its place is found, whatever its sum in submission.json.
TEST_F(VerifyRecord, OtherDataThanTheLogs) {
  submission_.data.validation = sha256_hex("an easier set");
  restate();
  EXPECT_EQ(failed(folder()), "R14");
  submission_.data = {};
  restate();
  EXPECT_EQ(failed(folder()), "R14");
  EXPECT_EQ(refused_with(folder()), 3);
}

// Folders of older programs say nothing of their data, in neither place.
TEST_F(VerifyRecord, DataThatNobodyStates) {
  submission_.data = {};
  for (const SeedResult& result : submission_.results)
    write_file_atomically(file(result.log),
                          samples::sample_log(result) + samples::sample_summary(submission_, result));
  sum_again();
  EXPECT_EQ(failed(folder()), "");
}

TEST_F(VerifyRecord, ADateThatIsNoDayUntilNow) {
  for (const char* date : {"2999-99-99", "2026-02-30", "2999-01-01", "soon", "2026-1-01"}) {
    submission_.date = date;
    restate();
    EXPECT_EQ(failed(folder()), "R01") << date;
  }
  submission_.date = "2026-02-28";
  restate();
  EXPECT_EQ(failed(folder()), "");
}

TEST_F(VerifyRecord, AnotherOverlapThanTheLog) {
  samples::edit(file("train_seed42.log"), "step 20", "overlap: " + submission_.overlap->text() + "\nstep 20");
  sum_again();
  EXPECT_EQ(failed(folder()), "");
  submission_.overlap->similar = 0;
  restate();
  EXPECT_EQ(failed(folder()), "R14");
}

TEST_F(VerifyRecord, OtherScoresOnTheWayThanTheLog) {
  samples::edit(file("train_seed42.log"), "step 20",
                "before quantisation          val_bpb 1.05000   (1000 tokens)\nstep 20");
  submission_.results[0].val_bpb_before = 1.05;
  sum_again();
  EXPECT_EQ(failed(folder()), "");
  submission_.results[0].val_bpb_before = 1.04;
  restate();
  EXPECT_EQ(failed(folder()), "R05");
}

TEST_F(VerifyRecord, StepsThatTookLongerThanTraining) {
  submission_.results[0].step_avg_ms = 150;
  restate();
  EXPECT_EQ(failed(folder()), "R07");
}

TEST_F(VerifyRecord, AnArtifactThatWasNotScored) {
  const std::string name = artifact_name(submission_.results[0]);
  write_file_atomically(file(name), std::string(5000, 'x'));
  submission_.files.push_back({name, 0, ""});
  sum_again();
  EXPECT_EQ(failed(folder()), "R06");
  // Claimed everywhere, the log included, and yet nothing that could be loaded.
  SeedResult& result = submission_.results[0];
  const std::string before = result.artifact_sha256;
  result.artifact_sha256 = sha256_hex_of_file(file(name));
  samples::edit(file(result.log), before, result.artifact_sha256);
  sum_again();
  EXPECT_EQ(failed(folder()), "R06");
}

TEST_F(VerifyRecord, AnotherLargestArtifact) {
  submission_.bytes_total = 1;
  restate();
  EXPECT_EQ(failed(folder()), "R06");
}

// Without its format it is still a folder of this program, by any other sign of it.
TEST_F(VerifyRecord, AFolderMadeForeign) {
  samples::edit(file(submission_file), R"("format": "mulligan record 1",)", "");
  EXPECT_EQ(failed(folder()), "R01");
  std::string text = read_file(file(submission_file));
  for (const char* key : {"config_sha256", "source_sha256"}) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key)) text[at] = '_';
  }
  write_file_atomically(file(submission_file), text);
  EXPECT_NE(failed(folder()).find("R01"), std::string::npos);
  write_file_atomically(file(readme_file), "# Mine\n");
  EXPECT_NE(failed(folder()).find("R01"), std::string::npos);
  fs::remove(file(source_file));
  fs::remove(file(whole_source_file));
  EXPECT_NE(failed(folder()).find("R01"), std::string::npos);
}

TEST_F(VerifyRecord, AKeyThatStandsTwice) {
  samples::edit(file(submission_file), R"("track":)", R"("val_bpb": 0.5, "track":)");
  EXPECT_NE(sentence_of([&] { verify_submission(folder()); }).find("says 'val_bpb' twice"),
            std::string::npos);
}

TEST_F(VerifyRecord, ALinkOutOfTheFolder) {
  const ScratchFolder elsewhere;
  const fs::path log = file(submission_.results[0].log);
  fs::rename(log, elsewhere / "log");
  fs::create_symlink(elsewhere / "log", log);
  EXPECT_EQ(failed(folder()), "R04 R10");
}

// The figures are there, where no reader sees them.
TEST_F(VerifyRecord, HiddenFigures) {
  const std::string readme = readme_text(submission_);
  for (const char* before :
       {"<!-- ", "```\n", "<details>\n<summary>more</summary>\n\n", "<div hidden>\n\n", "> ~~~\n",
        "<script>\n", "<p hidden>\n",
        // What closes stands before what opens, or where no reader takes it for that.
        "a --> b\n<!--\n", "</details>\n\n<details>\n", "```\n~~~\n", "````\n```\n", "```\n> ```\n",
        "<div hidden>\n\n`</div>`\n", "<div hidden>\n<img alt=\"</div>\">\n", "<div hidden>\n\n\\</div>\n",
        "<div hidden>\n\n[a](</div>)\n", "<?\n", "<![CDATA[\n", "<div hidden>\n\n    </div>\n",
        "<div hidden>\n```\n</div>\n```\n"}) {
    std::string text = readme;
    text.insert(text.find(figures_begin), before);
    write_file_atomically(file(readme_file), text);
    EXPECT_EQ(failed(folder()), "R12") << before;
  }
  std::string twice = readme + "\n" + readme_figures(submission_);
  write_file_atomically(file(readme_file), twice);
  EXPECT_EQ(failed(folder()), "R12");
  for (const char* before :
       {"<!-- a remark -->\n", "A <seed> and vector<float> <b>bold</b><br>\n",
        "<p align=\"center\"><a href=\"x\">it's a link</a></p>\n\n~~~sh\nx > y\n~~~\n"}) {
    std::string text = readme;
    text.insert(0, before);
    write_file_atomically(file(readme_file), text);
    EXPECT_EQ(failed(folder()), "") << before;
  }
}

// The best seed has 1.0528 bits per byte and 2.70 nats per token, the reference 1.069 at best.
TEST_F(VerifyRecord, ABetterScoreOutsideOfTheMeasuredPart) {
  const std::string readme = readme_text(submission_);
  const auto failed_with = [&](const std::string& more) {
    write_file_atomically(file(readme_file), readme + more);
    return failed(folder());
  };
  for (const char* claim : {"## Result of all seeds\n\nval_bpb 0.09999\n", "# 0.99 with more data\n",
                            "We reach 0.98765 in the end.\n", "**0.9** bits per byte\n",
                            "bpb of our model: 0.9\n", "val\\_bpb, `0.0271`\n", "0.0<b>9999</b>\n",
                            "0&#46;09999\n", "| seed | val_bpb |\n|---|---|\n| 42 | 0.5 |\n",
                            "| seed | 42 |\n|---|---|\n| bits/byte | 0.5 |\n", "![val_bpb 0.9](plot.svg)\n",
                            "\xEF\xBC\x90\xEF\xBC\x8E\xEF\xBC\x90\xEF\xBC\x99\xEF\xBC\x99\xEF\xBC\x99\n",
                            "0,09999\n", "validation loss 2.1\n", "2.1 nats per token\n", "val_bpb 9.9e-1\n"})
    EXPECT_EQ(failed_with(claim), "R12") << claim;
  for (const char* honest :
       {"val_bpb 1.0528 with seed 42, 1.0567 with seed 314, before it 1.069 and 1.0810 bpb (PR 1493)\n",
        "Without the gate 1.0712; better by 0.0123 bpb (+0.002, std 0.0004), p = 0.0021\n",
        "- lr 0.022 and 0.0221, decay 0.9965, 0.1234 s a step, version 0.9.1, 0.5 GB\n",
        "In 3 runs, bpb 1.1\n", "| change | delta bpb | lr |\n|---|---|---|\n| gate | 0.09 | 0.02 |\n",
        "training loss 2.1 nats per token\n"})
    EXPECT_EQ(failed_with(honest), "") << honest;
  EXPECT_EQ(failed_with(std::string(std::size_t{2} << 20, ' ')), "R12");
}

TEST_F(VerifyRecord, ABetterScoreInTheWordsOfSubmissionJson) {
  const Submission sound = submission_;
  for (std::string Submission::*text : {&Submission::name, &Submission::blurb, &Submission::hardware}) {
    submission_ = sound;
    submission_.*text = "val_bpb 0.95 on 8 GPUs";
    restate();
    EXPECT_EQ(failed(folder()), "R12") << submission_.*text;
  }
  submission_ = sound;
  submission_.comparison->name = "the record of 0.98";
  restate();
  EXPECT_EQ(failed(folder()), "R12");
}

// A file of words that say more than README.md may.
TEST_F(VerifyRecord, AListedFileThatThisProgramDoesNotMake) {
  write_file_atomically(file("RESULTS.md"), "val_bpb 0.09999\n");
  submission_.files.push_back({"RESULTS.md", 0, ""});
  sum_again();
  EXPECT_EQ(failed(folder()), "R10");
}

TEST_F(VerifyRecord, AFileThatNobodyListed) {
  write_file_atomically(file("weights.bin"), "more");
  EXPECT_EQ(failed(folder()), "R10");
}

TEST_F(VerifyRecord, AListedNameThatLeadsOutOfTheFolder) {
  submission_.files[0].name = "../" + folder().filename().string() + "/" + source_file;
  restate();
  EXPECT_NE(failed(folder()).find("R10"), std::string::npos);
}

// Fields that a reader may take for the result, next to those that are checked.
TEST_F(VerifyRecord, AFieldThatThisProgramDoesNotWrite) {
  const std::string sound = read_file(file(submission_file));
  for (const auto& [from, to] : {std::pair{"{\n", "{\n \"val_b\xD1\x80\x62\": 0.9,\n"},
                                 std::pair{"\"author\"", "\"val_bpb_final\": 0.9,\n \"author\""},
                                 std::pair{"\"reference_bpb\"", "\"interval\": [0, 1], \"reference_bpb\""},
                                 std::pair{"\"steps\": 20", "\"steps\": 20, \"step\": 2"}}) {
    write_file_atomically(file(submission_file), sound);
    samples::edit(file(submission_file), from, to);
    EXPECT_EQ(failed(folder()), "R01") << to;
  }
}

TEST_F(VerifyRecord, ASeedBeyondWhatSeedsAre) {
  samples::edit(file(submission_file), " 42,", " 18446744073709551574,");
  EXPECT_NE(sentence_of([&] { verify_submission(folder()); }).find("seeds has something other"),
            std::string::npos);
}

TEST_F(VerifyRecord, AReadmeThatIsNoFile) {
  fs::remove(file(readme_file));
  fs::create_directory(file(readme_file));
  EXPECT_EQ(failed(folder()), "R01");
}

// More time than the challenge gives, on a track whose name looks like its own.
TEST_F(VerifyRecord, ATrackThatLooksLikeAnother) {
  for (const auto& [name, ids] : {std::pair{"10m\xD1\x96n_16mb", "R01"}, std::pair{"10min_16mb ", "R01 R08"},
                                  std::pair{"10MIN_16mb", "R08"}, std::pair{"track_10min_16mb", "R08"}}) {
    submission_.track = name;
    submission_.budgets->train_seconds = 3600;
    for (const SeedResult& result : submission_.results)
      write_file_atomically(file(result.log),
                            samples::sample_log(result) + samples::sample_summary(submission_, result));
    sum_again();
    EXPECT_EQ(failed(folder()), ids) << name;
  }
}

TEST_F(VerifyRecord, ARuleThatAsksForLess) {
  submission_.track = "10min_16mb";
  restate();
  EXPECT_EQ(failed(folder()), "");
  submission_.comparison->margin_nats = -10;
  compare(submission_, *submission_.comparison);
  restate();
  EXPECT_EQ(failed(folder()), "R11");
}

TEST_F(VerifyRecord, ANoteOfSomebodyElse) {
  submission_.comparison->notes.emplace_back("confirmed by the maintainers");
  restate();
  EXPECT_EQ(failed(folder()), "R11");
}

// A better end is written behind a log's own.
TEST_F(VerifyRecord, ALogWithTwoEnds) {
  const SeedResult first = submission_.results[0];
  const std::string log = read_file(file(first.log));
  SeedResult better = first;
  *better.val_loss -= 0.1;
  *better.val_bpb = *better.val_loss * 1000 / std::numbers::ln2 / 3700;
  for (const std::string& more :
       {samples::sample_summary(submission_, better), samples::sample_log(better)}) {
    write_file_atomically(file(first.log), more + log);
    sum_again();
    EXPECT_EQ(failed(folder()), "R05") << more;
  }
}

TEST_F(VerifyRecord, AnOverlapThatCannotBe) {
  submission_.overlap->similar = -0.5;
  restate();
  EXPECT_EQ(failed(folder()), "R13");
  submission_.overlap->similar = 0;
  submission_.overlap->training_read = submission_.overlap->training_tokens + 1;
  restate();
  EXPECT_EQ(failed(folder()), "R13");
}

// README tells how to unpack the source.
TEST_F(VerifyRecord, SourceThatLeadsOutOfItsFolder) {
  for (const char* name : {"../.bashrc", "/etc/profile", "framework/../../x"}) {
    std::vector<std::pair<std::string, std::string>> tree = samples::sample_tree();
    tree.emplace_back(name, "x");
    write_file_atomically(file(whole_source_file), compress(Compression::brotli, tar_archive(tree)));
    submission_.source_sha256 = source_digest(tree);
    for (const SeedResult& result : submission_.results)
      write_file_atomically(file(result.log),
                            samples::sample_log(result) + samples::sample_summary(submission_, result));
    sum_again();
    EXPECT_EQ(failed(folder()), "R09") << name;
  }
}

TEST_F(VerifyRecord, APrettierP) {
  submission_.comparison->p /= 2;
  restate();
  EXPECT_EQ(failed(folder()), "R11");
}

TEST_F(VerifyRecord, ValidationTextInTheTrainingData) {
  submission_.overlap->similar = 0.1;
  restate();
  EXPECT_EQ(failed(folder()), "R13");
  EXPECT_EQ(refused_with(folder()), 1);
  submission_.overlap.reset();
  restate();
  EXPECT_EQ(failed(folder()), "R13");
}

TEST_F(VerifyRecord, AFolderThatIsNone) {
  EXPECT_NE(sentence_of([&] { verify_submission(file("nowhere")); }).find("is not a folder"),
            std::string::npos);
  fs::create_directory(file("empty"));
  EXPECT_NE(sentence_of([&] { verify_submission(file("empty")); }).find("holds no submission.json"),
            std::string::npos);
}

}  // namespace
}  // namespace mulligan::record::record_verify_test
