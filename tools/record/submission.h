// submission.json: what a submission claims, in the fields that the challenge's published submissions use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/artifact/evaluation_source.h"
#include "tools/stats/acceptance.h"

namespace mulligan::record {

inline constexpr const char* submission_file = "submission.json";
inline constexpr const char* readme_file = "README.md";
inline constexpr const char* source_file = EvaluationPackage::files_name;  // what an evaluation needs
inline constexpr const char* unpacker_file = EvaluationPackage::unpacker_name;
inline constexpr const char* own_code_file = "own_code.tar.br";    // packed_own_files(); absent: none
inline constexpr const char* whole_source_file = "source.tar.br";  // source_archive(), Brotli
inline constexpr const char* config_file = "config.toml";          // every setting of the first run

// sha256 by name. Of a run: "artifact", "config" (settings_digest), "source" (source_digest), and the data: "train" and
// "validation" (ShardSetIdentity), "tokenizer" (its file).
using Digests = std::map<std::string, std::string>;

// One run. Submissions of other programs say less: what they omit is absent.
struct SeedResult {
  std::optional<std::int64_t> seed;
  std::optional<double> val_loss, val_bpb;                               // nats per token, bits per byte
  std::optional<std::uint64_t> tokens, bytes;                            // scored
  std::optional<std::uint64_t> artifact_bytes, model_bytes, code_bytes;  // artifact = model + code
  std::optional<std::uint64_t> steps;
  std::optional<double> step_avg_ms, train_seconds, eval_seconds;
  std::optional<double> val_bpb_before, val_bpb_quantised;  // before quantisation, after it without adapters
  Digests digests;
  std::string log;        // name of the file; empty: not stated
  std::string byte_rule;  // data.byte_rule, by which `bytes` are counted; empty: not stated
  std::string digest(const std::string& of) const { return digests.contains(of) ? digests.at(of) : ""; }
};

// The limits of a record. Seconds of training include calibration. The defaults are the challenge's.
struct Budgets {
  double train_seconds = 600, eval_seconds = 600, artifact_bytes = 16'000'000;
};

// Whether a track has the challenge's limits: "10min_16mb" and the like.
inline bool is_ten_minute_track(const std::string& track) {
  return track.find("10min") != std::string::npos;
}

// The reference, and the decision against it (stats::accept_record).
struct Comparison {
  std::string name;
  std::vector<double> reference_bpb;
  stats::AcceptanceRule rule;  // compare() sets bytes_per_token
  stats::Acceptance result;
};

struct Submission {
  std::string author, github_id, name, track;
  std::string environment;                          // what computed the scores (scoring_environment)
  std::optional<double> val_loss, val_bpb;          // means over the seeds
  std::optional<double> val_loss_std, val_bpb_std;  // of the sample (n - 1); absent for one seed
  std::vector<std::int64_t> seeds;                  // as the file lists them; empty: it does not
  std::vector<SeedResult> results;
  std::optional<std::uint64_t> bytes_total, bytes_code;  // the largest artifact; the code alone
  std::optional<Budgets> budgets;
  Digests files;  // all but submission.json and README.md
  std::string blurb, date, hardware, software, command;
  std::string overlap;                   // of training and validation text, in the words of training
  std::optional<Comparison> comparison;  // not read back
  // Only read.
  bool own = false;         // its format is that of mulligan record, so that every check can be made
  bool non_record = false;  // of another program: it says that it is not a record
  std::vector<std::string> oddities;  // known fields in an unknown form, which were left out
};

// Whether a text calls its work a non-record submission, in any spelling.
bool speaks_of_no_record(std::string text);

// The table of the seeds and the means in README.md. It follows from submission.json alone, so `mulligan record --verify` makes
// it again and looks for it. The rest of the page is free text.
std::string readme_figures(const Submission& submission);
std::string readme_text(const Submission& submission);  // the whole file

// "train_seed42.log" -> 42; absent if the name has no "seed" that digits follow.
std::optional<std::int64_t> seed_of_name(const std::string& name);

// The file that holds a result's model, where the folder has it.
std::string artifact_name(const SeedResult& result);

nlohmann::ordered_json submission_json(const Submission& submission);

// Reads the submission.json of this program or another. Results stand in `seed_results` (or under names that other
// programs use): an object by seed, of objects or of bits per byte, or a list of objects with `seed`. Without any of
// these the file describes one run, whose figures stand at the top. Unknown fields are ignored. Throws data_error
// for a file that is not a JSON object.
Submission read_submission(const std::filesystem::path& path);

}  // namespace mulligan::record
