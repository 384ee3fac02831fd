// mulligan generate
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "framework/report/trials.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_generate.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"

namespace mulligan {
namespace {

struct GenerateArguments {
  RunOptions run;
  GenerateRunOptions generate;
  std::string path;  // artifact, run directory or weights file
  bool keep = false;
};

// Neither a prompt of others nor a model that was trained on their texts may steer the terminal.
void write(std::string_view unsafe_text) {
  const std::string text = printable(unsafe_text, LineBreaks::kept);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// The run whose weights or artifact write the text.
std::filesystem::path require_run_directory(const std::string& path) {
  if (const auto run = run_directory_of(path); !run.empty()) return run;
  throw config_error("--keep keeps the text in a run directory, and '{}' is not of one; leave it out.", path);
}

void keep(const GenerateArguments& arguments, const std::string& text, const GenerateResult& result) {
  const GenerateOptions& options = arguments.generate.generate;
  add_sample(
      RunFiles{require_run_directory(arguments.path)}.samples(),
      {arguments.path, arguments.generate.prompt, text, static_cast<std::int64_t>(result.tokens.size()),
       options.sampling.temperature, static_cast<std::uint64_t>(options.sampling.seed)});
}

void run(const GenerateArguments& arguments) {
  require_one_process("generate");
  if (arguments.keep) static_cast<void>(require_run_directory(arguments.path));
  WeightSource source = open_weights(arguments.path, arguments.run);
  GenerateRunOptions options = arguments.generate;
  options.console = stderr;  // the text alone goes to stdout
  // The prompt is printed with its continuation, after the lines about the start.
  bool begun = false;
  const auto begin = [&] {
    if (!begun) write(arguments.generate.prompt);
    begun = true;
  };
  std::string written;
  options.on_text = [&](std::string_view text) {
    begin();
    write(text);
    if (arguments.keep) written += text;
  };
  PluginHost host = arguments.run.plugin_host();
  const GenerateResult text = run_generate(source.loaded, host, source.origin, source.load, options);
  begin();
  write("\n");
  if (arguments.keep) keep(arguments, written, text);
  const auto tokens = static_cast<double>(text.tokens.size());
  if (text.tokens.empty() || options.quiet) return;
  fmt::print(stderr, "{} tokens{}, {:.4f} nats per token, {:.1f} tokens/s\n", text.tokens.size(),
             text.ended ? ", ended by the model" : "", text.loss_nats / tokens, tokens / text.seconds);
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "Continues a text with a run's weights or its artifact");
  auto arguments = std::make_shared<GenerateArguments>();
  GenerateRunOptions& options = arguments->generate;
  command->add_option("path", arguments->path, "Artifact, run directory or weights file (.safetensors)")
      ->required()
      ->type_name("PATH");
  command->add_flag("--keep", arguments->keep,
                    "Keep the text in the run directory, whose report then shows it");
  command->add_option("--prompt", options.prompt, "Text to continue; without it a new one begins")
      ->type_name("TEXT");
  command->add_option("--max-tokens", options.generate.max_tokens, "Stop after so many tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--temperature", options.generate.sampling.temperature,
                   "Below 1 the probable becomes more probable; 0 always takes the most probable token")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("T")
      ->capture_default_str();
  command
      ->add_option("--top-k", options.generate.sampling.top_k,
                   "Choose among the K most probable tokens; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24))
      ->type_name("K")
      ->capture_default_str();
  command->add_option("--seed", options.generate.sampling.seed, "The same seed gives the same text")
      ->type_name("N")
      ->capture_default_str();
  arguments->run.declare_config(*command);
  arguments->run.declare(*command);
  declare_quiet(*command, options);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
