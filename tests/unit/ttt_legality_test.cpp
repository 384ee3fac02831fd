// Test-time training is legal, and these tests can fail: a host that breaks its order on purpose is caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/ttt/ttt_outputs.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_legality_test {
namespace {

const std::vector<int> kLengths = {9, 14, 31, 7, 22, 12, 18, 27};

// The losses of a run of class `Run`, which books each token once.
template <typename Run>
std::vector<float> losses_of(const std::vector<std::uint16_t>& tokens, const TttConfig& config,
                             TttListener* listener = nullptr, const std::vector<float>& without = {}) {
  const TinyOutcome outcome =
      run_tiny<Run>({.config = config, .tokens = tokens, .without = without, .listener = listener});
  EXPECT_EQ(outcome.report.sums.tokens, tokens.size() - 1);
  return outcome.losses;
}

// Scores that must stay the same and moved when the tokens of `document` from position `from` on (>= 1) were replaced.
template <typename Run>
std::vector<std::size_t> moved_by_later_tokens(int document, std::int64_t from,
                                               const TttConfig& config = tiny_config(),
                                               const std::vector<float>& reference = {}) {
  const std::vector<std::uint16_t> tokens = made_up_stream(kLengths);
  const DocumentPlan plan = plan_documents(tokens, 1, config);
  const Document& where = plan.document(document);
  std::vector<std::uint16_t> changed = tokens;
  for (std::int64_t i = from; i < where.length - 1; ++i) {
    auto& token = changed[static_cast<std::size_t>(where.start + i)];
    token = static_cast<std::uint16_t>(2 + (token - 2 + 5) % (kTinyVocabulary - 2));
  }
  const std::vector<float> before = losses_of<Run>(tokens, config, nullptr, reference);
  const std::vector<float> after = losses_of<Run>(changed, config, nullptr, reference);
  std::vector<std::size_t> moved;
  bool past = true;
  for (const PlannedBatch& batch : plan.queue) {
    bool here = false;
    for (const int number : batch.documents) {
      const Document& one = plan.document(number);
      here = here || number == document;
      // The document's own tokens from the first changed one on may move, and so may later batches.
      const std::int64_t last = number == document ? from : one.length;
      for (std::int64_t i = 1; past && i < last; ++i) {
        const auto target = static_cast<std::size_t>(one.start + i);
        if (std::memcmp(&before[target], &after[target], sizeof(float)) != 0) moved.push_back(target);
      }
    }
    if (here) past = false;
  }
  EXPECT_NE(before, after) << "the changed tokens themselves must score differently";
  return moved;
}

// reveals_early: a chunk before its scores are final. reveals_nothing: trains on a chunk all the same. trains_early: on a
// chunk before its scores are final, past the book's refusal: what a broken host would do.
enum class Fault { reveals_early, reveals_nothing, trains_early };

template <Fault fault>
class FaultyRun : public TttScorer {
 public:
  using TttScorer::TttScorer;

 protected:
  void take_turn(Turn& turn) override {
    score(turn);
    if (fault == Fault::reveals_early && turn.trains) reveal(turn);
    if (fault == Fault::trains_early && turn.trains) {
      turn.program.set_weights(std::vector<float>(turn.targets.size(), 0.1F));
      turn.set.update(turn.program, 0.02);
      score(turn);
    }
    book(turn);
    if (fault == Fault::reveals_nothing && turn.trains) update(turn);
  }
};

TEST(TttLegality, LaterTokensMoveNoEarlierScore) {
  // In the middle of a chunk, at its start, in the first chunk; in the longest and in a short document.
  for (const auto& [document, from] : {std::pair{2, 13}, {2, 10}, {7, 3}, {1, 8}}) {
    EXPECT_EQ(moved_by_later_tokens<TttScorer>(document, from), std::vector<std::size_t>{})
        << "document " << document << " changed from " << from;
  }
}

// Counts what happens to adapters before and after a fallback.
class Fallbacks : public TttListener {
 public:
  void on_event(const TttEvent& event) override {
    if (event.kind == TttEventKind::collapse) collapsed_after = event.queue;
    if (event.kind == TttEventKind::fallback) fell_back = true;
    if (event.kind == TttEventKind::update) ++(fell_back ? updates_after : updates_before);
    if (event.kind == TttEventKind::reveal && fell_back) ++updates_after;
  }
  std::int64_t collapsed_after = -1;
  int updates_before = 0, updates_after = 0;
  bool fell_back = false;
};

// Later tokens move no earlier score, each token is booked once (losses_of), and no adapter is touched after the fallback.
TEST(TttLegality, AFallbackDependsOnThePastOnly) {
  TttConfig config = tiny_config();
  config.on_collapse = OnCollapse::fallback;
  config.prefix_documents = 0;
  const std::vector<std::uint16_t> tokens = made_up_stream(kLengths);
  const DocumentPlan plan = plan_documents(tokens, 1, config);
  ASSERT_GE(plan.queue.size(), 3u);
  // Unbeatable on the second batch, hopeless on all others: fires after the second.
  std::vector<float> reference(tokens.size(), 20.0F);
  for (const TargetRange& range : plan.ranges(plan.batch(1)))
    std::fill_n(reference.begin() + range.first, range.count(), -1000.0F);
  Fallbacks seen;
  losses_of<TttScorer>(tokens, config, &seen, reference);
  EXPECT_EQ(seen.collapsed_after, 1);
  EXPECT_TRUE(seen.fell_back);
  EXPECT_GT(seen.updates_before, 0);
  EXPECT_EQ(seen.updates_after, 0);
  for (const std::size_t queue : {0, 1, 2}) {
    const int document = plan.queue[queue].documents.front();
    EXPECT_EQ(moved_by_later_tokens<TttScorer>(document, 3, config, reference), std::vector<std::size_t>{})
        << "document " << document;
  }
}

TEST(TttLegality, NothingIsRevealedBeforeItIsBooked) {
  const auto tokens = made_up_stream(kLengths);
  EXPECT_TRUE(contains(said_by([&] { losses_of<FaultyRun<Fault::reveals_early>>(tokens, tiny_config()); }),
                       "has no score yet"));
  EXPECT_TRUE(contains(said_by([&] { losses_of<FaultyRun<Fault::reveals_nothing>>(tokens, tiny_config()); }),
                       "before it is revealed"));
}

TEST(TttLegality, ABrokenOrderIsSeenByTheProbe) {
  EXPECT_NE(moved_by_later_tokens<FaultyRun<Fault::trains_early>>(2, 13), std::vector<std::size_t>{});
}

TEST(TttLegality, EachTokenIsBookedOnce) {
  const std::vector<std::uint16_t> tokens = {1, 5, 6, 7};
  ScoreBook book(tokens, nullptr);
  book.enter(2, 1.5F);
  EXPECT_THROW(book.enter(2, 1.0F), std::logic_error);
  EXPECT_THROW(book.enter(0, 1.0F), std::logic_error);
  EXPECT_THROW(book.enter(4, 1.0F), std::logic_error);
  EXPECT_THROW(book.enter(1, NAN), Error);
  EXPECT_EQ(book.sums().tokens, 1u);
  EXPECT_EQ(book.loss(2), 1.5F);
  EXPECT_THROW(book.sums({1, 3}), std::logic_error);
}

// exp(-loss) over every possible target is a distribution, with adapters at work.
TEST(TttLegality, ProbabilitiesSumToOne) {
  TttRunner runner(tiny_options());
  runner.set_random_parameters(3);
  const WindowShape shape{2, 9, 9};
  TttConfig config;
  config.context_tokens = shape.context;
  const TttSetup setup = runner.setup(config);
  AdapterSet set(runner.model(), setup, shape.documents, {shape});
  SharedArena arena(runner.store().backend());
  arena.bind(set.programs(), runner.store());
  upload_window_rope(runner.model(), shape.context);
  set.fill_at_random();
  WindowProgram& window = set.window(shape);
  std::vector<std::int32_t> tokens, positions, targets(static_cast<std::size_t>(shape.tokens()));
  for (std::int64_t i = 0; i < shape.tokens(); ++i) {
    tokens.push_back(static_cast<std::int32_t>(i % kTinyVocabulary));
    positions.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<double> sums(tokens.size());
  for (std::int32_t target = 0; target < kTinyVocabulary; ++target) {
    std::ranges::fill(targets, target);
    window.set_inputs(tokens, positions, targets);
    window.forward();
    const std::vector<float> losses = window.losses();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += std::exp(-static_cast<double>(losses[i]));
  }
  for (const double sum : sums) EXPECT_NEAR(sum, 1.0, 1e-5);
}

// The audit log alone proves the order: no chunk is revealed before it was booked, none is booked twice.
TEST(TttLegality, TheAuditLogTellsTheOrder) {
  const test_support::ScratchFolder folder;
  const auto path = folder / "audit.jsonl";
  const std::vector<std::uint16_t> tokens = made_up_stream(kLengths);
  const TttConfig config = tiny_config();
  TttOutputs audit({{}, path, nullptr}, config);
  losses_of<TttScorer>(tokens, config, &audit);
  std::ifstream file(path);
  std::map<std::pair<int, int>, std::string> chunks;  // (document, chunk) -> last event
  int sequence = 0, updates = 0, phases = 0;
  for (std::string line; std::getline(file, line);) {
    const auto event = nlohmann::json::parse(line);
    EXPECT_EQ(event.at("sequence"), sequence++);
    const std::string what = event.at("event");
    if (what == "phase") ++phases;
    if (what == "update") ++updates;
    if (!event.contains("chunk")) continue;
    static const std::map<std::string, std::string> before = {
        {"score", ""}, {"book", "score"}, {"plan", "book"}, {"reveal", "plan"}, {"update", "reveal"}};
    for (const int document : event.at("documents")) {
      std::string& last = chunks[{document, event.at("chunk").get<int>()}];
      EXPECT_EQ(last, before.at(what)) << line;
      last = what;
    }
  }
  EXPECT_GT(updates, 0);
  EXPECT_EQ(phases, 1);
  const DocumentPlan plan = plan_documents(tokens, 1, config);
  std::size_t expected = 0;
  for (const PlannedBatch& batch : plan.queue) {
    for (const int number : batch.documents)
      expected += static_cast<std::size_t>(chunk_count(plan.targets(number), batch.chunk_tokens));
  }
  EXPECT_EQ(chunks.size(), expected);
}

// Every document with tokens in a chunk has a window in it; finished ones at most a third of the windows.
TEST(TttLegality, UnfinishedDocumentsHaveWindows) {
  std::vector<int> lengths;
  for (int i = 0; i < 40; ++i) lengths.push_back(2 + i * i / 4);
  TttConfig config = tiny_config();
  config.batch_documents = 40;
  const DocumentPlan plan = plan_documents(made_up_stream(lengths), 1, config);
  const PlannedBatch& batch = plan.queue.front();
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
    std::int64_t active = 0;
    for (const int number : batch.documents) {
      if (plan.targets(number) > chunk * batch.chunk_tokens) ++active;
    }
    const std::int64_t windows = window_shape(plan, batch, chunk, config.context_tokens).documents;
    EXPECT_GE(windows, active);
    EXPECT_LE(3 * (windows - active), windows);
    EXPECT_LE(windows, 40);
  }
}

}  // namespace
}  // namespace mulligan::ttt_legality_test
