// The source that an evaluation needs: what a budget of bytes counts as code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan {

// Of a source tree: the files that launch/evaluator/sources.txt names for every evaluation and under headings whose words are
// all among the named parts, all that these include, and the CMakeLists.txt that builds mulligan_evaluate from them. Ascending,
// relative to the root.
using EvaluationSource = std::vector<std::filesystem::path>;

// parts: the model's family and plugins ("cuda", "record", "doc_lora"). A plugin without a heading stands for its whole folder.
// Throws data_error when `root` holds no source tree, for a plugin that is none of the tree's, and for an included file that
// is not there.
EvaluationSource evaluation_source(const std::filesystem::path& root, const std::set<std::string>& parts);

// For each file of reachable_source() a line with its name, its text, and a zero byte.
std::string evaluation_archive(const std::filesystem::path& root, const EvaluationSource& source);
// The reverse: files by name. Throws a std::runtime_error for what is no such archive, with a reason that reads on from its
// name.
std::vector<std::pair<std::string, std::string>> archived_files(std::string_view archive);

// What counts as code: the files, and a program that unpacks them.
struct EvaluationPackage {
  static constexpr const char* files_name = "evaluation.pack";
  static constexpr const char* unpacker_name = "unpack.cpp.gz";
  std::string files;     // pack_text() of evaluation_archive()
  std::string unpacker;  // launch/evaluator/unpack.cpp with what it includes, by gzip
  std::uint64_t bytes() const { return files.size() + unpacker.size(); }
};

// Packing takes many seconds, so the last packages are kept (kept_bytes); `mulligan record --verify` unpacks
// what is submitted.
EvaluationPackage packed_evaluation(const std::filesystem::path& root, const EvaluationSource& source);

// Writes both files of a package to `folder`, which must not exist: data_error.
void write_evaluation(const EvaluationPackage& package, const std::filesystem::path& folder);

}  // namespace mulligan
