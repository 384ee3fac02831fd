// A submission to the challenge: what submission.json says of a record, in the fields that published
// submissions use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mulligan::record {

inline constexpr const char* submission_file = "submission.json";
inline constexpr const char* readme_file = "README.md";
inline constexpr const char* source_file = "evaluation_source.tar.br";  // evaluation_archive(), Brotli
inline constexpr const char* whole_source_file = "source.tar.br";       // source_archive(), Brotli
inline constexpr double overlap_limit = 0.01;  // of windows of 64 tokens, as D25 of mulligan doctor

// One run. Submissions by others say less: what they leave out is absent.
struct SeedResult {
  std::optional<std::int64_t> seed;
  std::optional<double> val_loss, val_bpb;                               // nats per token, bits per byte
  std::optional<std::uint64_t> tokens, bytes;                            // scored
  std::optional<std::uint64_t> artifact_bytes, model_bytes, code_bytes;  // artifact = model + code
  std::optional<std::int64_t> steps;
  std::optional<double> step_avg_ms, train_seconds, eval_seconds;
  std::optional<double> val_bpb_before, val_bpb_quantised;  // before quantisation, after it without adapters
  std::string artifact_sha256, log;                         // log: name of the file; empty: not said
};

// The limits that were kept. Seconds of training include calibration.
struct Budgets {
  double train_seconds = 600, eval_seconds = 600;
  std::uint64_t artifact_bytes = 16'000'000;
};

// What the record is held against, and what came of it (stats::accept_record).
struct Comparison {
  std::string name;
  std::vector<double> reference_bpb;
  double bytes_per_token = 0, margin_nats = 0.005, alpha = 0.01;
  bool paired = false;
  bool accepted = false;
  double p = 1, difference_nats = 0, difference_bpb = 0;
  std::string decision;
  std::vector<std::string> notes;
};

// Windows of 64 tokens of the validation data, side by side, that stand in the training data, too.
struct Overlap {
  double share = 0;
  std::uint64_t validation_tokens = 0, training_tokens = 0;  // compared
};

struct ShippedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct Submission {
  std::string author, github_id, name, blurb, date, track, hardware, software;
  std::optional<double> val_loss, val_bpb;          // means over the seeds
  std::optional<double> val_loss_std, val_bpb_std;  // of the sample (n - 1); absent for one seed
  std::vector<std::int64_t> seeds;                  // as the file lists them; empty: it does not
  std::vector<SeedResult> results;
  std::optional<std::uint64_t> bytes_total, bytes_code;  // the largest artifact; the code alone
  std::optional<Budgets> budgets;
  std::optional<Comparison> comparison;
  std::optional<Overlap> overlap;
  std::vector<ShippedFile> files;  // all but submission.json and README.md
  std::string command, config_sha256, source_sha256;
  // Written by this program, so that it says all of the above and every check can be made.
  bool own = false;
};

// As published: means and deviations in `val_bpb`, `val_bpb_std`, runs in `seed_results` by seed.
nlohmann::ordered_json submission_json(const Submission& submission);

// Reads a submission.json of this program or of others: results stand in `seed_results`, an object by seed
// (of objects, or of bits per byte alone) or a list of objects with `seed`; one without them is a single run
// whose figures stand at the top. Unknown fields are left alone. Throws data_error where it is no JSON object
// or a known field has another type.
Submission read_submission(const std::filesystem::path& path);

}  // namespace mulligan::record
