// What mulligan record --verify refuses: a folder is sound, then one thing in it is changed, and the right
// check says so.
#include "framework/record/verify.h"

#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/unit/record_support.h"

namespace mulligan::record {
namespace {

namespace fs = std::filesystem;
using doctor::Finding;
using doctor::Verdict;
using mulligan::testing::ScratchFolder;

// Ids of the checks that fail, blanks between.
std::string failed(const fs::path& folder) {
  std::string ids;
  for (const Finding& finding : verify_submission(folder)) {
    if (finding.verdict == Verdict::fail) ids += (ids.empty() ? "" : " ") + finding.id;
  }
  return ids;
}

int refused_with(const fs::path& folder) {
  try {
    require_sound(folder, verify_submission(folder));
    return 0;
  } catch (const Error& error) {
    return static_cast<int>(error.code());
  }
}

class VerifyRecord : public ::testing::Test {
 protected:
  void SetUp() override { submission_ = testing::write_sample(folder()); }
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
  EXPECT_EQ(findings.size(), 13U);
  for (const Finding& finding : findings)
    EXPECT_EQ(finding.verdict, Verdict::pass) << finding.id << ": " << finding.message;
  EXPECT_EQ(refused_with(folder()), 0);
}

TEST_F(VerifyRecord, FreeTextOfTheReadmeMayChangeItsFiguresMayNot) {
  testing::edit(file(readme_file), "## Files", "Thanks to all.\n\n## Files");
  EXPECT_EQ(failed(folder()), "");
  testing::edit(file(readme_file), "| 42 |", "| 43 |");
  EXPECT_EQ(failed(folder()), "R12");
}

TEST_F(VerifyRecord, AnEditedLog) {
  testing::edit(file("train_seed42.log"), "step 20", "step 21");
  EXPECT_EQ(failed(folder()), "R10");
  EXPECT_EQ(refused_with(folder()), 3);
}

// Somebody lowers a score in log, submission.json, sums, means, statistics and README alike.
TEST_F(VerifyRecord, ALogEditedWithItsSums) {
  const double lower = *submission_.results[0].val_bpb - 0.01;
  const fs::path log = file("train_seed42.log");
  testing::edit(log, fmt::format("val_bpb:{}", *submission_.results[0].val_bpb),
                fmt::format("val_bpb:{}", lower));
  submission_.results[0].val_bpb = lower;
  sum_again();
  EXPECT_NE(failed(folder()).find("R05"),
            std::string::npos);  // neither the log's own line nor the arithmetic agree
  EXPECT_NE(failed(folder()).find("R03"), std::string::npos);
}

// What would contradict a claim is taken out instead: in a folder of this program nothing may be missing.
TEST_F(VerifyRecord, ALogWithoutItsOwnLine) {
  testing::edit(file("train_seed42.log"), "with test-time training:", "without:");
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
                          testing::sample_log(result) + summary_lines(result, *submission_.budgets));
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

TEST_F(VerifyRecord, AFileThatNobodyListed) {
  write_file_atomically(file("weights.bin"), "more");
  EXPECT_EQ(failed(folder()), "R10");
}

TEST_F(VerifyRecord, AListedNameThatLeadsOutOfTheFolder) {
  submission_.files[0].name = "../" + folder().filename().string() + "/" + source_file;
  restate();
  EXPECT_NE(failed(folder()).find("R10"), std::string::npos);
}

TEST_F(VerifyRecord, APrettierP) {
  submission_.comparison->p /= 2;
  restate();
  EXPECT_EQ(failed(folder()), "R11");
}

TEST_F(VerifyRecord, ValidationTextInTheTrainingData) {
  submission_.overlap->share = 0.02;
  restate();
  EXPECT_EQ(failed(folder()), "R13");
  EXPECT_EQ(refused_with(folder()), 1);
  submission_.overlap.reset();
  restate();
  EXPECT_EQ(failed(folder()), "R13");
}

TEST_F(VerifyRecord, AFolderThatIsNone) {
  EXPECT_NE(sentence_of([&] { verify_submission(file("nowhere")); }).find("is no folder"), std::string::npos);
  fs::create_directory(file("empty"));
  EXPECT_NE(sentence_of([&] { verify_submission(file("empty")); }).find("holds no submission.json"),
            std::string::npos);
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
    if (finding.verdict != Verdict::skip) continue;
    skipped += finding.id + " ";
    EXPECT_FALSE(finding.message.empty());
  }
  EXPECT_EQ(skipped, "R07 R09 R10 R11 R12 R13 ");  // no claims of seconds, packed code, sums, statistics
}

TEST_F(VerifyOthers, AClaimThatTheLogDoesNotBear) {
  testing::edit(scratch_ / "submission.json", "1.08079", "1.07979");
  EXPECT_EQ(failed(scratch_.path()), "R03 R05");
}

TEST_F(VerifyOthers, TooManyBytes) {
  testing::edit(scratch_ / "submission.json", "15992929", "16000001");
  testing::edit(scratch_ / "train_seed314.log", "15976299", "15983371");
  testing::edit(scratch_ / "train_seed314.log", "15992929", "16000001");
  EXPECT_EQ(failed(scratch_.path()), "R08");
  EXPECT_EQ(refused_with(scratch_.path()), 1);
}

TEST_F(VerifyOthers, TooManySeconds) {
  testing::edit(scratch_ / "train_seed314.log", "588047ms", "601153ms");
  EXPECT_EQ(failed(scratch_.path()), "R08");
}

TEST_F(VerifyOthers, NoLogOfASeed) {
  fs::remove(scratch_ / "train_seed314.log");
  EXPECT_EQ(failed(scratch_.path()), "R04");
}

}  // namespace
}  // namespace mulligan::record
