// What a refusal says.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "framework/core/error.h"

namespace mulligan {

// The sentence of the Error that `action` throws. A failure of the test, and empty, when it throws none.
template <typename Action>
std::string sentence_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

}  // namespace mulligan
