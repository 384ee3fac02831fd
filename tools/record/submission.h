// A submission to the challenge: what submission.json says of a record, in the fields that published
// submissions use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/text_overlap.h"

namespace mulligan::record {

inline constexpr const char* submission_file = "submission.json";
inline constexpr const char* readme_file = "README.md";
inline constexpr const char* source_file = "evaluation_source.tar.br";  // evaluation_archive(), Brotli
inline constexpr const char* whole_source_file = "source.tar.br";       // source_archive(), Brotli
inline constexpr const char* config_file = "config.toml";               // every setting of the first run

// What a run learned from and was scored on: digests of the shards (ShardSetIdentity) and of the tokenizer's file. A
// set that is published has known digests, so a reader sees whether a score is of that set.
struct RecordData {
  std::string train, validation, tokenizer;
  bool operator==(const RecordData&) const = default;
  bool empty() const { return *this == RecordData{}; }
};

// One run. Submissions by others say less: what they leave out is absent.
struct SeedResult {
  std::optional<std::int64_t> seed;
  std::optional<double> val_loss, val_bpb;                               // nats per token, bits per byte
  std::optional<std::uint64_t> tokens, bytes;                            // scored
  std::optional<std::uint64_t> artifact_bytes, model_bytes, code_bytes;  // artifact = model + code
  std::optional<std::int64_t> steps;
  std::optional<double> step_avg_ms, train_seconds, eval_seconds;
  std::optional<double> val_bpb_before, val_bpb_quantised;  // before quantisation, after it without adapters
  std::string artifact_sha256, config_sha256;
  RecordData data;  // not written for each: all runs of a record have the same
  std::string log;  // name of the file; empty: not said
};

// The limits that were kept. Seconds of training include calibration.
struct Budgets {
  double train_seconds = 600, eval_seconds = 600;
  std::uint64_t artifact_bytes = 16'000'000;
  bool operator==(const Budgets&) const = default;
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
  std::optional<TextOverlap> overlap;
  RecordData data;                                    // empty in folders of older programs
  std::vector<ShippedFile> files;                     // all but submission.json and README.md
  std::string command, config_sha256, source_sha256;  // config: that of the first result
  // Of this program, so that it says all of the above and every check can be made: by its format, or by fields
  // and files that only this program writes. Whoever takes the format out makes no folder of others.
  bool own = false;
  bool stated_format = false;         // submission.json says its format
  bool non_record = false;            // of others: it says somewhere that it is none
  std::vector<std::string> oddities;  // of others: known fields in another form, which were left out
  std::string
      unwritten;  // of this program: the first field that it would not write, or not so; empty: there is none
};

// Whether a text of others calls their work a non-record submission, however it is written.
bool speaks_of_no_record(std::string text);

// The name under which the folder holds a result's model, where it does.
std::string artifact_name(const SeedResult& result);

// As published: means and deviations in `val_bpb`, `val_bpb_std`, runs in `seed_results` by seed.
nlohmann::ordered_json submission_json(const Submission& submission);

// Reads a submission.json of this program or of others (`own_files`: whether the files next to it are this
// program's): results stand in `seed_results`, an object by seed
// (of objects, or of bits per byte alone) or a list of objects with `seed`; one without them is a single run
// whose figures stand at the top. Unknown fields are left alone. Throws data_error where it is no JSON object
// or a known field has another type.
Submission read_submission(const std::filesystem::path& path, bool own_files = false);

// What every run of a record was made from: sha256 of its settings (config_digest), of the source tree
// (source_digest) and of the packed source of an evaluation.
struct RecordDigests {
  std::string config, source, evaluation_source;
  bool operator==(const RecordDigests&) const = default;
};

}  // namespace mulligan::record
