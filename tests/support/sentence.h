// What a refusal says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {

// Whether `part` stands in `text`; a failed check shows both.
inline testing::AssertionResult contains(std::string_view text, std::string_view part) {
  auto result = text.find(part) == text.npos ? testing::AssertionFailure() : testing::AssertionSuccess();
  return result << "'" << part << "' in '" << text << "'";
}
// The same of each of several parts; a failed check shows the first that is missing.
template <typename... Parts>
requires(sizeof...(Parts) > 1) testing::AssertionResult
    contains(std::string_view text, const Parts&... parts) {
  testing::AssertionResult result = testing::AssertionSuccess();
  static_cast<void>(((result = contains(text, std::string_view(parts))) && ...));
  return result;
}

// What the exception that `action` throws says; "" when it throws none.
template <typename Action>
std::string said_by(Action&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// The exit code and the sentence of the Error that `action` throws; ok and "" when it throws none.
template <typename Action>
std::pair<ExitCode, std::string> ending_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::ok, ""};
}

// The sentence alone.
template <typename Action>
std::string refusal_of(Action&& action) {
  return ending_of(action).second;
}
// The same; an Error of another code is a failure of the test.
template <typename Action>
std::string refusal_of(ExitCode code, Action&& action) {
  const auto [ended, sentence] = ending_of(action);
  EXPECT_TRUE(ended == code || ended == ExitCode::ok) << sentence;
  return sentence;
}

// The same; no Error is a failure of the test, too.
template <typename Action>
std::string sentence_of(Action&& action) {
  const std::string sentence = refusal_of(action);
  EXPECT_FALSE(sentence.empty()) << "nothing was refused";
  return sentence;
}
template <typename Action>
std::string sentence_of(ExitCode code, Action&& action) {
  const auto [ended, sentence] = ending_of(action);
  EXPECT_EQ(ended, code) << sentence;
  return sentence;
}

// Whether `action` throws an Error whose sentence has these parts, and this code where one is given.
template <typename Action, typename... Parts>
testing::AssertionResult refuses(Action&& action, const Parts&... parts) {
  return contains(refusal_of(action), parts...);
}
template <typename Action, typename... Parts>
testing::AssertionResult refuses(Action&& action, ExitCode code, const Parts&... parts) {
  const auto [ended, sentence] = ending_of(action);
  if (ended != code)
    return testing::AssertionFailure() << "code " << static_cast<int>(ended) << ": " << sentence;
  return contains(sentence, parts...);
}

}  // namespace mulligan
