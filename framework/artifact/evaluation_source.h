// The source that an evaluation needs: what a budget of bytes counts as code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/run_config.h"

namespace mulligan {

// Of a source tree: the modules of framework/ that `artifact` and `ttt` stand on (by the DEPENDS of their
// CMakeLists.txt), the folders of the named plugins with what plugins of their kind share, the plugin SDK,
// and launch/evaluator, whose program mulligan_evaluate is built from these alone.
struct EvaluationSource {
  std::vector<std::string> folders;          // relative to the root, ascending
  std::vector<std::filesystem::path> files;  // of these folders, ascending: C++, CUDA and CMake
};

// The tables of the plugins that score an artifact; those of test-time training where it is configured.
std::vector<const PluginTable*> scoring_tables(const RunConfig& config);

// plugins: names as configurations have them ("cuda", "doc_lora"). Throws data_error when `root` holds no
// source tree, and for a plugin that is none of the tree's.
EvaluationSource evaluation_source(const std::filesystem::path& root,
                                   const std::vector<std::string>& plugins);

// C++ or CUDA without comments, indentation, empty lines and repeated spaces; literals stay as they are.
std::string without_comments(std::string_view source);

// A file as the archive holds it: C++ and CUDA without_comments(), all else as it is.
std::string packed_as(const std::filesystem::path& name, const std::string& text);

// The files as tar_archive(), each packed_as().
std::string evaluation_archive(const std::filesystem::path& root, const EvaluationSource& source);

// Compressed with Brotli 11, by compress_once().
std::string packed_evaluation(const std::filesystem::path& root, const EvaluationSource& source);

}  // namespace mulligan
