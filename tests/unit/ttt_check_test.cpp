// What the check of scores looks at and what it costs; that it finds scores which read what they may not.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <set>

#include "framework/ttt/causality.h"
#include "tests/support/built.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_check_test {
namespace {

constexpr std::int64_t kChunk = 5, kChunks = 30, kContext = kChunk * kChunks;

TttConfig config_of(TttCheck check, std::int64_t documents = 4) {
  TttConfig config;
  config.batch_documents = documents;
  config.chunk_tokens = kChunk;
  config.context_tokens = kContext;
  config.on_collapse = OnCollapse::off;
  config.check = check;
  return config;
}

// Batches of documents with thirty chunks each, whose windows are all of different lengths.
std::vector<std::uint16_t> thirty_chunks(int documents = 4) {
  return made_up_stream(std::vector<int>(static_cast<std::size_t>(documents), kContext));
}

// Four sizes, by batches: the passes cost 1 % at most, and nearly so where there are many.
TEST(TttCheck, ASampledOneTakesOnePercent) {
  for (const int batches : {1, 4, 16, 64}) {
    const TttConfig config = config_of(TttCheck::sampled);
    const DocumentPlan plan = plan_documents(thirty_chunks(4 * batches), 1, config);
    const SuffixCheck check(TttCheck::sampled, true, plan, kContext, kTinyVocabulary);
    std::int64_t checks = 0, cost = 0, chunks = 0;
    for (std::int64_t queue = 0; queue < batches; ++queue) {
      for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
        const std::int64_t tokens = 4 * kChunk * (chunk + 1);
        cost += chunk + 1 < kChunks ? 4 * tokens : tokens;  // forward, backward and update; forward alone
        if (!check.checks(queue, chunk)) continue;
        checks += tokens;
        ++chunks;
      }
    }
    const double share = static_cast<double>(checks) / static_cast<double>(cost);
    EXPECT_EQ(check.summary().chunks, chunks);
    EXPECT_EQ(check.summary().cuts, 4 * chunks);
    EXPECT_DOUBLE_EQ(check.summary().share, share);
    EXPECT_LE(share, 0.01) << batches;
    EXPECT_GT(share, 0.009) << batches;
  }
}

TEST(TttCheck, SaysWhyNothingWasChecked) {
  const DocumentPlan plan = plan_documents(made_up_stream({3, 4}), 1, config_of(TttCheck::sampled));
  const auto text = [&](TttCheck mode, bool repeats) {
    const SuffixCheck check(mode, repeats, plan, kContext, kTinyVocabulary);
    EXPECT_EQ(check.summary().chunks, mode == TttCheck::full && repeats ? 1 : 0);
    return check.summary().text();
  };
  EXPECT_NE(text(TttCheck::sampled, true).find("none fits into 1 %"), std::string::npos);
  EXPECT_NE(text(TttCheck::off, true).find("ttt.check = \"off\""), std::string::npos);
  EXPECT_NE(text(TttCheck::full, false).find("does not give the same bits twice"), std::string::npos);
  EXPECT_NE(text(TttCheck::full, true).find("1 of 1 chunks"), std::string::npos);
}

// Two documents with windows of 12 tokens. The first has 8 scored tokens at the end, the second 3.
TEST(TttCheck, TokensAndTargetsAfterACutAreChanged) {
  const WindowShape shape{2, 12, 8};
  const std::vector<ChunkWindow> windows = {{0, 12, 4, 8}, {0, 12, 9, 3}};
  std::vector<std::int32_t> tokens(24), targets(16, 7);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i);
  const DocumentPlan plan = plan_documents(made_up_stream({9, 4}), 1, config_of(TttCheck::full, 2));
  const SuffixCheck check(TttCheck::full, true, plan, kContext, kTinyVocabulary);
  ASSERT_TRUE(check.checks(0, 0));
  EXPECT_EQ(check.passes(0, 7, shape, windows, tokens, targets).size(), 0u) << "there is no such chunk";
  const auto passes = check.passes(0, 0, shape, windows, tokens, targets);
  ASSERT_EQ(passes.size(), 4u);  // a chunk of five tokens has four cuts
  std::set<std::size_t> cuts;
  for (const SuffixCheck::Pass& pass : passes) {
    ASSERT_EQ(pass.kept.size(), windows.size());
    cuts.insert(pass.kept[0].normalisers);
    for (std::size_t window = 0; window < windows.size(); ++window) {
      const auto& [first, losses, normalisers] = pass.kept[window];
      EXPECT_EQ(first, window * 8);
      const bool cut = losses != normalisers;
      EXPECT_EQ(cut, losses + 1 == normalisers);
      for (std::size_t i = 0; i < 12; ++i) {
        const std::size_t at = window * 12 + i;
        const bool before = i < static_cast<std::size_t>(windows[window].chunk_offset) + normalisers;
        EXPECT_EQ(pass.tokens[at] == tokens[at], before) << "window " << window << " token " << i;
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(windows[window].chunk_length); ++i)
        EXPECT_EQ(pass.targets[first + i] == targets[first + i], i < losses) << "target " << i;
    }
  }
  EXPECT_EQ(cuts.size(), passes.size()) << "no cut twice";
  EXPECT_EQ(passes[2].kept[1].losses, 3u) << "the second window has two cuts";
}

// Adapters of smuggling.cpp behave while they are probed. `window`: the length of the windows in which they do not; 0: all.
// Whether the run is invalid.
bool found(const std::string& how, std::int64_t window, TttCheck check) {
  TttRunner::Options options = tiny_options(fmt::format("how = \"{}\"\nnumber = {}", how, window));
  options.adapter_plugin = "smuggling";
  options.adapter_file = (test_support::built("ttt_plugins") / "mulligan_smuggling.so").string();
  options.base = "none";
  TinyScorer<> tiny(TinyRun{.options = options, .config = config_of(check), .tokens = thirty_chunks()});
  // No recording gives an adapter the targets, so the test does.
  void* loaded = ::dlopen(options.adapter_file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  using Reveal = void (*)(std::int64_t, std::int64_t, const std::int32_t*);
  const auto reveal = loaded ? reinterpret_cast<Reveal>(::dlsym(loaded, "smuggle_reveal")) : nullptr;
  EXPECT_NE(reveal, nullptr);
  for (std::int64_t tokens_of = 2 * kChunk; reveal && tokens_of <= kContext; tokens_of += kChunk) {
    const std::string name = fmt::format("ttt/window/4x{}x{}/targets", tokens_of, kChunk);
    reveal(tokens_of, kChunk, static_cast<const std::int32_t*>(tiny.runner.store().address(name)));
  }
  if (loaded) ::dlclose(loaded);
  try {
    EXPECT_EQ(tiny.scorer->run().sums.tokens, tiny.how.tokens.size() - 1);
  } catch (const InvalidRun&) {
    return true;
  }
  return false;
}

TEST(TttCheck, FindsScoresThatReadAhead) {
  EXPECT_FALSE(found("honest_kernel", 0, TttCheck::full));
  for (const char* how : {"kernel_unlike_probe", "targets_unlike_probe", "other_document_unlike_probe"}) {
    EXPECT_TRUE(found(how, 0, TttCheck::sampled)) << how;
    EXPECT_TRUE(found(how, 0, TttCheck::full)) << how;
    EXPECT_FALSE(found(how, 0, TttCheck::off)) << how;
  }
}

// In one chunk of thirty: a full check finds it, a sampled one where it looks at that chunk.
TEST(TttCheck, FindsOneChunkOfThirty) {
  const TttConfig config = config_of(TttCheck::sampled);
  const SuffixCheck sampled(TttCheck::sampled, true, plan_documents(thirty_chunks(), 1, config), kContext,
                            kTinyVocabulary);
  int looked_at = 0, passed_over = 0;
  for (std::int64_t chunk = 1; chunk < kChunks; ++chunk) {
    const bool looks = sampled.checks(0, chunk);
    int& seen = looks ? looked_at : passed_over;
    if (++seen > 1) continue;
    const std::int64_t window = (chunk + 1) * kChunk;
    EXPECT_EQ(found("kernel_unlike_probe", window, TttCheck::sampled), looks) << chunk;
    EXPECT_TRUE(found("kernel_unlike_probe", window, TttCheck::full)) << chunk;
  }
  EXPECT_GT(looked_at, 0);
  EXPECT_GT(passed_over, 0);
}

}  // namespace
}  // namespace mulligan::ttt_check_test
