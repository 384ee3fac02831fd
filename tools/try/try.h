// A try: a variant of a configuration against its base over the same seeds, and what a folder remembers of all tries.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/core/error.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "tools/try/rules.h"

namespace mulligan::tries {

using Json = nlohmann::ordered_json;

// LOG/results.tsv, and LOG/tries/ID/try.json of each try and each baseline. Its members; numbers that are not known are absent:
//   id, number (order of beginning), baseline, status (running, keep, discard, undecided or crash), why, note
//   variant, base (files), base_id, config (digest), base_config, program, data, machine: what it is of
//   first_seed, kept_pairs (the first pairs, compared with the kept baseline), pairs, looks: [{pairs, p, alpha}]
//   val_bpb, base_bpb, delta (variant - base), error (standard error of delta), p, values, base_values (by seed)
//   training_seconds, total_seconds, peak_vram_mb, peak_memory_mb, num_steps, num_params_M: means of its runs; run_seconds: their sum
class Memory {
 public:
  // Reads `log`, which need not exist. Throws data_error where a file is damaged, naming it.
  explicit Memory(std::filesystem::path log);

  const std::filesystem::path& log() const { return log_; }
  std::filesystem::path folder(const std::string& id) const { return log_ / "tries" / id; }
  const std::vector<Json>& tries() const { return tries_; }  // in the order in which they began
  const Json* find(const std::string& id) const;
  // Writes try.json and, when a try has ended, results.tsv. Gives a new try its number.
  void save(Json& record);

 private:
  std::filesystem::path log_;
  std::vector<Json> tries_;
};

// Of the tries that were tested: how many would be kept if no variant had an effect.
double expected_false_keeps(const std::vector<Json>& tries);
// The last lines, in autoresearch's form: "---", figures as "key: value", the verdict.
std::string result_lines(const Json& record);
// All tries, the best first; and as a page of HTML with a picture.
std::string list_text(std::vector<Json> tries);
std::string tries_page(const Memory& memory);

struct Request {
  std::string variant, base;              // TOML files
  std::vector<std::string> overrides;     // as of --set, of both
  std::vector<std::string> plugin_paths;  // as of --plugin-path
  std::vector<std::string> also;          // keys of what must not change that may
  std::string note;
  std::size_t pairs = 0;  // run side by side; 0: the variant alone, on the seeds of the kept baseline
  bool again = false;
};

struct Result {
  Json record;
  bool repeated = false;                  // it was tried before; nothing was run
  ExitCode crash = ExitCode::run_failed;  // of a variant that crashed
};
// The caller holds the lock of Memory::log(). Throws Error for what is refused, for a base that crashes and for a signal;
// the same request then goes on.
Result run_try(const Request& request, Memory& memory, PluginHost& host, const ConsoleOptions& console);

}  // namespace mulligan::tries
