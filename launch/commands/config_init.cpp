// mulligan config init
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "framework/config/run_config.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/manifest.h"
#include "launch/commands/commands.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string file = "run.toml";
  std::string data;
  double seconds = 300;
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
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

// A small vocabulary can be learned from little text; a large one gives shorter sequences.
std::int64_t vocabulary_for(std::uintmax_t bytes) {
  if (bytes < 1'000'000) return 512;
  if (bytes < 5'000'000) return 1024;
  return bytes < 100'000'000 ? 2048 : 4096;
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

std::string toml_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "\"";
}

std::string configuration(const InitArguments& arguments, const StartData& data) {
  const std::string file = arguments.file;
  const std::string run = "runs/" + fs::path(file).stem().string();
  const std::string folder = data.prepared.string();
  return fmt::format(
      R"(# A starter configuration, made by `mulligan config init`. What does not stand here is the quickstart's:
# `mulligan config print {}` shows every key with its value, its origin and its range.
extends = "mulligan:quickstart"        # also the path of a file of your own

[run]
name = {}                          # the run directory is {}

[data]
train = {}
validation = {}
tokenizer = {}

[model]                                # about 1.3 million parameters; more layers and width learn more, slowly
vocabulary = {}                      # pieces of the tokenizer
layers = 6
width = 128

[train]
budget_seconds = {:.1f}                 # of training; validation does not count
tokens_per_step = 2048

[ledger]                               # limits of the result, 0 = none
train_seconds = 0.0
eval_seconds = 0.0
artifact_bytes = 0
)",
      file, toml_string(fs::path(file).stem().string()), run, toml_string(folder + "/*_train_*.bin"),
      toml_string(folder + "/*_val_*.bin"), toml_string(folder + "/tokenizer.model"), data.vocabulary,
      arguments.seconds);
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
  fmt::print("{} is written; continue with\n", file.string());
  if (!data.text.empty()) {
    fmt::print("  mulligan prepare {} --out {} --vocab-size {}\n", data.text.string(), data.prepared.string(),
               data.vocabulary);
  }
  fmt::print("  mulligan train {}\n  mulligan quantize {}\n  mulligan ttt {}/artifact.mulligan --output {}\n",
             file.string(), run, run, run);
  fmt::print("  mulligan generate {} --prompt \"Once\"\n", run);
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
  command->add_flag("--overwrite", arguments->overwrite, "Replace the file where it exists");
  command->callback([arguments] { init(*arguments); });
}

}  // namespace mulligan
