#include "launch/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/core/exhaustion.h"
#include "framework/core/printable.h"
#include "framework/core/standard_streams.h"
#include "framework/core/stop_request.h"
#include "framework/report/console.h"
#include "framework/report/machine.h"
#include "launch/commands/commands.h"
#include "launch/parse_sentence.h"
#include "launch/program_parts.h"
#include "mulligan/abi.h"

namespace mulligan {
namespace {

constexpr const char* kAbout =
    "Trains compact language models under a wall-clock budget and reports bits per byte. Optimisers, losses, "
    "schedules and backends are plugins chosen by a TOML file.";

// A file system's refusal that no reader or writer expected at its place.
std::string sentence_of(const std::filesystem::filesystem_error& error) {
  std::string paths = fmt::format("'{}'", error.path1().string());
  if (!error.path2().empty()) paths += fmt::format(" and '{}'", error.path2().string());
  return fmt::format("cannot use {}: {}; check the path, its permissions and the disk.", paths,
                     error.code().message());
}

ExitCode report(const std::string& sentence, ExitCode code) {
  if (!sentence.empty()) print_error(printable(sentence));  // an end that says all by its code
  return code;
}

// The output must have arrived completely: a reader of the file would take a part of it for the whole.
ExitCode require_output(ExitCode code) {
  const std::string failure = output_failure();
  if (failure.empty()) return code;
  if (output_has_no_reader()) die_of(SIGPIPE);  // who wanted the rest would have read it
  return report(
      fmt::format(
          "the command did its work, but not all of its output could be written to standard output: {}.",
          failure),
      ExitCode::run_failed);
}

// --help and --version are not errors; any other ParseError is a slip of the user's.
ExitCode report_parse_error(const CLI::App& app, const CLI::ParseError& error, const std::string& first) {
  if (error.get_exit_code() == 0) {
    app.exit(error);
    return require_output(ExitCode::ok);
  }
  return report(parse_sentence(app, error, first), ExitCode::bad_configuration);
}

void add_commands(CLI::App& app) {
  app.footer(fmt::format("\nExit codes: {}.", fmt::join(exit_code_texts(), ", ")));
  app.set_version_flag("--version", [] { return "mulligan " + version_text(); });
  for (const CommandEntry& entry : command_table()) {
    if (entry.add == nullptr) continue;
    entry.add(app);
    app.get_subcommand(entry.name)->group(entry.heading);
  }
  app.callback([&app] { require_command(app); });
}

}  // namespace

std::vector<std::string> exit_code_texts() {
  return {"0 ok",
          "1 run failed",
          "2 bad configuration, command line or plugin",
          "3 bad data",
          "4 stopped by a signal; train, eval and ttt have saved a state, from which --resume continues",
          "5 another rank of the run failed",
          "10 try: discard",
          "11 try: undecided"};
}

std::string version_text() {
  return fmt::format("{} (commit {}, {} build, plugin interface {}.{})", MULLIGAN_VERSION, build_commit(),
                     MULLIGAN_BUILD_TYPE, MLG_ABI_MAJOR, MLG_ABI_MINOR);
}

// `help COMMAND` means `COMMAND --help`, and `export` alone `checkpoint export`.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (!words.empty() && words.front() == "export") words.insert(words.begin(), "checkpoint");
  return words;
}

ExitCode run_command_line(int argc, char** argv) {
  CLI::App app(kAbout, "mulligan");
  add_commands(app);
  std::vector<std::string> words = words_of(argc, argv);
  const std::string first = words.empty() ? "" : words.front();
  std::ranges::reverse(words);  // the order in which CLI11 takes them from the end
  try {
    app.parse(std::move(words));  // runs the subcommand's callback
    return require_output(ExitCode::ok);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(app, error, first);
  } catch (const Error& error) {
    return report(error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    return report(sentence_of(error), ExitCode::run_failed);
  } catch (const std::exception& error) {
    if (const auto sentence = exhaustion_sentence(std::current_exception()))
      return report(*sentence, ExitCode::run_failed);
    return report(std::string("internal error: ") + error.what(), ExitCode::run_failed);
  }
}

}  // namespace mulligan
