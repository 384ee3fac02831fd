// Multiple-choice questions from a file of JSON lines.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace mulligan::calibration {

struct Question {
  std::string id, subject;  // id: the line's number where it has none; subject: "" where it has none
  std::string text;
  std::vector<std::string> choices;  // two or more
  std::size_t answer = 0;            // index of the right one
};

// One object per line: "question", "choices" (a list of texts), "answer" (index from 0, or a letter from
// "A"), and if they are there "subject" and "id" (text or whole number). Other fields and empty lines are
// left alone. Throws data_error naming file and line; also for no question, and for one id twice.
std::vector<Question> read_questions(const std::filesystem::path& path);

}  // namespace mulligan::calibration
