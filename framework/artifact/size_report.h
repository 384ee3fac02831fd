// An artifact's bytes: how many there will be, and the table of those that are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/artifact/artifact_model.h"
#include "framework/config/quantize_config.h"

namespace mulligan {

// How large an artifact will be, from shapes and formats alone.

// Entropy in bits of a standard normal number divided by `step`, rounded to the nearest integer and clamped
// to [-qmax, qmax]: what a code costs when a row is normal and its scale is `step` standard deviations.
double normal_code_entropy(double step, int qmax);

// Codes of trained weights over those of normal rows: of the published model of pull request 1886, whose largest seed has
// 15,949 kB without its script and by Brotli, 16,067 kB are predicted without this factor; its other numbers take 214 kB.
inline constexpr double trained_over_normal = 0.9926;

// Predicted bytes of each part under the rules of the table, in order: entropy of the codes of normal rows, 2
// bytes for each fp16 number (scales included), times what the compressor misses of the entropy
// (measured on normal codes: 1.5 %, the adaptive coder 0.1 %) and times `trained`. Quantising shows the real size.
std::vector<double> predict_sizes(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                                  double trained = trained_over_normal);

// The table of an artifact's bytes.

// What a budget counts as code: source that an evaluation needs (evaluation_source.h).
struct CodeSize {
  std::optional<std::uint64_t> bytes = {};  // absent: it cannot be counted here
  std::string parts = {};                   // "212 files, mine.so (own file)"
};

// One line per tensor: shape, format, bytes in the file, bits per element; then the streams, the file, the
// code, and each total against `limit_bytes` (0: no limit).
std::string format_sizes(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                         const ArtifactSizes& sizes, const CodeSize& code, std::int64_t limit_bytes);

// The sizes as JSON, quantize_result.json: digests, bytes by tensor, totals, limit. `weights_sha256` is of the tensors that
// the artifact was made of ("": they do not say).
std::string sizes_json(const Artifact& artifact, const ArtifactSizes& sizes, const CodeSize& code,
                       std::int64_t limit_bytes, const std::string& artifact_sha256,
                       const std::string& weights_sha256);

// Predicted bytes of the artifact's file, without what the quantiser chooses over the whole model.
double predicted_model_bytes(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize);

// The table before there are weights: predicted bytes alone. `choice_bytes`: at most, of what the quantiser
// chooses over the whole model (Quantizer::extra_bytes).
std::string format_prediction(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                              double choice_bytes, const CodeSize& code, std::int64_t limit_bytes);

}  // namespace mulligan
