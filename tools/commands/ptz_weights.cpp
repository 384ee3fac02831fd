// What commands about many runs add to the program besides themselves: the record script's artifact (.ptz) among the weights
// that commands read and write.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "framework/artifact/artifact_model.h"
#include "framework/artifact/artifact_run.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "launch/commands/weight_source.h"
#include "launch/program_parts.h"
#include "tools/record_script/ptz.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// In the model's order. A scalar of the script is a vector of one number here.
Artifact of_model(std::vector<QuantizedTensor> tensors, const ModelConfig& model, const std::string& name) {
  Artifact artifact;
  const std::vector<ArtifactPart> parts = artifact_parts(model);
  for (const ArtifactPart& part : parts) {
    const auto found = std::ranges::find(tensors, part.name, &QuantizedTensor::name);
    if (found == tensors.end()) continue;
    if (found->shape.empty() && part.type.elements() == 1) found->shape = {1};
    artifact.tensors.push_back(std::move(*found));
    tensors.erase(found);
  }
  std::ranges::move(tensors, std::back_inserter(artifact.tensors));
  require_model(artifact, model, name);
  for (const QuantizedTensor& tensor : artifact.tensors) {
    if (std::ranges::all_of(dequantize(tensor), [](float weight) { return std::isfinite(weight); })) continue;
    throw data_error("'{}' holds numbers in '{}' that are not finite; copy it again.", name, tensor.name);
  }
  return artifact;
}

// The weights of a file named *.ptz, null for any other name. Such a file says neither its model nor its tokenizer:
// the configuration is that of --config, or config.toml next to the file. Throws data_error or config_error.
std::unique_ptr<WeightSource> open_ptz(const std::string& name, const RunOptions& options) {
  const fs::path path = name;
  if (path.extension() != ".ptz") return nullptr;
  std::vector<QuantizedTensor> tensors = record_script::parse_ptz(read_file(path), name);
  LoadedConfig loaded = load_config(configuration_of(options, path.parent_path(), name), options.overrides);
  const ModelConfig model = loaded.config.model;
  const auto artifact = std::make_shared<Artifact>(of_model(std::move(tensors), model, name));
  WeightOrigin origin(name);
  origin.kind = WeightOrigin::Kind::weights;
  origin.has_checksum = false;
  origin.sha256 = sha256_hex_of_file(path);
  if (const std::string& tokenizer = loaded.config.data.tokenizer; !tokenizer.empty())
    origin.data.tokenizer_sha256 = sha256_hex_of_file(tokenizer);
  const auto load = [artifact, model](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_artifact(*artifact, model, store, layouts);
  };
  return std::make_unique<WeightSource>(WeightSource{std::move(origin), std::move(loaded), load});
}

// `export --to ptz`: the codes of an artifact, or of a run directory's, as they are. Throws data_error where there
// are none.
void export_ptz(const std::string& path, const std::string& output) {
  const fs::path file = fs::is_directory(path) ? RunFiles{path}.artifact() : fs::path(path);
  if (!is_artifact(file))
    throw data_error("'{}' holds no artifact, whose codes a .ptz file has; make one with mulligan quantize.",
                     path);
  const std::vector<QuantizedTensor> tensors = read_artifact(file).tensors;
  const std::string bytes = record_script::serialize_ptz(tensors);
  write_file_atomically(output, bytes);
  fmt::print("{}: {} tensors of '{}', {} bytes\n", printable(output), tensors.size(),
             printable(file.string()), bytes.size());
}

}  // namespace

void add_studies(ProgramParts& parts) {
  parts.other_weights.emplace_back(open_ptz);
  parts.exports["ptz"] = export_ptz;
}

}  // namespace mulligan
