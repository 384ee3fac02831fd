// What seconds, steps and files may say of themselves: results against their digests, first steps against those behind them,
// time before the training clock, libraries against the build.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/core/child_process.h"
#include "framework/core/elf_file.h"
#include "framework/core/sealed_json.h"
#include "framework/plugin/build_plugins.h"
#include "framework/run/run_ledger.h"
#include "framework/train/strict_guards.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::honest_books_test {
namespace {

using Json = nlohmann::ordered_json;

TEST(Seal, KeepsWhatWasWritten) {
  const Json result = {{"val_bpb", 1.0 / 3},
                       {"count", std::uint64_t{1} << 63},
                       {"zero", -0.0},
                       {"text", "\xff\n"},
                       {"none", std::numeric_limits<double>::quiet_NaN()},
                       {"list", {1, 2.5, nullptr}}};
  const std::string text = sealed(result).dump(2, ' ', false, Json::error_handler_t::replace);
  Json read = Json::parse(text);
  EXPECT_EQ(seal_of(read), Seal::intact);
  read["val_bpb"] = 0.3;
  EXPECT_EQ(seal_of(read), Seal::broken);
  read.erase(seal_key);
  EXPECT_EQ(seal_of(read), Seal::absent);
}

std::vector<StepMove> steps(std::size_t count, auto&& distance, auto&& gradient) {
  std::vector<StepMove> moves;
  for (std::size_t i = 0; i < count; ++i)
    moves.push_back({distance(static_cast<double>(i)), 0.01, gradient(static_cast<double>(i))});
  return moves;
}
constexpr std::size_t judged = FirstSteps::judged;

TEST(FirstSteps, HonestOptimisersPass) {
  const auto one = [](double) { return 1.0; };
  // Adam: every element moves by the whole rate at first, and by a sixth of it where gradients are noise.
  EXPECT_FALSE(find_long_move(steps(
                                  32, [](double i) { return i < 1 ? 1.0 : 0.16; }, one),
                              judged));
  // Without bias correction it begins short and comes to its longest step within the first ten.
  EXPECT_FALSE(find_long_move(steps(
                                  32, [](double i) { return i < 10 ? 0.3 + 0.7 * i : 1.5; }, one),
                              judged));
  // Gradient descent while the gradient falls to a hundredth.
  const auto falling = [](double i) { return std::pow(0.85, i); };
  EXPECT_FALSE(find_long_move(steps(32, falling, falling), judged));
  // A rate that warms up over all of these steps, and updates that are left out.
  std::vector<StepMove> moves = steps(32, one, one);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    moves[i].lr = moves[i].distance = 1e-4 * static_cast<double>(i + 1);
    if (i % 3 == 2) moves[i].distance = 0;
  }
  EXPECT_FALSE(find_long_move(moves, judged));
}

TEST(FirstSteps, WeightsThatWereMadeBeforeAreFound) {
  for (const std::size_t jump : {0u, 1u, 9u}) {
    auto moves = steps(
        32, [](double) { return 1.0; }, [](double) { return 2.0; });
    moves[jump].distance = 60;
    const auto found = find_long_move(moves, judged);
    ASSERT_TRUE(found) << jump;
    EXPECT_EQ(found->step, jump);
    EXPECT_DOUBLE_EQ(found->times, 60);
  }
  // Little by little over ten steps; and where nothing moves afterwards.
  EXPECT_TRUE(
      find_long_move(steps(
                         32, [](double i) { return i < 10 ? 20.0 : 1.0; }, [](double) { return 1.0; }),
                     judged));
  EXPECT_TRUE(find_long_move(steps(
                                 32, [](double i) { return i < 1 ? 1.0 : 0.0; }, [](double) { return 1.0; }),
                             judged));
}

TEST(LedgerClock, WarmUpAndPreparationCountBeyondTheirShare) {
  const auto used = [](double warmup, double compile) {
    RunLedger ledger;
    ledger.book({LedgerStage::train, {{"compile", compile}, {"warmup", warmup}, {"train", 500}}, {}, {}});
    LedgerConfig limits;
    limits.train_seconds = 600;
    return budget_uses(limits, ledger).at(0);
  };
  EXPECT_DOUBLE_EQ(used(60, 600).used, 500);
  EXPECT_EQ(used(60, 600).what, "train");
  EXPECT_DOUBLE_EQ(used(161, 600).used, 601);
  EXPECT_EQ(used(161, 600).what, "train + warmup beyond 60 s");
  EXPECT_DOUBLE_EQ(used(0, 900).used, 800);
  EXPECT_FALSE(used(0, 900).kept());
}

TEST(BuildPlugins, AreKnownByWhatTheyLoad) {
  const test_support::ScratchFolder folder;
  const std::filesystem::path program = "/proc/self/exe", copy = folder.path() / "a.so",
                              other = folder.path() / "b.so";
  std::string bytes = read_file(program);
  write_file_atomically(copy, bytes);
  const std::string digest = ElfFile(copy).loaded_sha256();
  EXPECT_EQ(digest, ElfFile(program).loaded_sha256());
  if (run_program({"strip", copy.string()}) == 0) {
    EXPECT_EQ(ElfFile(copy).loaded_sha256(), digest);
  }
  EXPECT_FALSE(is_foreign(copy)) << "no build is known";
  // One byte of what is loaded.
  ElfFile elf(program);
  for (const Elf64_Shdr& section : elf.sections()) {
    if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_size < 4096)
      continue;
    bytes[section.sh_offset + 100] ^= 1;
    break;
  }
  write_file_atomically(other, bytes);
  EXPECT_NE(ElfFile(other).loaded_sha256(), digest);
}

}  // namespace
}  // namespace mulligan::honest_books_test
