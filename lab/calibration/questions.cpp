#include "lab/calibration/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"

namespace mulligan::calibration {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string())
    throw std::invalid_argument(fmt::format("\"{}\" is not a text", key));
  return found->get<std::string>();
}

// A name, where there is one.
std::string name_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (found->is_number_integer()) return found->dump();
  if (!found->is_string())
    throw std::invalid_argument(fmt::format("\"{}\" is neither a text nor a whole number", key));
  return found->get<std::string>();
}

std::size_t answer_of(const Json& object, std::size_t choices) {
  const auto found = object.find("answer");
  std::size_t answer = choices;
  if (found != object.end() && found->is_number_unsigned()) {
    answer = found->get<std::size_t>();
  } else if (found != object.end() && found->is_string() && found->get<std::string>().size() == 1) {
    const char letter = found->get<std::string>().front();
    if (letter >= 'A' && letter <= 'Z') answer = static_cast<std::size_t>(letter - 'A');
  }
  if (answer >= choices) {
    throw std::invalid_argument(fmt::format(
        "\"answer\" is none of the {} choices, as an index from 0 or a letter from \"A\"", choices));
  }
  return answer;
}

Question question_of(const Json& object) {
  Question question;
  question.text = text_of(object, "question");
  const auto choices = object.find("choices");
  if (choices == object.end() || !choices->is_array() || choices->size() < 2)
    throw std::invalid_argument("\"choices\" is not a list of two or more");
  for (const Json& choice : *choices) {
    if (!choice.is_string() || choice.get<std::string>().empty())
      throw std::invalid_argument("a choice is not a text, or empty");
    question.choices.push_back(choice.get<std::string>());
  }
  question.answer = answer_of(object, question.choices.size());
  question.subject = name_of(object, "subject");
  question.id = name_of(object, "id");
  return question;
}

}  // namespace

std::vector<Question> read_questions(const std::filesystem::path& path) {
  std::istringstream lines(read_file(path));
  std::vector<Question> questions;
  std::set<std::string> ids;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto refuse = [&](const std::string& what) {
      return data_error("'{}' line {}: {}; each line is an object with question, choices and answer.",
                        path.string(), number, what);
    };
    const Json object = parse_json<Json>(line);
    if (!object.is_object()) throw refuse("it is not a JSON object");
    try {
      questions.push_back(question_of(object));
    } catch (const std::exception& error) {
      throw refuse(error.what());
    }
    Question& question = questions.back();
    if (question.id.empty()) question.id = std::to_string(number);
    if (!ids.insert(question.id).second)
      throw refuse(fmt::format("the id '{}' stands there twice", question.id));
  }
  if (questions.empty()) throw data_error("'{}' holds no question.", path.string());
  return questions;
}

}  // namespace mulligan::calibration
