// A submission's folder for tests: three runs with consistent figures, as mulligan record writes them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "framework/artifact/code_size.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/artifact/reachable_source.h"
#include "framework/artifact/text_packer.h"
#include "framework/config/config_report.h"
#include "framework/core/file.h"
#include "framework/core/statistic.h"
#include "tests/support/sentence.h"
#include "tools/record/make_submission.h"
#include "tools/record/seed_log.h"

namespace mulligan::record::samples {

inline constexpr const char* sample_config = "[run]\nseed = 42  # default\n";

// A source tree of two files, and what of it an evaluation needs, packed as it is counted.
inline std::vector<std::pair<std::string, std::string>> sample_tree() {
  return {{"framework/a.cpp", "int a;  // first\n"}, {"launch/main.cpp", "int main() {}\n"}};
}
inline std::string sample_source() {
  const std::string end(1, '\0');  // of a file
  return pack_text("cmake/Build.cmake\n# the build\n" + end + "framework/a.cpp\n" +
                   without_comments(sample_tree()[0].second) + end);
}

inline constexpr std::string_view sample_unpacker = "int main() {}";

inline SeedResult sample_result(std::int64_t seed, double val_loss) {
  SeedResult result;
  result.seed = seed;
  result.tokens = 1000;
  result.bytes = 3700;
  result.val_loss = val_loss;
  result.val_bpb = val_loss * 1000 / std::numbers::ln2 / 3700;
  result.model_bytes = 5000;
  result.code_bytes = sample_source().size() + sample_unpacker.size();
  result.artifact_bytes = 5000 + *result.code_bytes;
  result.steps = 20;
  result.step_avg_ms = 100;
  result.train_seconds = 2.125;
  result.eval_seconds = 1.0 / 3;
  result.digests = {
      {"artifact", sha256_hex(std::to_string(seed))}, {"config", settings_digest(sample_config)},
      {"source", source_digest(sample_tree())},       {"train", sha256_hex("training")},
      {"validation", sha256_hex("validation")},       {"tokenizer", sha256_hex("tokenizer")}};
  result.log = "train_seed" + std::to_string(seed) + ".log";
  result.byte_rule = "original";
  return result;
}

// The log of a run: what its stages wrote, and the summary.
inline std::string sample_log(const SeedResult& result) {
  return fmt::format("== seed {}, training\nstep 20 loss 5.1\n", *result.seed) + summary_lines(result);
}

// Writes the folder, and returns what its submission.json says.
inline Submission write_sample(const std::filesystem::path& folder) {
  Submission s;
  s.own = true;
  s.author = "A. Author";
  s.github_id = "author";
  s.name = "A record";
  s.date = "2026-11-22";
  s.track = "non_record";
  s.budgets = Budgets{10, 10, 6000};
  s.environment = "cpu, 1 rank";
  s.overlap = "0.05 % of the validation text is similar to training text";
  std::vector<double> scores;
  for (const auto& [seed, loss] : {std::pair{42, 2.70}, std::pair{314, 2.71}, std::pair{1337, 2.705}}) {
    s.results.push_back(sample_result(seed, loss));
    s.seeds.push_back(seed);
    scores.push_back(*s.results.back().val_bpb);
  }
  s.val_bpb = statistic_of(scores).mean;
  s.val_bpb_std = statistic_of(scores).deviation;
  s.val_loss = 2.705;
  s.val_loss_std = 0.005;
  s.bytes_code = sample_source().size() + sample_unpacker.size();
  s.bytes_total = 5000 + *s.bytes_code;
  Comparison reference;
  reference.name = "an earlier record";
  reference.reference_bpb = {1.07, 1.069, 1.071};
  compare(s, reference);
  const auto ship = [&](const std::string& name, const std::string& bytes) {
    write_file_atomically(folder / name, bytes);
    s.files[name] = sha256_hex(bytes);
  };
  ship(source_file, sample_source());
  ship(unpacker_file, std::string(sample_unpacker));
  ship(whole_source_file, compress(Compression::brotli, tar_archive(sample_tree())));
  ship(config_file, sample_config);
  for (const SeedResult& result : s.results) ship(result.log, sample_log(result));
  write_file_atomically(folder / readme_file, readme_text(s));
  write_file_atomically(folder / submission_file, submission_json(s).dump(1));
  return s;
}

// Rewrites a file of the folder with `from`, which must occur there, replaced once by `to`.
inline void edit(const std::filesystem::path& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("'" + from + "' is not in " + path.string());
  write_file_atomically(path, text.replace(at, from.size(), to));
}

// Ids of the checks that fail, blanks between.
inline std::string failed(const std::filesystem::path& folder) {
  std::string ids;
  for (const doctor::Finding& finding : verify_submission(folder)) {
    if (finding.verdict == doctor::CheckOutcome::fail) ids += (ids.empty() ? "" : " ") + finding.id;
  }
  return ids;
}

// The exit code of a refusal; 0: none.
inline int refused_with(const std::filesystem::path& folder) {
  return static_cast<int>(ending_of([&] { require_sound(folder, verify_submission(folder)); }).first);
}

}  // namespace mulligan::record::samples
