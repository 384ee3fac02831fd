#include "framework/artifact/size_report.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "framework/artifact/quantize_model.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

}  // namespace

double normal_code_entropy(double step, int qmax) {
  double bits = 0;
  for (int q = -qmax; q <= qmax; ++q) {
    const double below = q == -qmax ? 0.0 : normal_cdf((q - 0.5) * step);
    const double above = q == qmax ? 1.0 : normal_cdf((q + 0.5) * step);
    const double p = above - below;
    if (p > 0) bits -= p * std::log2(p);
  }
  return bits;
}

std::vector<double> predict_sizes(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                                  double trained) {
  // Coded size over the entropy of normal codes: Brotli's prefix codes, and the adaptive coder's learning.
  const double overhead = quantize.options.compression == Compression::adaptive ? 1.001 : 1.015;
  const std::vector<const QuantizeTensorRow*> table = resolve_quantize_table(parts, quantize.tensors);
  std::vector<double> sizes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorType& type = parts[i].type;
    const auto elements = static_cast<double>(type.elements());
    const auto columns =
        static_cast<double>(type.rank == 0 ? 1 : type.dims[static_cast<std::size_t>(type.rank - 1)]);
    const double scales = 2 * elements / columns;
    switch (table[i]->format) {
      case TensorFormat::integer: {
        const int qmax = (1 << (table[i]->bits - 1)) - 1;
        const double bits = normal_code_entropy(table[i]->clip_sigmas / qmax, qmax);
        sizes.push_back(elements * bits / 8 * overhead * trained + scales);
        break;
      }
      case TensorFormat::int8_row: {
        // The largest of n normal magnitudes is near sqrt(2 ln n).
        const double largest = std::max(1.0, std::sqrt(2 * std::log(columns)));
        sizes.push_back(elements * normal_code_entropy(largest / 127, 127) / 8 * overhead + scales);
        break;
      }
      case TensorFormat::fp16:
      case TensorFormat::bf16:
        sizes.push_back(2 * elements);
        break;
      case TensorFormat::fp32:
        sizes.push_back(4 * elements);
        break;
    }
  }
  return sizes;
}

namespace {

// Predictions are not whole numbers.
std::string rounded(double bytes) {
  return grouped(std::llrint(bytes));
}

std::string format_text(TensorFormat format, std::int64_t bits) {
  return format == TensorFormat::integer ? fmt::format("int{}", bits) : std::string(word_of(format));
}

// A line for each tensor. `bytes`: of each, with their title.
std::string tensor_table(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                         const char* title, std::span<const double> bytes) {
  const std::vector<const QuantizeTensorRow*> table = resolve_quantize_table(parts, quantize.tensors);
  std::size_t names = 34;
  for (const ArtifactPart& part : parts) names = std::max(names, part.name.size());
  std::string text = fmt::format("{:<{}} {:<16} {:<9} {:>12} {:>12}\n", "tensor", names, "shape", "format",
                                 title, "bits/element");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorType& type = parts[i].type;
    const auto shape = std::span(type.dims).first(static_cast<std::size_t>(type.rank));
    text += fmt::format("{:<{}} {:<16} {:<9} {:>12} {:>12.2f}\n", parts[i].name, names,
                        fmt::format("[{}]", fmt::join(shape, ", ")),
                        format_text(table[i]->format, table[i]->bits), rounded(bytes[i]),
                        bytes[i] * 8 / static_cast<double>(type.elements()));
  }
  return text;
}

// Total of the model and one way of counting the code, against the limit.
std::string total_line(const char* name, double model, std::optional<std::uint64_t> code,
                       std::int64_t limit) {
  if (!code) return fmt::format("{:<44} {:>14}\n", name, "not counted");
  const double total = model + static_cast<double>(*code);
  std::string line = fmt::format("{:<44} {:>14}", name, rounded(total));
  if (limit > 0) {
    const double spare = static_cast<double>(limit) - total;
    line += fmt::format("   {} the limit of {} by {}", spare < 0 ? "OVER" : "below", grouped(limit),
                        rounded(std::abs(spare)));
  }
  return line + "\n";
}

// Header, configuration and manifest of an artifact of so many tensors, which Brotli packs to about so much.
double header_bytes(std::size_t tensors) {
  return 3000 + 12.0 * static_cast<double>(tensors);
}

std::string totals(double model, const CodeSize& code, std::int64_t limit) {
  return total_line("artifact", model, 0, limit) +
         total_line("code of an evaluation, compressed source", 0, code.bytes, 0) +
         total_line("artifact + code of an evaluation", model, code.bytes, limit) +
         (code.bytes ? fmt::format("the code of an evaluation: {}\n", code.parts) : "");
}

}  // namespace

std::string format_sizes(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                         const ArtifactSizes& sizes, const CodeSize& code, std::int64_t limit_bytes) {
  std::string text = tensor_table(parts, quantize, "bytes", sizes.tensors) + "\n";
  for (const ArtifactStream& stream : sizes.streams) {
    text += fmt::format("{:<34} {:<16} {:>22} of {}\n", "part " + stream.kind->content, stream.layout,
                        grouped(static_cast<std::int64_t>(stream.bytes)),
                        grouped(static_cast<std::int64_t>(stream.raw_bytes)));
  }
  text += fmt::format("{:<51} {:>22}\n\n", "header and manifest",
                      grouped(static_cast<std::int64_t>(sizes.overhead_bytes)));
  return text + totals(static_cast<double>(sizes.total_bytes), code, limit_bytes);
}

std::string sizes_json(const Artifact& artifact, const ArtifactSizes& sizes, const CodeSize& code,
                       std::int64_t limit_bytes, const std::string& artifact_sha256,
                       const std::string& weights_sha256) {
  using Json = nlohmann::ordered_json;
  Json json{{"artifact_bytes", sizes.total_bytes},
            {"artifact_sha256", artifact_sha256},
            {"weights_sha256", weights_sha256},
            {"evaluation_source_bytes", code.bytes ? Json(*code.bytes) : Json()},
            {"limit_bytes", limit_bytes}};
  json["tensors"] = Json::array();
  for (std::size_t i = 0; i < artifact.tensors.size(); ++i) {
    const QuantizedTensor& tensor = artifact.tensors[i];
    json["tensors"].push_back(
        {{"name", tensor.name},
         {"shape", tensor.shape},
         {"format", format_text(tensor.format, tensor.bits)},
         {"bytes", sizes.tensors[i]},
         {"bits_per_element", sizes.tensors[i] * 8 / static_cast<double>(tensor.elements())}});
  }
  return json.dump(1) + "\n";
}

double predicted_model_bytes(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize) {
  const std::vector<double> predicted = predict_sizes(parts, quantize);
  return std::accumulate(predicted.begin(), predicted.end(), header_bytes(parts.size()));
}

std::string format_prediction(std::span<const ArtifactPart> parts, const QuantizeConfig& quantize,
                              double choice_bytes, const CodeSize& code, std::int64_t limit_bytes) {
  const std::vector<double> predicted = predict_sizes(parts, quantize);
  std::string text = tensor_table(parts, quantize, "predicted", predicted);
  if (choice_bytes > 0)
    text +=
        fmt::format("{:<61} {:>12}\n", "protected columns and corrections, at most", rounded(choice_bytes));
  const double rest = choice_bytes + header_bytes(parts.size());
  const double sum = std::accumulate(predicted.begin(), predicted.end(), rest);
  const std::vector<double> normal = predict_sizes(parts, quantize, 1);
  const double normal_sum = std::accumulate(normal.begin(), normal.end(), rest);
  text += fmt::format("{:<61} {:>12}\n", "header and manifest, about", rounded(header_bytes(parts.size())));
  text += fmt::format("{:<61} {:>12}\n", "artifact of normal rows", rounded(normal_sum));
  text +=
      fmt::format("Codes of trained weights count {} times: the published model of pull request 1886.\n\n",
                  trained_over_normal);
  return text + totals(sum, code, limit_bytes) +
         total_line("artifact of normal rows + code of an evaluation", normal_sum, code.bytes, limit_bytes);
}

}  // namespace mulligan
