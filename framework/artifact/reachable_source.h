// Selects the definitions that an evaluation uses. Only these are packed and counted (docs/artifact.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

// Returns C++ or CUDA source without comments. Lines are joined, except those of the preprocessor. Literals do not change.
std::string without_comments(std::string_view source);

// `files` are all files of a program, each with name and text. Removes comments from C++ and CUDA. From .cpp, .h and .hpp files it
// removes each definition that no reached code names. These are always reached: main(), objects, virtual functions, operators, data
// members of reached classes. All words of other files name definitions. Matching is by name alone, so unrelated definitions of the
// same name are kept. A .cpp file without definitions is removed. A function of launch/evaluator/replaced*.cpp replaces the functions
// of the same qualified name. Throws std::runtime_error if there is no such function.
using SourceFiles = std::vector<std::pair<std::string, std::string>>;
SourceFiles reachable_source(SourceFiles files);

// `files` are all files of a program, as reachable_source() returns them. Gives short names to what their C++ declares. A name
// stays if it also is in another file, in a line of the preprocessor or in the arguments of a macro, if it follows a library's
// namespace, or if it is one short word of a class. So device sources and texts do not change. Access specifiers, override and final go, too.
SourceFiles short_names(SourceFiles files);

// Moves the lines #include <NAME> of libraries into a header of the evaluator, which is compiled in front of each file. Removes
// each #include of C++ that another header of the same file includes.
constexpr const char* standard_header = "launch/evaluator/standard.h";
SourceFiles join_headers(SourceFiles files);

}  // namespace mulligan
