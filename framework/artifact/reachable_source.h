// The definitions that a program reaches, of its whole source. An evaluation counts these alone (docs/artifact.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

// C++ or CUDA without comments, on one line but for lines of the preprocessor; literals stay as they are.
std::string without_comments(std::string_view source);

// All files of a program by name, C++ and CUDA without_comments(). Of .cpp, .h and .hpp files the definitions are dropped that
// nothing names which is reached. Reached are main(), objects, virtual functions, operators, data of reached classes, and the words
// of all other files. Names alone decide, so a namesake keeps a definition. .cpp files without definitions are dropped. A function of
// launch/evaluator/replaced*.cpp takes the place of those of its name. Throws std::runtime_error where there is none.
using SourceFiles = std::vector<std::pair<std::string, std::string>>;
SourceFiles reachable_source(SourceFiles files);

}  // namespace mulligan
