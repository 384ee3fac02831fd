// mulligan vectors pack|unpack|show; vectors merge lies in vectors_merge.cpp
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/sha256.h"
#include "lab/commands/lab_commands.h"
#include "lab/task_vectors/model_file.h"
#include "lab/task_vectors/task_vectors.h"
#include "lab/task_vectors/task_vectors_file.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

using namespace task_vectors;

struct VectorsArguments {
  std::string base, path, task, output;
  std::vector<std::string> models;
  PackOptions pack;
};

// PATH, or NAME=PATH for a name of the task that is not the path's.
Model open_named(const std::string& argument) {
  const std::size_t sign = argument.find('=');
  if (sign == std::string::npos || sign == 0 || argument.find('/') < sign) return open_model(argument);
  Model model = open_model(argument.substr(sign + 1));
  model.name = argument.substr(0, sign);
  return model;
}

std::string kind_of(const TaskVectors& vectors) {
  return vectors.base_bits > 0
             ? fmt::format("RTVQ, mean {} bits, offsets {} bits", vectors.base_bits, vectors.bits)
             : fmt::format("TVQ, {} bits", vectors.bits);
}

// Sizes and errors: unpacked weights are not those that were packed, and this says by how much.
void print_summary(const TaskVectors& vectors, const std::string& path, std::size_t file_bytes) {
  const double weights = static_cast<double>(vectors.elements()) * static_cast<double>(vectors.tasks.size());
  fmt::print(
      "{}: {}; {} tasks of {} weights; {} bytes of tensors, {} with the header; {:.3f} bits a weight, "
      "{:.1f} % of f32\n",
      printable(path), kind_of(vectors), vectors.tasks.size(), vectors.elements(), vectors.tensor_bytes(),
      file_bytes, 8.0 * static_cast<double>(vectors.tensor_bytes()) / weights,
      100.0 * static_cast<double>(file_bytes) / (4.0 * weights));
  fmt::print("base '{}', sha256 {}\n", printable(vectors.base_name), printable(vectors.base_sha256));
  for (const Task& task : vectors.tasks) {
    fmt::print("task '{}': lossy, largest error of a weight {:.3g}; made of weights with the sha256 {}\n",
               printable(task.name), task.largest_error, printable(short_digest(task.sha256)));
  }
}

void pack_models(const VectorsArguments& arguments) {
  require_one_process("vectors pack");
  require_new_file(arguments.output);
  const Model base = open_model(arguments.base);
  std::vector<Model> models;
  for (const std::string& argument : arguments.models) models.push_back(open_named(argument));
  const TaskVectors vectors = pack(base, models, arguments.pack);
  print_summary(vectors, arguments.output, write_task_vectors(arguments.output, vectors));
}

void unpack(const VectorsArguments& arguments) {
  require_one_process("vectors unpack");
  require_new_file(arguments.output);
  const TaskVectors vectors = read_task_vectors(arguments.path);
  const Model model =
      unpacked(vectors, arguments.path, open_model(arguments.base), vectors.index_of(arguments.task));
  std::vector<std::vector<float>> values;
  for (std::size_t i = 0; i < model.parameters.size(); ++i) values.push_back(model.values(i));
  const double error = vectors.tasks[vectors.index_of(arguments.task)].largest_error;
  const std::string how =
      fmt::format("unpacked task vectors ({}), largest error of a weight {:.3g}", kind_of(vectors), error);
  save_model(arguments.output, model.parameters, std::move(values), metadata_of(model, how));
  fmt::print("{}: {}\n", printable(arguments.output), how);
}

void show(const std::string& path) {
  print_summary(read_task_vectors(path), path, std::filesystem::file_size(path));
}

}  // namespace

void add_vectors_command(CLI::App& app) {
  CLI::App* vectors = app.add_subcommand(
      "vectors", "Stores fine-tuned models as quantised differences from their base, and merges models");
  vectors->callback([vectors] { require_command(*vectors); });
  auto arguments = std::make_shared<VectorsArguments>();
  const auto add_output = [&](CLI::App* command, const char* help) {
    command->add_option("--out", arguments->output, help)->required()->type_name("FILE");
  };
  const char* base_help = "The model that all began with: run directory or weights file";

  CLI::App* in = vectors->add_subcommand("pack", "Packs one or more fine-tuned models; lossy");
  in->add_option("base", arguments->base, base_help)->required()->type_name("BASE");
  in->add_option("models", arguments->models,
                 "Fine-tuned models: run directories or weights files, or NAME=PATH")
      ->required()
      ->type_name("MODEL");
  in->add_option("--bits", arguments->pack.bits, "Bits of a weight of each model, 2 to 8 (4)");
  in->add_option("--base-bits", arguments->pack.base_bits,
                 "Bits of a weight of the models' mean, stored once (RTVQ), 2 to 8; 0 = no mean (0)");
  add_output(in, "File to write (.safetensors)");
  in->callback([arguments] { pack_models(*arguments); });

  CLI::App* out = vectors->add_subcommand("unpack", "Writes the weights of one of the models");
  out->add_option("file", arguments->path, "File of task vectors")->required()->type_name("FILE");
  out->add_option("base", arguments->base, base_help)->required()->type_name("BASE");
  out->add_option("--task", arguments->task, "Name of the model, as vectors show lists it")
      ->required()
      ->type_name("NAME");
  add_output(out, "Weights file to write (.safetensors)");
  out->callback([arguments] { unpack(*arguments); });

  CLI::App* about = vectors->add_subcommand("show", "Prints what a file of task vectors holds");
  about->add_option("file", arguments->path, "File of task vectors")->required()->type_name("FILE");
  about->callback([arguments] { show(arguments->path); });
  add_vectors_merge(*vectors);
}

}  // namespace mulligan
