// mulligan_evaluate: scores an artifact, and nothing else. Its source is what a budget of bytes counts as code
// (docs/artifact.md).
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "framework/artifact/artifact_model.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/model/elements/stages.h"
#include "launch/evaluator/scoring.h"

namespace mulligan {
namespace {

void evaluate(std::vector<std::string> words) {
  const bool plain = std::erase(words, "--plain") > 0;
  std::int64_t ranks = 1;
  if (words.size() > 2 && words[0] == "--ranks") {
    const char* end = words[1].data() + words[1].size();
    const auto [rest, failed] = std::from_chars(words[1].data(), end, ranks);
    if (plain || failed != std::errc() || rest != end) ranks = 0;
    words.erase(words.begin(), words.begin() + 2);
  }
  config_error_if(words.size() < 3 || ranks < 1 || ranks > 64,
                  "usage: mulligan_evaluate [--plain | --ranks N] ARTIFACT TOKENIZER SHARD...");
  const Artifact artifact = parse_artifact(read_file(words[0]), words[0]);
  EvaluationSettings settings = read_evaluation_settings(artifact.evaluation);
  settings.ttt.check = TttCheck::off;  // `mulligan ttt` checks; scores are the same
  config_error_if(active_elements(settings.model) != settings.active,
                  "this evaluator lacks elements of the model; build it from the artifact's own files.");
  require_model(artifact, settings.model, words[0]);
  ScoredText text(artifact, settings, words[1], {words.begin() + 2, words.end()});
  const bool adapts = !plain && !settings.adapters.name.empty();
  const ScoreSums score =
      adapts ? score_adapting(artifact, settings, text, ranks) : score_plain(artifact, settings, text);
  fmt::print("val_bpb {} loss_nats {} tokens {} bytes {}\n", score.bpb(), score.loss_nats, score.tokens,
             score.bytes);
}

}  // namespace
}  // namespace mulligan

int main(int count, char** words) {
  try {
    mulligan::evaluate({words + 1, words + count});
    return 0;
  } catch (const std::exception& error) {
    std::string sentence = error.what();
    for (char& c : sentence) c = c < ' ' || c > '~' ? '?' : c;
    fmt::print(stderr, "mulligan_evaluate: {}\n", sentence);
    const auto* known = dynamic_cast<const mulligan::Error*>(&error);
    return static_cast<int>(known ? known->code() : mulligan::ExitCode::run_failed);
  }
}
