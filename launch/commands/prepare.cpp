// mulligan prepare
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/data/prepare.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

struct PrepareArguments {
  PrepareOptions options;
  ConsoleOptions console;
  std::string check;  // --check FOLDER: verify instead of preparing
};

void print_split(const char* name, const SplitRecord& split) {
  fmt::print("{:<11} {:>9} documents {:>13} tokens {:>14} bytes {:>7.4f} bytes/token  {} shards\n", name,
             split.documents, split.tokens, split.bytes,
             static_cast<double>(split.bytes) / static_cast<double>(split.tokens), split.shards.size());
}

void print_manifest(const Manifest& manifest) {
  print_split("train", manifest.train);
  print_split("validation", manifest.validation);
  fmt::print("tokenizer   {} pieces, {}, sha256 {}\n", manifest.vocabulary,
             manifest.tokenizer_trained ? "trained on the training documents" : "given",
             printable(manifest.tokenizer_sha256));
  fmt::print("dropped     {} duplicates, {} empty documents\n", manifest.duplicates_dropped,
             manifest.empty_dropped);
}

void run(const PrepareArguments& arguments) {
  if (!arguments.check.empty()) {
    print_manifest(verify_manifest(arguments.check));
    fmt::print("{}: every shard and the tokenizer agree with the manifest\n", arguments.check);
    return;
  }
  PrepareOptions options = arguments.options;
  if (options.inputs.empty()) {
    throw config_error(
        "prepare needs a text folder, text files or JSONL files to read; name them before --out.");
  }
  if (options.output.empty())
    throw config_error("prepare needs --out FOLDER for the shards and the manifest.");
  options.progress = [&](const std::string& line) {
    if (arguments.console.quiet) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  const PrepareSummary summary = prepare(options);
  print_manifest(summary.manifest);
  fmt::print("seconds     {:.1f} reading, {:.1f} tokenizer, {:.1f} encoding\nwritten to  {}\n",
             summary.read_seconds, summary.tokenizer_seconds, summary.encode_seconds,
             options.output.string());
}

void declare(CLI::App& command, PrepareArguments& arguments) {
  PrepareOptions& o = arguments.options;
  command.add_option(
      "inputs", o.inputs,
      "Folders (each file below is a document), text files, JSONL files ({\"text\": ...} per line)");
  command.add_option("--out", o.output, "Folder for shards, tokenizer, validation text and manifest.json");
  command.add_option("--validation", o.validation_inputs,
                     "Validation documents of their own; without it the inputs are divided");
  command.add_option("--validation-fraction", o.validation_fraction, "Share of the documents held out")
      ->capture_default_str();
  command.add_option("--validation-documents", o.validation_documents,
                     "Exactly so many documents held out instead");
  command.add_option("--tokenizer", o.tokenizer, "SentencePiece model to use; without it one is trained");
  command.add_option("--vocab-size", o.vocab_size, "Pieces of the trained tokenizer")->capture_default_str();
  command
      .add_option("--tokenizer-bytes", o.tokenizer_bytes,
                  "Bytes of text the tokenizer is trained on, at most")
      ->capture_default_str();
  command.add_option("--tokens-per-shard", o.tokens_per_shard, "Tokens of one shard file")
      ->capture_default_str();
  command.add_flag("!--keep-order", o.shuffle, "Keep the documents' order; otherwise a fixed random order");
  command.add_option("--threads", o.threads, "Threads, 0 = all cores")->capture_default_str();
  command.add_option("--source", o.source, "Where the text comes from, in words, for the manifest");
  command.add_option("--check", arguments.check,
                     "Check a prepared folder against its manifest, and prepare nothing");
}

}  // namespace

void add_prepare_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("prepare", "Turns text into token shards, a tokenizer and a manifest");
  auto arguments = std::make_shared<PrepareArguments>();
  declare(*command, *arguments);
  declare_quiet(*command, arguments->console);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
