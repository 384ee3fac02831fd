// Where weights that are scored or quantised come from, and whether they fit the data at hand.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/config/data_config.h"
#include "framework/data/data_identity.h"
#include "framework/report/run_directory.h"

namespace mulligan {

struct WeightOrigin {
  enum class Kind {
    memory,    // made in this process: there is nothing to compare
    weights,   // a weights file
    artifact,  // it always says which tokenizer was its own
  };
  std::string name;  // the path, for the log
  Kind kind = Kind::memory;
  DataIdentity data;         // empty: the file does not say
  std::string sha256;        // of the tensors as the file says, or of the artifact; empty: not known
  bool has_checksum = true;  // the tensors can be checked

  WeightOrigin() = default;
  WeightOrigin(std::string path) : name(std::move(path)) {}
  WeightOrigin(const char* path) : name(path) {}
};

// What a weights file (as written by train or imported) says of itself. Throws data_error.
WeightOrigin origin_of_weights(const std::filesystem::path& path);
// The same of the metadata that such a file has; `name` is for the log. Throws data_error.
WeightOrigin origin_of_metadata(const std::map<std::string, std::string>& metadata, const std::string& name);

// Throws data_error when the weights belong to another tokenizer than `now`, or do not say which and `data` names
// one (require_same_tokenizer). Returns sentences about what could not be checked.
std::vector<std::string> require_tokenizer_of(const WeightOrigin& origin, const DataIdentity& now,
                                              const DataConfig& data);

// The same, and sentences about how the validation set that is scored differs from that of the weights' run.
std::vector<std::string> require_data_of(const WeightOrigin& origin, const DataIdentity& now,
                                         const DataConfig& data);

// Which weights a run says are its own.

// The digest of the tensors that training saved (result.json), and the sha256 of the artifact that quantize made
// (quantize_result.json); "" where there is no such result.
std::string recorded_weights_sha256(const RunFiles& run);
std::string recorded_artifact_sha256(const RunFiles& run);

}  // namespace mulligan
