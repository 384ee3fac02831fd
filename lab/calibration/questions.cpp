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

// A name, where there is one: a text or a whole number.
std::string name_of(const Json& object, const char* key) {
  const Json name = object.value(key, Json(""));
  return name.is_number_integer() ? name.dump() : name.get<std::string>();
}

// An index, or a letter from "A".
std::size_t answer_of(const Json& answer, std::size_t choices) {
  std::size_t index = choices;
  if (answer.is_number_unsigned()) index = answer.get<std::size_t>();
  if (answer.is_string() && answer.get<std::string>().size() == 1)
    index = static_cast<std::size_t>(answer.get<std::string>()[0] - 'A');
  if (index < choices) return index;
  throw std::invalid_argument(
      fmt::format("\"answer\" is none of the {} choices, as an index from 0 or a letter from \"A\"", choices));
}

Question question_of(const Json& object) {
  Question question{name_of(object, "id"), name_of(object, "subject"), object.at("question"),
                    object.at("choices"), 0};
  if (question.choices.size() < 2 || std::ranges::find(question.choices, "") != question.choices.end())
    throw std::invalid_argument("\"choices\" are not two or more texts that are not empty");
  question.answer = answer_of(object.value("answer", Json()), question.choices.size());
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
