// Answers of a model: its next tokens on a validation set, and its choices on questions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/loaded_model.h"
#include "framework/run/weight_origin.h"
#include "lab/calibration/calibration.h"

namespace mulligan::calibration {

struct Question {
  std::string id, subject;  // id: the line's number where it has none; subject: "" where it has none
  std::string text;
  std::vector<std::string> choices;  // two or more
  std::size_t answer = 0;            // index of the right one
};

// One object per line: "question", "choices" (a list of texts), "answer" (index from 0, or a letter from "A"), and optionally
// "subject" and "id" (text or whole number). Other fields and empty lines are ignored. Throws data_error that names file and line;
// also if there is no question, or if an id occurs twice.
std::vector<Question> read_questions(const std::filesystem::path& path);

struct AnswerOptions : ConsoleOptions {
  std::int64_t tokens = std::int64_t{1} << 20;  // of the validation set, from its front; 0: none
  std::vector<std::filesystem::path> questions;
  // Likelihoods of choices per byte of their text, so that a long choice is not less likely for its length alone.
  bool per_byte = false;
};

// The sets in this order: "validation", then one for each file, by its name. Tokens lie in the rows of an evaluation. A token's
// answer is the largest logit after the softcap; its confidence is the softmax of it. A question's choices are scored as
// continuations of "QUESTION\nAnswer:". Their confidence is the softmax over the sums of their tokens' log-likelihoods. Questions
// longer than eval.sequence_length lose their beginning, with a message. Throws Error; data_error if the weights belong to another
// tokenizer.
std::vector<ItemSet> answer(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                            const WeightLoader& load, const AnswerOptions& options);

}  // namespace mulligan::calibration
