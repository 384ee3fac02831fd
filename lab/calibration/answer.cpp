#include "lab/calibration/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/tokenizer.h"
#include "framework/data/transformed_encoding.h"
#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/model/elements/masking/config.h"
#include "framework/report/run_log.h"
#include "framework/run/run_plugins.h"

namespace mulligan::calibration {
namespace {

// What all sets share: the weights and how they are scored.
struct Model {
  const RunConfig& config;
  Backend& backend;
  const WeightLoader& load;
  int bos_id;

  // Runs the evaluator over `tokens`, with `row` for each row. Loads the weights: one store holds the inputs
  // of one program.
  void score(const EvalConfig& eval, bool keep_logits, std::span<const std::uint16_t> tokens,
             Progress& progress, const Evaluator::RowListener& row) const {
    LoadedModel weights(backend, config, LoadedModel::Masters::scored);
    BoundEvaluator scoring(weights.store(), config.model, weights.layouts(),
                           {eval, scored_order(config.model), bos_id, keep_logits});
    weights.load(load);
    scoring.evaluator.score(tokens, nullptr, 1, 0, row, [&](const EvalPosition& position, std::size_t rows) {
      progress.set(static_cast<double>(position.row) / static_cast<double>(rows));
    });
  }
};

ItemSet answer_tokens(const Model& model, std::span<const std::uint16_t> tokens, RunLog& log) {
  const auto vocabulary = static_cast<std::size_t>(model.config.model.vocabulary);
  ItemSet set{"validation", false, {}};
  Progress progress(&log, {.what = "predicting tokens", .total = 1});
  model.score(model.config.eval, true, tokens, progress,
              [&](const EvalSpan& span, std::span<const float>, std::span<const float> logits) {
                for (std::int64_t i = span.score_begin; i < span.length; ++i) {
                  const auto position = static_cast<std::size_t>(span.start + i + 1);
                  const Choice choice = choose(
                      logits.subspan(static_cast<std::size_t>(i) * vocabulary, vocabulary), tokens[position]);
                  set.items.push_back({std::to_string(position), "", static_cast<int>(choice.choice),
                                       tokens[position], choice.prediction});
                }
              });
  return set;
}

// A question with one of its choices.
struct Text {
  std::vector<std::uint16_t> tokens;  // from BOS on
  std::size_t choice_begin = 0;       // index of the choice's first token
};

// The texts of a question, a choice each, of at most `longest` tokens; says whether the question was cut.
bool add_texts(const Question& question, const Tokenizer& tokenizer, int bos_id, std::size_t longest,
               const std::string& file, std::vector<Text>& texts) {
  // As documents were: under the text transform that the tokenizer was trained for, if any.
  const TextTransform* transform = transform_of(tokenizer);
  const auto transformed = [&](const std::string& text) { return transform ? transform->apply(text) : text; };
  const std::vector<int> prompt = tokenizer.encode_part(transformed(question.text + "\nAnswer:"), true);
  bool cut = false;
  for (const std::string& choice : question.choices) {
    const std::vector<int> ids = tokenizer.encode_part(transformed(" " + choice), false);
    if (ids.empty() || ids.size() + 2 > longest) {
      throw data_error(
          "'{}': a choice of question '{}' has {} tokens, but eval.sequence_length leaves room for {}; "
          "shorten it.",
          file, question.id, ids.size(), longest - 2);
    }
    const std::size_t room = longest - 1 - ids.size(), kept = std::min(room, prompt.size());
    cut = cut || kept < prompt.size();
    Text text;
    text.tokens.push_back(static_cast<std::uint16_t>(bos_id));
    text.tokens.insert(text.tokens.end(), prompt.end() - static_cast<std::ptrdiff_t>(kept), prompt.end());
    text.choice_begin = text.tokens.size();
    text.tokens.insert(text.tokens.end(), ids.begin(), ids.end());
    texts.push_back(std::move(text));
  }
  return cut;
}

// -log-likelihood of each text's choice, in nats.
std::vector<double> choice_losses(const Model& model, const std::vector<Text>& texts, Progress& progress) {
  std::size_t longest = 0;
  for (const Text& text : texts) longest = std::max(longest, text.tokens.size());
  EvalConfig eval = model.config.eval;
  const std::int64_t pass = eval.sequence_length * eval.packed_sequences;
  eval.mode = EvalMode::rows;
  eval.drop_remainder = false;
  eval.sequence_length = static_cast<std::int64_t>((longest + 63) / 64 * 64);
  eval.packed_sequences = std::max<std::int64_t>(1, pass / eval.sequence_length);
  // Each text alone in a sequence of that length; what follows it there are empty documents.
  const auto length = static_cast<std::size_t>(eval.sequence_length);
  std::vector<std::uint16_t> stream(texts.size() * length + 1, static_cast<std::uint16_t>(model.bos_id));
  for (std::size_t i = 0; i < texts.size(); ++i)
    std::ranges::copy(texts[i].tokens, stream.begin() + static_cast<std::ptrdiff_t>(i * length));
  std::vector<double> losses(texts.size(), 0);
  model.score(eval, false, stream, progress,
              [&](const EvalSpan& span, std::span<const float> token_losses, std::span<const float>) {
                for (std::size_t i = 0; i < token_losses.size(); ++i) {
                  const std::size_t target = static_cast<std::size_t>(span.start) + i + 1,
                                    text = target / length, at = target % length;
                  if (text < texts.size() && at >= texts[text].choice_begin && at < texts[text].tokens.size())
                    losses[text] += static_cast<double>(token_losses[i]);
                }
              });
  return losses;
}

ItemSet answer_questions(const Model& model, const Tokenizer& tokenizer, const std::filesystem::path& file,
                         bool per_byte, RunLog& log) {
  const std::vector<Question> questions = read_questions(file);
  std::vector<Text> texts;
  std::size_t cut = 0;
  for (const Question& question : questions)
    cut += add_texts(question, tokenizer, model.bos_id,
                     static_cast<std::size_t>(model.config.eval.sequence_length), file.string(), texts)
               ? 1
               : 0;
  if (cut > 0)
    log.print(
        "warning: {} of {} questions of '{}' are longer than eval.sequence_length and lost their beginning",
        cut, questions.size(), file.string());
  Progress progress(&log, {.what = "answering questions", .total = 1});
  const std::vector<double> losses = choice_losses(model, texts, progress);
  ItemSet set{file.filename().string(), true, {}};
  std::size_t next = 0;
  for (const Question& question : questions) {
    std::vector<double> scores;
    for (const std::string& choice : question.choices)
      scores.push_back(-losses[next++] / (per_byte ? static_cast<double>(choice.size()) : 1.0));
    const Choice choice = choose(scores, question.answer);
    set.items.push_back({question.id, question.subject, static_cast<int>(choice.choice),
                         static_cast<int>(question.answer), choice.prediction});
  }
  return set;
}

Tokenizer require_tokenizer(const RunConfig& config) {
  if (config.data.tokenizer.empty())
    throw config_error(
        "data.tokenizer is not set, but questions are made of its pieces; name it with --set "
        "data.tokenizer=FILE.");
  return Tokenizer::load(config.data.tokenizer);
}

}  // namespace

std::vector<ItemSet> answer(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                            const WeightLoader& load, const AnswerOptions& options) {
  require_next_token(loaded.config.model, "answers are scored token by token");
  resolve_run_plugins(loaded, host, PluginUse::score);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_backend_plugin(loaded, host);
  Backend& backend = *plugins.backend;
  require_computing(backend, "nothing can be answered");
  RunLog log(options, {});
  std::optional<ValidationSet> validation;
  std::optional<Tokenizer> tokenizer;
  DataIdentity now;
  int bos_id = 1;
  if (options.tokens > 0) {
    validation = load_validation(config.data, config.model.vocabulary);
    for (const std::string& note : require_data_of(origin, validation->data, config.data)) log.line(note);
    bos_id = validation->bos_id;
  }
  if (!options.questions.empty()) {
    tokenizer = require_tokenizer(config);
    now.tokenizer_sha256 = sha256_hex_of_file(config.data.tokenizer);
    for (const std::string& note : require_tokenizer_of(origin, now, config.data)) log.line(note);
    bos_id = tokenizer->bos_id();
  }
  const Model model{config, backend, load, bos_id};
  std::vector<ItemSet> sets;
  if (validation) {
    const auto count = std::min(validation->tokens.size(), static_cast<std::size_t>(options.tokens) + 1);
    sets.push_back(answer_tokens(model, std::span(validation->tokens).first(count), log));
  }
  for (const std::filesystem::path& file : options.questions)
    sets.push_back(answer_questions(model, *tokenizer, file, options.per_byte, log));
  return sets;
}

}  // namespace mulligan::calibration
