// mulligan record
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "framework/artifact/artifact_run.h"
#include "framework/artifact/code_size.h"
#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/stop_request.h"
#include "framework/report/machine.h"
#include "framework/run/run_files.h"
#include "framework/run/run_plugins.h"
#include "launch/built_from.h"
#include "launch/command_line.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "tools/commands/record_parts.h"
#include "tools/commands/tool_commands.h"
#include "tools/record/make_submission.h"
#include "tools/report_page/run_record.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;
using record::SeedRun;
using record::SeedStage;
using record::Submission;

void verify(const RecordArguments& arguments) {
  if (arguments.rerun) require_models(arguments.verify);
  std::vector<doctor::Finding> findings = record::verify_submission(arguments.verify);
  if (arguments.rerun && doctor::worst(findings) != doctor::CheckOutcome::fail) {
    findings.push_back(score_again(arguments));
  }
  fmt::print("{}", printable(doctor::findings_text(findings), LineBreaks::kept));
  if (!arguments.json.empty())
    write_file_atomically(arguments.json, doctor::findings_json(findings).dump(1) + "\n");
  record::require_sound(arguments.verify, findings);
}

void require_seeds(const RecordArguments& arguments) {
  const std::set<std::int64_t> distinct(arguments.seeds.begin(), arguments.seeds.end());
  if (distinct.size() != arguments.seeds.size())
    throw config_error("--seeds names a seed twice; the same run twice says nothing about others.");
  if (*distinct.begin() < 0) throw config_error("--seeds has {}; seeds are 0 or more.", *distinct.begin());
}

void require_arguments(const RecordArguments& arguments) {
  const auto require = [](bool given, const char* what) {
    if (!given) throw config_error("a record needs {}; or check a folder with --verify FOLDER.", what);
  };
  require(!arguments.run.config.empty(), "a configuration");
  require(!arguments.seeds.empty(), "--seeds, such as --seeds 42,314,1337");
  if (arguments.dry_run) return require_seeds(arguments);
  require(!arguments.out.empty(), "--out, the folder that is made");
  require(!arguments.about.author.empty(), "--author");
  require(!arguments.about.github_id.empty(), "--github-id");
  require(!arguments.about.name.empty(), "--name");
  require_seeds(arguments);
  if (!arguments.json.empty())
    throw config_error("--json is of --verify; a submission has a submission.json.");
  if (!arguments.reference.empty() && arguments.comparison.name.empty())
    throw config_error("--reference needs --reference-name, which says whose scores they are.");
  if (fs::exists(fs::symlink_status(folder_path(arguments.out)))) {
    throw config_error("'{}' exists; name a folder with --out that does not, or move it away.",
                       arguments.out);
  }
}

// One record, from its arguments.
class Record {
 public:
  explicit Record(const RecordArguments& arguments)
      : arguments_(arguments),
        host_(arguments.run.plugin_host()),
        stages_{arguments_.run, arguments.ranks, arguments.source, arguments.console} {
    set_micro_batches(arguments_.run, arguments_.ranks);
    folder_ = folder_of_runs(arguments_.run, arguments_.runs);
    runs_ = seed_runs(folder_, arguments_.seeds);
  }

  void make() {
    options_.about = arguments_.about;
    check_rules();
    if (arguments_.dry_run) return;
    DirectoryLock lock(folder_, "record");
    require_one_program(folder_);
    for (const SeedRun& run : runs_) make_run(run);
    throw_if_stopping();
    finish();
  }

 private:
  LoadedConfig load(const SeedRun& run) {
    LoadedConfig loaded = stages_.load(run);
    resolve_run_plugins(loaded, host_);
    return loaded;
  }

  // Refuses at once all that can be known before hours of training.
  void check_rules() {
    LoadedConfig loaded = load(runs_.front());
    tell_notes(loaded);
    StrictStartOptions start{{}, arguments_.ranks, arguments_.source};
    if (!arguments_.card.empty()) start.card = find_card(arguments_.card);
    const std::vector<StrictRule> rules = record_rules(loaded, host_, options_.about.track, start);
    if (arguments_.dry_run) fmt::print("{}", printable(strict_rules_table(rules), LineBreaks::kept));
    require_kept(rules);
    options_.limits = loaded.config.ledger;
    options_.about.budgets = record::budgets_of(options_.limits, options_.about.track);
    if (arguments_.reference.empty()) return;
    if (arguments_.seeds.size() < 2)
      throw config_error("--reference needs two seeds or more: one run has no variance.");
    options_.comparison = arguments_.comparison;
    options_.comparison->reference_bpb = reference_scores(arguments_.reference);
    if (options_.comparison->rule.paired &&
        options_.comparison->reference_bpb.size() != arguments_.seeds.size())
      throw config_error("--paired needs as many values of --reference as there are seeds, in their order.");
  }

  void make_run(const SeedRun& run) {
    const LoadedConfig loaded = load(run);
    const std::string digest = config_digest(loaded);
    SeedStage before = SeedStage::done;
    for (SeedStage stage = next_stage(run, digest, loaded.config.ledger); stage != SeedStage::done;
         stage = next_stage(run, digest, loaded.config.ledger)) {
      if (stage == before)
        throw run_error("seed {}: {} ended well and left nothing; see '{}'.", run.seed, stage_text(stage),
                        run.log.string());
      stages_.make(stage, run);
      before = stage;
    }
  }

  void finish() {
    Submission& about = options_.about;
    const report::ResultValue first(RunFiles{runs_.front().directory}.result());
    if (about.hardware.empty())
      about.hardware = fmt::format("{} x {} ({})", arguments_.ranks, first.text("device"), first.text("cpu"));
    about.software = "mulligan " + version_text();
    options_.source_sha256 = built_from();
    about.command = process_command();
    about.date = process_start_time().substr(0, 10);
    options_.runs = runs_;
    options_.source = arguments_.source;
    options_.scoring = scoring_code(load(runs_.front()), host_);
    options_.ship_artifacts = arguments_.ship_artifacts;
    options_.out = folder_path(arguments_.out);
    const Submission made = record::make_submission(options_);
    fmt::print("\n{}", readme_figures(made));
    if (made.comparison)
      fmt::print("against {}: {}\n", made.comparison->name, made.comparison->result.decision);
    fmt::print("submission      '{}'\n", options_.out.string());
  }

  RecordArguments arguments_;
  PluginHost host_;
  RecordStages stages_;
  fs::path folder_;
  std::vector<SeedRun> runs_;
  record::SubmissionOptions options_;
};

void run(const RecordArguments& arguments) {
  if (arguments.rerun && arguments.verify.empty())
    throw config_error("--rerun needs --verify FOLDER, whose models are scored again.");
  if (!arguments.verify.empty()) return verify(arguments);
  require_one_process("record");
  require_arguments(arguments);
  const StopSignals signals;
  Record(arguments).make();
}

void declare_facts(CLI::App& command, RecordArguments& arguments) {
  Submission& about = arguments.about;
  command.add_option("--author", about.author, "Author of the submission")->type_name("NAME");
  command.add_option("--github-id", about.github_id, "Author's GitHub account")->type_name("ID");
  command.add_option("--name", about.name, "Title of the submission")->type_name("TEXT");
  command.add_option("--blurb", about.blurb, "Description in one or more sentences")->type_name("TEXT");
  about.track = "non_record";
  command
      .add_option("--track", about.track,
                  "Budgets in addition to those of [ledger]: 10min_16mb has the challenge's")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--hardware", about.hardware, "Hardware of the runs; without it what the runs record")
      ->type_name("TEXT");
}

void declare_comparison(CLI::App& command, RecordArguments& arguments) {
  record::Comparison& comparison = arguments.comparison;
  command
      .add_option("--reference", arguments.reference,
                  "Run directories, submissions or bits per byte to compare with, as stats accept does")
      ->type_name("RUN|FOLDER|BPB");
  command.add_option("--reference-name", comparison.name, "Name of the reference")->type_name("TEXT");
  command.add_option("--margin", comparison.rule.margin_nats, "Required improvement in nats per token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--alpha", comparison.rule.alpha, "Limit of p")
      ->check(CLI::Range(1e-9, 0.5))
      ->capture_default_str();
  command.add_flag("--paired", comparison.rule.paired, "Value i of --reference has the randomness of seed i");
}

}  // namespace

void add_record_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "record", "Trains, quantises and scores over several seeds and makes a submission; or checks one");
  auto arguments = std::make_shared<RecordArguments>();
  command->add_option("config", arguments->run.config, "Run configuration (TOML)")->type_name("FILE");
  command->add_option("--seeds", arguments->seeds, "Values of run.seed, separated by commas")
      ->delimiter(',')
      ->type_name("SEEDS");
  command->add_option("--out", arguments->out, "Folder of the submission, which must not exist")
      ->type_name("FOLDER");
  command
      ->add_option("--runs", arguments->runs,
                   "Folder of the runs and their logs, from which an interrupted record continues (default: "
                   "run.directory with '_record' appended). With --rerun: folder of the new scores (default: "
                   "FOLDER with '_rerun' appended)")
      ->type_name("FOLDER");
  command->add_option("--ranks", arguments->ranks, "Ranks of each run on this machine, one per GPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--source", arguments->source, "Source tree whose code is counted and packed")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_flag("--artifacts", arguments->ship_artifacts,
                    "Put the quantised models into the folder, too");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Print every rule with its predicted value, and train nothing");
  command
      ->add_option(
          "--card", arguments->card,
          "Card whose memory and rates are compared; without it the device of the configured backend")
      ->type_name("NAME");
  declare_facts(*command, *arguments);
  declare_comparison(*command, *arguments);
  command->add_option("--verify", arguments->verify, "Check this submission and make none")
      ->type_name("FOLDER");
  command->add_flag("--rerun", arguments->rerun,
                    "With --verify: score the models of the folder again with this program; --set says where "
                    "the validation shards are");
  command->add_option("--json", arguments->json, "File that the findings of --verify are written to")
      ->type_name("FILE");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->console);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
