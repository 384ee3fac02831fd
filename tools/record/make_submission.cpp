#include "tools/record/make_submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "framework/artifact/code_size.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/statistic.h"
#include "framework/core/temporary_path.h"
#include "framework/report/run_directory.h"
#include "tools/record/seed_log.h"

namespace mulligan::record {
namespace {

namespace fs = std::filesystem;

std::vector<double> scores_of(const Submission& submission) {
  std::vector<double> bpb;
  for (const SeedResult& result : submission.results) bpb.push_back(result.val_bpb.value());
  return bpb;
}

void add_means(Submission& submission) {
  std::vector<double> losses;
  for (const SeedResult& result : submission.results) {
    losses.push_back(result.val_loss.value());
    submission.seeds.push_back(result.seed.value());
    submission.bytes_total = std::max(submission.bytes_total, result.artifact_bytes);
  }
  const Statistic bpb = statistic_of(scores_of(submission)), loss = statistic_of(losses);
  submission.val_bpb = bpb.mean;
  submission.val_bpb_std = bpb.deviation;
  submission.val_loss = loss.mean;
  submission.val_loss_std = loss.deviation;
}

// All runs were scored on the same text and counted the same code.
void require_alike(const Submission& submission) {
  const SeedResult& first = submission.results.front();
  for (const SeedResult& other : submission.results) {
    const auto require = [&](bool alike, const char* what) {
      if (!alike)
        throw data_error("seeds {} and {} have other {}: they are not runs of one record; make both again.",
                         first.seed.value(), other.seed.value(), what);
    };
    require(first.tokens == other.tokens && first.bytes == other.bytes, "scored tokens or bytes");
    require(first.byte_rule == other.byte_rule, "rules of bytes (data.byte_rule)");
    require(first.code_bytes == other.code_bytes, "bytes of code");
    for (const char* data : {"train", "validation", "tokenizer"})
      require(first.digests.at(data) == other.digests.at(data), data);
  }
}

using Ship = std::function<void(const std::string& name, std::string_view bytes)>;

void ship_source(const Ship& ship, const SubmissionOptions& options, std::uint64_t counted) {
  const EvaluationPackage packed =
      packed_evaluation(options.source, evaluation_source(options.source, options.scoring.plugins));
  const std::string own = packed_own_files(options.scoring);
  if (packed.bytes() + own.size() != counted) {
    throw run_error(
        "the source in '{}' packs, with own plugins, to {} bytes, but the runs counted {}: it "
        "has changed since; put it back as it was, or make the runs again.",
        options.source.string(), packed.bytes() + own.size(), counted);
  }
  ship(source_file, packed.files);
  ship(unpacker_file, packed.unpacker);
  if (!own.empty()) ship(own_code_file, own);
  ship(whole_source_file, compress_once(source_archive(options.source)));
}

}  // namespace

Budgets budgets_of(const LedgerConfig& limits, const std::string& track) {
  const Budgets most,
      budgets{limits.train_seconds, limits.eval_seconds, static_cast<double>(limits.artifact_bytes)};
  if (!(budgets.train_seconds > 0 && budgets.eval_seconds > 0 && budgets.artifact_bytes > 0)) {
    throw config_error(
        "[ledger] sets not all of train_seconds, eval_seconds and artifact_bytes, so there is no rule that a record "
        "could keep; set them (the challenge has {}, {} and {}).",
        most.train_seconds, most.eval_seconds, most.artifact_bytes);
  }
  const bool within = budgets.train_seconds <= most.train_seconds &&
                      budgets.eval_seconds <= most.eval_seconds &&
                      budgets.artifact_bytes <= most.artifact_bytes;
  if (within || !is_ten_minute_track(track)) return budgets;
  throw config_error(
      "[ledger] allows more than the {} s, {} s and {} bytes of the track {}; lower it, or name another with --track.",
      most.train_seconds, most.eval_seconds, most.artifact_bytes, track);
}

void compare(Submission& submission, Comparison comparison) {
  const SeedResult& first = submission.results.front();
  comparison.rule.bytes_per_token =
      static_cast<double>(first.bytes.value()) / static_cast<double>(first.tokens.value());
  comparison.result = stats::accept_record(scores_of(submission), comparison.reference_bpb, comparison.rule);
  submission.comparison = std::move(comparison);
}

Submission make_submission(const SubmissionOptions& options) {
  Submission submission = options.about;
  submission.own = true;
  for (const SeedRun& run : options.runs) {
    submission.results.push_back(seed_result(run, options.limits));
    submission.results.back().digests["source"] = options.source_sha256;
  }
  const RunFiles first{options.runs.front().directory};
  submission.overlap = stated_overlap(first);
  submission.environment = scoring_environment(first);
  require_alike(submission);
  add_means(submission);
  submission.bytes_code = submission.results.front().code_bytes;
  if (options.comparison) compare(submission, *options.comparison);

  TemporaryPath temporary(temporary_name(options.out));
  fs::create_directories(temporary.path());
  const auto ship = [&](const std::string& name, std::string_view bytes) {
    write_file_atomically(temporary.path() / name, bytes);
    submission.files[name] = sha256_hex(bytes);
  };
  ship_source(ship, options, *submission.bytes_code);
  ship(config_file, read_file(first.config()));
  for (std::size_t i = 0; i < options.runs.size(); ++i) {
    const SeedResult& result = submission.results[i];
    ship(result.log, read_file(options.runs[i].log) + summary_lines(result));
    if (options.ship_artifacts)
      ship(artifact_name(result), read_file(RunFiles{options.runs[i].directory}.artifact()));
  }
  write_file_atomically(temporary.path() / readme_file, readme_text(submission));
  write_file_atomically(temporary.path() / submission_file, submission_json(submission).dump(1) + "\n");
  require_sound(options.out, verify_submission(temporary.path()));
  temporary.publish(options.out);
  return submission;
}

}  // namespace mulligan::record
