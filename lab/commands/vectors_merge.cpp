// mulligan vectors merge
#include "lab/task_vectors/task_vectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <ranges>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "lab/commands/lab_commands.h"
#include "lab/task_vectors/model_file.h"
#include "lab/task_vectors/task_vectors_file.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

using namespace task_vectors;

struct MergeArguments {
  std::string base, output, method = "task_arithmetic";
  std::vector<std::string> sources;
  std::optional<double> scale, keep;
};

struct MethodWord {
  const char* word;
  MergeMethod method;
  double scale;  // unless another is given
};
// 0.3: what Ilharco et al. found to suit most sums of differences.
constexpr MethodWord method_words[] = {{"task_arithmetic", MergeMethod::task_arithmetic, 0.3},
                                       {"ties", MergeMethod::ties, 1.0},
                                       {"average", MergeMethod::average, 1.0}};

// All tasks of files of task vectors, and fine-tuned models as they are. `packed` keeps what they refer to.
std::vector<Model> open_models(const std::vector<std::string>& sources, const Model& base,
                               std::deque<TaskVectors>& packed) {
  std::vector<Model> models;
  for (const std::string& source : sources) {
    if (!std::filesystem::is_regular_file(source) || !is_task_vectors(source)) {
      models.push_back(open_model(source));
      continue;
    }
    const TaskVectors& vectors = packed.emplace_back(read_task_vectors(source));
    for (std::size_t task = 0; task < vectors.tasks.size(); ++task)
      models.push_back(unpacked(vectors, source, base, task));
  }
  return models;
}

void run(const MergeArguments& arguments) {
  require_one_process("vectors merge");
  const auto& word = *std::ranges::find(method_words, arguments.method, &MethodWord::word);
  MergeOptions options;
  options.method = word.method;
  options.scale = arguments.scale.value_or(word.scale);
  options.keep = arguments.keep.value_or(options.keep);
  if (arguments.keep && options.method != MergeMethod::ties)
    throw config_error("--keep is of the method ties alone; leave it out.");
  require_new_file(arguments.output);
  const Model base = open_model(arguments.base);
  std::deque<TaskVectors> packed;
  const std::vector<Model> models = open_models(arguments.sources, base, packed);
  const std::string trim =
      options.method == MergeMethod::ties ? fmt::format(", keep {}", options.keep) : std::string();
  const std::string how = fmt::format("merged by {}, scale {}{}, of {} models on the base {}: {}",
                                      arguments.method, options.scale, trim, models.size(), base.name,
                                      fmt::join(models | std::views::transform(&Model::name), ", "));
  auto metadata = metadata_of_merged(base, models, how);
  save_model(arguments.output, base.parameters, merge(base, models, options), std::move(metadata));
  fmt::print("{}: {}\n", printable(arguments.output), printable(how));
}

}  // namespace

void add_vectors_merge(CLI::App& vectors) {
  CLI::App* command =
      vectors.add_subcommand("merge", "Makes one model of several that began with the same base");
  auto arguments = std::make_shared<MergeArguments>();
  command->add_option("base", arguments->base, "The model that all began with: run directory or weights file")
      ->required()
      ->type_name("BASE");
  command
      ->add_option("models", arguments->sources,
                   "Files of task vectors (all of their models), run directories or weights files")
      ->required()
      ->type_name("VECTORS");
  std::vector<std::string> words;
  for (const MethodWord& method : method_words) words.emplace_back(method.word);
  command->add_option("--method", arguments->method, "Method (default: task_arithmetic)")
      ->check(CLI::IsMember(words));
  command->add_option("--scale", arguments->scale,
                      "Factor of the sum of differences (default: 0.3), or of the result of ties or average "
                      "(default: 1)");
  command->add_option("--keep", arguments->keep,
                      "ties: kept share of each model's largest differences (default: 0.2)");
  command->add_option("--out", arguments->output, "Weights file to write (.safetensors)")
      ->required()
      ->type_name("FILE");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
