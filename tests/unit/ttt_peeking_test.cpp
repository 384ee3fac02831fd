// The recorder stops a plugin that tries to see more than it may, because it knows one tap's values only and keeps their rows
// apart. The plugin is tests/unit/ttt_plugins/peeking.cpp.
#include <gtest/gtest.h>

#include "tests/support/built.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_peeking_test {
namespace {

// The sentence with which a run with this attempt is refused; empty when it runs.
std::string refusal(const std::string& how) {
  TttRunner::Options options = tiny_options("how = \"" + how + "\"");
  options.adapter_plugin = "peeking";
  options.adapter_file = (test_support::built("ttt_plugins") / "mulligan_peeking.so").string();
  TttRunner runner(options);
  runner.set_random_parameters(3);
  const TttConfig config = tiny_config();
  const TttSetup setup = runner.setup(config);
  const std::vector<std::uint16_t> tokens = made_up_stream({9, 14, 31, 7, 22});
  try {
    TttScorer run(runner.model(), setup, {tokens, 1, nullptr, {}});
    EXPECT_EQ(run.run().sums.tokens, tokens.size() - 1);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(TttPeeking, AnHonestPluginRuns) {
  EXPECT_EQ(refusal("not_at_all"), "");
}

TEST(TttPeeking, TokensAndTargetsCannotBeNamed) {
  EXPECT_NE(refusal("foreign_value").find("is not among those that it was handed"), std::string::npos);
}

TEST(TttPeeking, NothingButDeclaredAdaptersIsKept) {
  EXPECT_NE(refusal("state").find("keeps nothing but its declared adapters"), std::string::npos);
}

TEST(TttPeeking, ARecorderThatWasKeptIsDead) {
  EXPECT_NE(refusal("late").find("the recording is over"), std::string::npos);
}

TEST(TttPeeking, ANextPositionCannotBeRead) {
  EXPECT_NE(refusal("next_position").find("would cut or shift tokens"), std::string::npos);
}

TEST(TttPeeking, AnotherDocumentCannotBeRead) {
  EXPECT_NE(refusal("other_document").find("would cut or shift tokens"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::ttt_peeking_test
