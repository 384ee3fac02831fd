// mulligan config init
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "framework/config/run_config.h"
#include "framework/config/value.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/shell.h"
#include "framework/data/manifest.h"
#include "framework/data/text_files.h"
#include "tools/commands/tool_commands.h"
#include "tools/prepare/prepare.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string file = "run.toml";
  std::string data;
  double seconds = 300;
  std::string backend = "cpu";
  bool overwrite = false;
};

// The data that a configuration is written for.
struct StartData {
  fs::path prepared;        // folder of shards
  fs::path text;            // to prepare them from; empty: they are there
  std::int64_t vocabulary;  // pieces of the tokenizer
};

std::uintmax_t bytes_below(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const fs::path& file : find_text_files({folder}).files) bytes += fs::file_size(file);
  return bytes;
}

// That of `prepare` by itself, and of README; little text has not as many different words.
std::int64_t vocabulary_for(std::uintmax_t bytes) {
  return bytes < 1'000'000 ? 512 : PrepareOptions{}.vocab_size;
}

StartData look_at(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw data_error("--data '{}' is not a folder; give a folder of text or of prepared data.",
                     folder.string());
  }
  if (fs::exists(folder / "manifest.json")) {
    return {folder.lexically_normal(), {}, load_manifest(folder).vocabulary};
  }
  const std::uintmax_t bytes = bytes_below(folder);
  if (bytes == 0) {
    throw data_error("--data '{}' holds neither text nor a manifest.json; give a folder of text files.",
                     folder.string());
  }
  const fs::path name = fs::weakly_canonical(folder).filename();
  return {"data" / name, folder, vocabulary_for(bytes)};
}

std::string configuration(const InitArguments& arguments, const StartData& data) {
  const std::string file = arguments.file;
  const std::string run = "runs/" + fs::path(file).stem().string();
  const std::string folder = data.prepared.string();
  const bool cuda = arguments.backend == "cuda";
  return fmt::format(
      R"(# A starter configuration, made by `mulligan config init`. What does not stand here is the base's:
# `mulligan config print {}` shows every key with its value, its origin and its range.
extends = "mulligan:quickstart"        # also the path of a file of your own; the run directory is {}
{}
[data]
train = {}
validation = {}
tokenizer = {}
exact_vocabulary = true                # a tokenizer of another size is refused

[model]                                # {}
vocabulary = {}                      # pieces of the tokenizer
layers = 6
{}
[train]
budget_seconds = {:.1f}                 # of training; validation does not count
{}validations = 6                        # on the way, at equal shares of the budget

[metrics]
tensorboard = true                     # tensorboard --logdir {}
{}
[ledger]                               # limits of the result, 0 = none
train_seconds = 0.0
eval_seconds = 0.0
artifact_bytes = 0
)",
      printable(shell_quoted(file)), printable(run), cuda ? "\n[backend]\nplugin = \"cuda\"\n" : "",
      toml_quoted(folder + "/*_train_*.bin"), toml_quoted(folder + "/*_val_*.bin"),
      toml_quoted(folder + "/tokenizer.model"),
      cuda ? "for one GPU; more layers and width learn more"
           : "about a million parameters; more layers and width learn more, slowly",
      data.vocabulary, cuda ? "width = 512\nheads = 8\nkv_heads = 4\n" : "width = 128\n", arguments.seconds,
      cuda ? "tokens_per_step = 65536\nsequence_length = 1024\ncompute_dtype = \"bf16\"\nlog_every = 50\n"
           : "tokens_per_step = 2048\nlog_every = 10\n",
      printable(shell_quoted(run)), cuda ? "\n[eval]\nsequence_length = 1024\n" : "");
}

void init(const InitArguments& arguments) {
  const fs::path file = arguments.file;
  if (fs::exists(file) && !arguments.overwrite) {
    throw config_error("'{}' exists; name another file, or replace it with --overwrite.", file.string());
  }
  const StartData data = look_at(arguments.data);
  const std::string text = configuration(arguments, data);
  static_cast<void>(parse_run_config(text, file.string()));  // what is written can be read
  write_file_atomically(file, text);
  const std::string run = "runs/" + file.stem().string();
  const std::string place = shell_quoted(run);
  fmt::print("{} is written; continue with\n", printable(file.string()));
  if (!data.text.empty()) {
    fmt::print("  mulligan prepare {} --out {} --vocab-size {}\n", shell_path(data.text.string()),
               shell_quoted(data.prepared.string()), data.vocabulary);
  }
  fmt::print("  mulligan train {}\n  mulligan quantize {}\n  mulligan ttt {} --output {}\n",
             shell_path(file.string()), place, shell_quoted(run + "/artifact.mulligan"), place);
  fmt::print("  mulligan generate {} --prompt \"Once\" --keep\n  mulligan report {}\n", place, place);
}

}  // namespace

void add_config_init_command(CLI::App& config) {
  CLI::App* command =
      config.add_subcommand("init", "Writes a starter configuration for a folder of text or prepared data");
  auto arguments = std::make_shared<InitArguments>();
  command->add_option("file", arguments->file, "Configuration to write")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_option("--data", arguments->data, "Folder of text, or of prepared data with its manifest.json")
      ->required()
      ->type_name("FOLDER");
  command->add_option("--seconds", arguments->seconds, "Time to train")
      ->check(CLI::Range(1.0, 1e7))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--backend", arguments->backend,
                   "cpu, or cuda: sizes and precision for one GPU (docs/one_gpu.md)")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag("--overwrite", arguments->overwrite, "Replace the file where it exists");
  command->callback([arguments] { init(*arguments); });
}

}  // namespace mulligan
