// NameMap: the correspondence between the tensors of another trainer's weight file and the parameters of a model here.
//
//   ignore = ["*.rotary_emb.*"]              # tensors of the other file that are left out (globs)
//
//   [[tensor]]
//   theirs = "model.layers.{i}.q_proj.weight"
//   ours = "qo_bank"
//   slice = 0                                # entry of the bank's first dimension; -1: the whole tensor
//   repeat = 11                              # i = 0 ... 10, in both names and added to slice
//   transpose = false                        # theirs is [columns, rows] of ours
//   check_magnitude = true                   # the log2-magnitude test, for matrices
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mulligan {

// One tensor of theirs and its place in ours, with {i} filled in.
struct NamePair {
  std::string theirs;
  std::string ours;
  std::int64_t slice = -1;
  bool transpose = false;
  bool check_magnitude = true;
  std::int64_t repeat = 1;  // of a row of the file
};

struct NameMap {
  std::string source;  // file that it was read from, for sentences
  std::vector<NamePair> pairs;
  std::vector<std::string> ignore;

  bool ignores(const std::string& theirs) const;
};

// Reads a TOML file. Throws config_error for unknown keys, missing names, a `repeat`
// without {i} in the names, and a tensor of theirs that is named twice.
NameMap read_name_map(const std::filesystem::path& path);

}  // namespace mulligan
