// What lab/ adds to the program.
#include <filesystem>
#include <optional>
#include <string>

#include "framework/core/error.h"
#include "framework/core/safetensors.h"
#include "lab/attention/attention_look.h"
#include "lab/energy/energy_meter.h"
#include "lab/task_vectors/task_vectors_file.h"
#include "launch/commands/weight_source.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;
using namespace task_vectors;

struct PackedName {
  std::filesystem::path file;
  std::string task;  // "" where none was named
};

// What a model is filled from.
struct Packed {
  TaskVectors vectors;
  Model base;
  std::size_t task = 0;
};

bool holds_task_vectors(const fs::path& path) {
  return path.extension() == ".safetensors" && fs::is_regular_file(path) && is_task_vectors(path);
}

Model open_base(const TaskVectors& vectors, const fs::path& file) {
  if (vectors.base_path.empty() || !fs::exists(vectors.base_path)) {
    throw data_error(
        "the base '{}' of '{}' does not lie at '{}' any more; put it there, or write "
        "the weights with mulligan vectors unpack, which is told where the base is.",
        vectors.base_name, file.string(), vectors.base_path);
  }
  return open_model(vectors.base_path);
}

// Resolves FILE@TASK, or FILE alone if it holds one task. Nothing if `name` is not a file of task vectors. If a file's own name
// has an @, that file is taken.
std::optional<PackedName> packed_name(const std::string& name) {
  if (fs::exists(name)) return holds_task_vectors(name) ? std::optional(PackedName{name, {}}) : std::nullopt;
  const std::size_t sign = name.rfind('@');
  if (sign == std::string::npos || !holds_task_vectors(name.substr(0, sign))) return {};
  return PackedName{name.substr(0, sign), name.substr(sign + 1)};
}

// Unpacks the weights (task_vectors::load_task). The base is searched at its path at the time of packing, relative
// to the file. The configuration is that of --config, or config.toml next to the file. Throws data_error or config_error.
WeightSource from_task_vectors(const PackedName& name, const RunOptions& options) {
  const auto packed = std::make_shared<Packed>();
  packed->vectors = read_task_vectors(name.file);
  const std::vector<Task>& tasks = packed->vectors.tasks;
  if (name.task.empty() && tasks.size() > 1) {
    throw config_error("'{}' holds {} models; name one as {}@{}.", name.file.string(), tasks.size(),
                       name.file.string(), tasks.front().name);
  }
  packed->task = name.task.empty() ? 0 : packed->vectors.index_of(name.task);
  packed->base = open_base(packed->vectors, name.file);
  require_base(packed->vectors, name.file.string(), packed->base);
  LoadedConfig loaded = load_config(configuration_of(options, name.file.parent_path(), name.file.string()),
                                    options.overrides, options.more);
  const std::string source = name.file.string();
  const auto load = [packed, source](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    load_task(packed->vectors, source, packed->base, packed->task, store, layouts);
  };
  const Task& task = tasks[packed->task];
  WeightOrigin origin = origin_of_metadata(task.metadata, source + "@" + task.name);
  origin.has_checksum = true;  // of all that the file holds, and of the base
  return {std::move(origin), std::move(loaded), load};
}

}  // namespace

void add_lab(ProgramParts& parts) {
  parts.observers.emplace_back([](bool) { return std::make_unique<energy::EnergyObserver>(); });
  parts.observers.emplace_back([](bool) { return std::make_unique<doctor::AttentionObserver>(); });
  parts.other_weights.emplace_back(
      [](const std::string& name, const RunOptions& options) -> std::unique_ptr<WeightSource> {
        const auto packed = packed_name(name);
        return packed ? std::make_unique<WeightSource>(from_task_vectors(*packed, options)) : nullptr;
      });
}

}  // namespace mulligan
