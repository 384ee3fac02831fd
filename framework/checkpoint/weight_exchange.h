// Weights to and from other trainers' safetensors files, by a name map.
//
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

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/safetensors.h"

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

// A parameter of the model here.
struct WeightSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  bool matrix = false;  // the magnitude test applies
};

// The weights that transformers stores in several files, by the index that gives the file of each tensor
// (model.safetensors.index.json). Throws data_error.
std::vector<SafetensorsFile> open_indexed(const std::filesystem::path& index);

// Writes the file `output` with every parameter of `model` as `dtype`, filled by `map` from the files `source`. No two tensors of the
// source have one name. If `dtype` is narrower than that of the source, elements are rounded to nearest even. Returns the number of
// parameters.
//
// Throws data_error and leaves no output in these cases: a tensor of the source is neither mapped nor ignored; a mapped one is
// missing; shapes do not fit; a parameter is not filled or filled twice; a value does not fit into `dtype`; a matrix fails the
// magnitude test.
std::size_t import_weights(const std::vector<SafetensorsFile>& source, const NameMap& map,
                           const std::vector<WeightSpec>& model, DType dtype,
                           const std::filesystem::path& output,
                           const std::map<std::string, std::string>& metadata);

// Writes `weights` (named as here; their bytes must stay valid) under the names of `map`, by default their own, and as `dtype`, by
// default their own. Throws data_error as above; every weight must be mapped.
std::size_t export_weights(const std::vector<StoredTensor>& weights, const NameMap* map,
                           std::optional<DType> dtype, const std::filesystem::path& output,
                           const std::map<std::string, std::string>& metadata);

}  // namespace mulligan
