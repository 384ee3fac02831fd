// mulligan prepare
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/data/shard.h"
#include "framework/report/progress.h"
#include "framework/report/run_log.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "tools/doctor/corpus_checks.h"
#include "tools/prepare/prepare.h"

namespace mulligan {
namespace {

struct PrepareArguments {
  PrepareOptions options;
  ConsoleOptions console;
  std::string ablate, ablate_mode = "remove";
  std::string check;  // --check FOLDER: verify instead of preparing
};

void print_split(const char* name, const SplitRecord& split) {
  fmt::print("{:<11} {:>9} documents {:>13} tokens {:>14} bytes {:>7.4f} bytes/token  {} shards\n", name,
             split.documents, split.tokens, split.bytes,
             static_cast<double>(split.bytes) / static_cast<double>(split.tokens), split.shards.size());
}

// What became of the documents' text.
void print_text(const Manifest& manifest) {
  const TextRecord& text = manifest.text;
  fmt::print(
      "read as     {} files of plain text, {} of JSON Lines with {} lines{}\n", text.plain_files,
      text.json_files, text.json_lines,
      text.links_followed == 0 ? "" : fmt::format("; {} symbolic links followed", text.links_followed));
  fmt::print("left out    {} duplicates, {} empty, {} binary documents, {} hidden names\n",
             manifest.duplicates_dropped, manifest.empty_dropped, text.binary_dropped, text.hidden_left_out);
  const auto also = [](std::uint64_t count, const char* what) {
    if (count > 0) fmt::print("            {} {}\n", count, what);
  };
  also(text.bad_lines_dropped, "lines of JSON Lines without a text");
  also(text.paths_left_out, "links, devices and files in other encodings (changes.jsonl)");
  also(text.unread_left_out, "documents without a token");
  also(text.overlap_left_out, "training documents that share a passage with a validation document");
  if (text.kept) {
    fmt::print("text        kept: every byte of the documents is in the tokens\n");
  } else {
    fmt::print("text        {} documents cleaned, {} changed by the tokenizer's normalisation\n",
               text.documents_cleaned, text.documents_changed_by_tokenizer);
  }
  if (text.documents_with_nul > 0) {
    fmt::print("warning: {} documents hold NUL bytes and may be no text; --skip-binary leaves them out\n",
               text.documents_with_nul);
  }
  if (!text.transform.empty()) {
    fmt::print("transform   {}; bytes are those of the original documents, by side tables\n",
               printable(text.transform));
  } else if (!text.kept) {
    fmt::print(
        "note: the validation documents hold {} bytes, and their tokens spell {}; bits per byte are of the {} (side "
        "tables count them), unless data.byte_rule = \"tokenizer\"\n",
        manifest.validation.source_bytes, manifest.validation.bytes, manifest.validation.source_bytes);
  }
}

void print_ablation(const Manifest& manifest) {
  if (!manifest.ablation) return;
  const AblationRecord& record = *manifest.ablation;
  std::string taken;
  for (const auto& [name, count] : record.taken)
    taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", count, name);
  fmt::print("ablated     {} with probability {}, seed {}: {}\n", printable(record.mode), record.probability,
             record.seed, printable(taken));
  const auto side = [](const char* name, const AblatedSplit& split) {
    fmt::print("  {:<11} {} documents changed; {} bytes became {}, and {} tokens {}\n", name, split.documents,
               split.bytes_before, split.bytes_after, split.tokens_before, split.tokens_after);
  };
  side("train", record.train);
  if (record.validation) side("validation", *record.validation);
  if (!record.comparable) {
    fmt::print(
        "warning: the validation text has lost symbols: its bits per byte are not comparable with others\n");
  } else if (record.validation) {
    fmt::print("note: the validation text is masked; bits per byte are of its {} original bytes\n",
               manifest.validation.source_bytes);
  }
}

void print_symbols(const Manifest& manifest) {
  if (!manifest.symbols) return;
  const SymbolRecord& record = *manifest.symbols;
  std::string classes;
  for (const auto& [name, rate] : record.per_1000_tokens)
    classes += fmt::format("{}{:.2f} {}", classes.empty() ? "" : ", ", rate, name);
  fmt::print("symbols     {} per 1,000 training tokens; {} lines of {} templates\n", printable(classes),
             record.lines, record.templates);
}

void print_manifest(const Manifest& manifest) {
  print_split("train", manifest.train);
  print_split("validation", manifest.validation);
  fmt::print("tokenizer   {} pieces, {}, sha256 {}\n", manifest.vocabulary,
             manifest.tokenizer_trained ? "trained on the training documents" : "given",
             printable(manifest.tokenizer_sha256));
  print_text(manifest);
  print_ablation(manifest);
  print_symbols(manifest);
}

// The first of what changes.jsonl lists.
void print_changes(const std::vector<DocumentChange>& changes) {
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, changes.size()); ++i) {
    fmt::print("  {}: {}\n", printable(changes[i].document), printable(changes[i].change));
  }
  if (changes.size() > kShown)
    fmt::print("  and {} more, listed in changes.jsonl\n", changes.size() - kShown);
}

// Files that are not what their names say, or look like something else: the first few.
void print_remarks(const std::vector<std::pair<std::filesystem::path, TextForm>>& remarks) {
  constexpr std::size_t shown = 5;
  const auto print = [&](TextForm form, const char* sentence) {
    std::string names;
    std::size_t count = 0;
    for (const auto& [path, what] : remarks) {
      if (what != form || ++count > shown) continue;
      names += (names.empty() ? "" : ", ") + printable(path.string());
    }
    if (count > shown) names += fmt::format(" and {} more", count - shown);
    if (count > 0) fmt::print(fmt::runtime(sentence), names);
  };
  print(TextForm::found_lines, "note: read as JSON Lines by their contents: {}\n");
  print(
      TextForm::foreign_lines,
      "warning: these files look like JSON Lines without the text's key, and each was read as one document (name the "
      "key with --json-key): {}\n");
  print(
      TextForm::json_collection,
      "warning: each of these files is a JSON array, and was read as one document (one line for each element is made "
      "with: jq -c '.[]' FILE > FILE.jsonl): {}\n");
  print(
      TextForm::other_bytes,
      "warning: these files are not UTF-8, and their bytes are kept as they are (to read them as Latin-1: iconv -f LATIN1 "
      "-t UTF-8 FILE > FILE.utf8): {}\n");
}

// What mulligan doctor would say of these shards.
std::vector<doctor::Finding> audit(const std::filesystem::path& folder, const Manifest& manifest) {
  constexpr std::uint64_t budget = std::uint64_t{1} << 22;
  const Tokenizer tokenizer = Tokenizer::load(folder / manifest.tokenizer_file);
  doctor::DataSides sides{find_shards({folder.string()}, DataSplit::train),
                          find_shards({folder.string()}, DataSplit::validation), manifest.vocabulary,
                          &tokenizer, budget};
  std::vector<doctor::Finding> findings = doctor::see_data(sides).findings;
  if (manifest.overlap) findings.push_back(doctor::check_overlap(*manifest.overlap));
  return findings;
}

// What is not well.
void print_audit(const std::vector<doctor::Finding>& findings) {
  for (const doctor::Finding& finding : findings) {
    if (finding.verdict == doctor::CheckOutcome::pass) continue;
    fmt::print("warning: {} ({}); {}\n", printable(finding.message), finding.id, finding.hint);
  }
  fmt::print("audit       {} checks of the tokens, the worst {}\n", findings.size(),
             doctor::verdict_name(doctor::worst(findings)));
}

// The shards are written, and no run starts with them.
void require_sound(const std::vector<doctor::Finding>& findings, const std::filesystem::path& folder) {
  const auto failed = std::ranges::find(findings, doctor::CheckOutcome::fail, &doctor::Finding::verdict);
  if (failed == findings.end()) return;
  throw data_error("'{}' is written, but check {} ({}) of its tokens fails: {}; {}.",
                   printable(folder.string()), failed->id, failed->title, printable(failed->message),
                   failed->hint);
}

void run(const PrepareArguments& arguments) {
  require_one_process("prepare");
  if (!arguments.check.empty()) {
    print_manifest(verify_manifest(arguments.check));
    fmt::print("{}: every shard and the tokenizer agree with the manifest\n", arguments.check);
    return;
  }
  PrepareOptions options = arguments.options;
  if (!arguments.ablate.empty()) options.ablation.classes = parse_symbol_classes(arguments.ablate);
  options.ablation.mode = parse_ablation_mode(arguments.ablate_mode);
  RunLog log(arguments.console, {});
  std::optional<Progress> shown;
  options.phase = [&](const std::string& what, const std::string& unit, double total) {
    shown.reset();
    if (!what.empty())
      shown.emplace(&log, ProgressPhase{.what = what, .unit = unit, .total = total, .ticks = true});
  };
  options.advance = [&](double units) { shown->advance(units); };
  const PrepareSummary summary = prepare(options);
  print_manifest(summary.manifest);
  print_changes(summary.changes);
  print_remarks(summary.remarks);
  options.phase("auditing the tokens", "", 0);
  const std::vector<doctor::Finding> findings = audit(options.output, summary.manifest);
  options.phase("", "", 0);
  print_audit(findings);
  fmt::print("written to  {}\n", options.output.string());
  require_sound(findings, options.output);
}

void declare(CLI::App& command, PrepareArguments& arguments) {
  PrepareOptions& o = arguments.options;
  command.add_option("inputs", o.inputs,
                     "Folders (each file below is a document), text files, JSON Lines ({\"text\": ...} per "
                     "line, see --json-key; recognised by their contents, too)");
  command.add_option("--out", o.output, "Folder for shards, tokenizer, validation text and manifest.json");
  command.add_flag("--overwrite", o.overwrite, "Replace prepared data that --out holds");
  command.add_option("--json-key", o.text.json_key, "Key of the text in JSONL lines")->capture_default_str();
  command.add_flag(
      "--clean", o.text.clean,
      "Clean texts (white space, control characters, invalid UTF-8); otherwise every byte is kept");
  command.add_flag("--skip-binary", o.text.skip_binary,
                   "Leave out files that hold a NUL byte, are compressed, or are in UTF-16 or UTF-32");
  command.add_flag("--skip-bad-lines", o.text.skip_bad_lines,
                   "Leave out lines of JSON Lines that hold no text, and count them");
  command.add_option("--validation", o.validation_inputs,
                     "Separate validation documents; without it the inputs are divided");
  command.add_option("--validation-fraction", o.validation_fraction, "Share of the documents held out")
      ->capture_default_str();
  command.add_option("--validation-documents", o.validation_documents,
                     "Number of documents held out, in place of a share");
  command.add_option(
      "--text-transform", o.transform,
      "Transform of each document before it is tokenised, whose original bytes are counted: caseops "
      "(docs/data.md)");
  command.add_option("--tokenizer", o.tokenizer, "SentencePiece model to use; without it one is trained");
  command.add_option("--vocab-size", o.vocab_size, "Pieces of the trained tokenizer")->capture_default_str();
  command
      .add_option("--normalization", o.normalization,
                  "Normalisation of the trained tokenizer: identity changes nothing; nmt_nfkc, nfkc, "
                  "nmt_nfkc_cf and nfkc_cf rewrite the text")
      ->capture_default_str();
  command
      .add_option("--tokenizer-bytes", o.tokenizer_bytes,
                  "Bytes of text the tokenizer is trained on, at most")
      ->capture_default_str();
  command.add_flag("--drop-overlap", o.drop_overlap,
                   "Leave out training documents that hold a passage of the validation text, changed or not");
  command.add_option("--tokens-per-shard", o.tokens_per_shard, "Tokens of one shard file")
      ->capture_default_str();
  command.add_flag("!--keep-order", o.shuffle, "Keep the documents' order; otherwise a fixed random order");
  command.add_option("--threads", o.threads, "Threads, 0 = all cores")->capture_default_str();
  command.add_option("--source", o.source, "Where the text comes from, in words, for the manifest");
  command.add_flag(
      "--symbol-statistics", o.symbol_statistics,
      "Count symbols and templates of lines in the training text, for the manifest (docs/data.md)");
  command.add_option("--ablate", arguments.ablate,
                     "Symbols to take out of the training text: latex, digits, operators, greek, with commas "
                     "between them (docs/data.md)");
  command
      .add_option("--ablate-mode", arguments.ablate_mode,
                  "remove; mask: replace by --ablate-mask; decontext: exchange symbols within a document")
      ->capture_default_str();
  command
      .add_option("--ablate-probability", o.ablation.probability,
                  "Probability with which each symbol is removed")
      ->capture_default_str();
  command.add_option("--ablate-seed", o.ablation.seed, "Seed of the choice of symbols")
      ->capture_default_str();
  command.add_option("--ablate-mask", o.ablation.mask, "Text that replaces a symbol in the mode mask")
      ->capture_default_str();
  command
      .add_option("--ablate-domains", o.ablation.domains,
                  "Only documents whose names match one of these globs, with commas between them")
      ->delimiter(',');
  command.add_flag("--ablate-validation", o.ablation.validation,
                   "Take symbols out of the validation text, too; scores may then not be comparable");
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
