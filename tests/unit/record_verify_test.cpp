// What mulligan record --verify refuses: a folder is sound, then one thing in it is changed, and the right
// check reports it.
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

TEST_F(VerifyRecord, AnEditedLog) {
  samples::edit(file("train_seed42.log"), "step 20", "step 21");
  EXPECT_EQ(failed(folder()), "R10");
  EXPECT_EQ(refused_with(folder()), 3);
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

TEST_F(VerifyRecord, AClaimTakenOut) {
  submission_.results[0].eval_seconds.reset();
  restate();
  EXPECT_TRUE(contains(failed(folder()), "R07"));
}

TEST_F(VerifyRecord, AMissingOrSwappedLog) {
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
}

TEST_F(VerifyRecord, ABrokenBudgetIsARuleBroken) {
  submission_.budgets->artifact_bytes = 5000;
  restate();
  EXPECT_EQ(failed(folder()), "R08");
  EXPECT_EQ(refused_with(folder()), 1);
}

TEST_F(VerifyRecord, TheTrackOfTenMinutesHasTheChallengesLimits) {
  submission_.track = "10min_16mb";
  submission_.budgets = Budgets{3600, 3600, 6000};
  SeedResult& result = submission_.results[0];
  result.train_seconds = 601;
  write_file_atomically(file(result.log), samples::sample_log(result));
  sum_again();
  EXPECT_EQ(failed(folder()), "R08");
}

TEST_F(VerifyRecord, OtherCodeThanWasCounted) {
  write_file_atomically(file(source_file), "packed code!");
  EXPECT_EQ(failed(folder()), "R09 R10");
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
}

TEST_F(VerifyRecord, TheUnpackerCounts) {
  write_file_atomically(file(unpacker_file), "int main() { return 0; }");
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
}

// Bytes with the right length and sum are not yet the source.
TEST_F(VerifyRecord, SourceThatIsNone) {
  write_file_atomically(file(whole_source_file), std::string(100, 'x'));
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
  auto tree = samples::sample_tree();
  tree[1].second = "int main() { return 1; }\n";
  write_file_atomically(file(whole_source_file), compress(Compression::brotli, tar_archive(tree)));
  sum_again();
  EXPECT_EQ(failed(folder()), "R09");
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
  EXPECT_TRUE(contains(sentence_of([&] { verify_submission(folder()); }), "says 'val_bpb' twice"));
}

TEST_F(VerifyRecord, ALinkOutOfTheFolder) {
  const ScratchFolder elsewhere;
  const fs::path log = file(submission_.results[0].log);
  fs::rename(log, elsewhere / "log");
  fs::create_symlink(elsewhere / "log", log);
  EXPECT_EQ(failed(folder()), "R04 R10");
}

TEST_F(VerifyRecord, AFileThatNobodyListed) {
  write_file_atomically(file("weights.bin"), "more");
  EXPECT_EQ(failed(folder()), "R10");
}

TEST_F(VerifyRecord, AListedNameThatLeadsOutOfTheFolder) {
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
  EXPECT_TRUE(contains(sentence_of([&] { verify_submission(file("nowhere")); }), "is not a folder"));
  fs::create_directory(file("empty"));
  EXPECT_TRUE(contains(sentence_of([&] { verify_submission(file("empty")); }), "holds no submission.json"));
}

}  // namespace
}  // namespace mulligan::record::record_verify_test
