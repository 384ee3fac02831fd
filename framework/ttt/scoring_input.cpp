#include "framework/ttt/scoring_input.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string_view>

#include "framework/core/error.h"
#include "framework/data/documents.h"
#include "framework/data/shard.h"
#include "framework/ttt/document_plan.h"

namespace mulligan {
namespace {

void require_whole_set(const RunConfig& config) {
  if (config.ledger.rules != LedgerRules::strict || config.ttt->config.document_fraction == 1.0) return;
  throw config_error(
      "ttt.document_fraction = {} leaves documents out, and under ledger.rules = \"strict\" a result is of "
      "the whole set; set it to 1.",
      config.ttt->config.document_fraction);
}

// Its steps have no scale of the loss ([loss_scale]), and gradients of single windows are small.
void require_wide_exponent(const RunConfig& config) {
  if (scored_dtype(config) != Precision::fp16) return;
  throw config_error(
      "train.compute_dtype = \"fp16\" is for training, whose loss is scaled; test-time training has no "
      "such scale, and its gradients would vanish: score with --set train.compute_dtype=bf16, or fp32.");
}

// Proposals in the order of the files know documents that are scored after the ones that they are for.
void require_valid_order(const LoadedConfig& loaded) {
  const TttSection& ttt = *loaded.config.ttt;
  if (!ttt.transform || ttt.transform_order != TransformOrder::file) return;
  const std::string key = ttt.transform->host.where("text_order");
  if (ttt.config.document_fraction < 1) {
    throw config_error(
        "{} is \"file\", which tells the transform the documents that "
        "ttt.document_fraction = {} leaves out, too; take \"queue\" or \"document\".",
        key, ttt.config.document_fraction);
  }
  if (loaded.config.ledger.rules != LedgerRules::strict) return;
  throw config_error(
      "{} is \"file\": proposals then know documents that are scored later, so no order makes the scores one "
      "product of conditional probabilities, and ledger.rules = \"strict\" refuses them; take \"queue\" or "
      "\"document\".",
      key);
}

void require_checkable(const LoadedConfig& loaded, bool same_process) {
  if (loaded.config.ledger.rules != LedgerRules::strict || !same_process) return;
  throw config_error(
      "--audit same-process lets a plugin that remembers deceive the check of scores, and ledger.rules = "
      "\"strict\" refuses it; leave it out.");
}

}  // namespace

std::int64_t lanes_for(const LoadedConfig& loaded, int world_size) {
  const std::int64_t lanes = loaded.config.ttt->config.lanes;
  if (lanes == 0) return world_size;
  if (lanes >= world_size) return lanes;
  throw config_error(
      "{} is {}, but there are {} ranks, some of which would have "
      "nothing to do; set it to at least that, or start fewer.",
      loaded.config.ttt->settings.where("lanes"), lanes, world_size);
}

void require_scorable(const LoadedConfig& loaded, bool same_process) {
  require_whole_set(loaded.config);
  require_wide_exponent(loaded.config);
  require_valid_order(loaded);
  require_checkable(loaded, same_process);
}

namespace {

// The runs of tokens whose targets are scored: the whole stream from its first document on, or
// each chosen document.
std::vector<std::span<const std::uint16_t>> scored_runs(const ValidationSet& validation,
                                                        const TttConfig& config) {
  const std::span<const std::uint16_t> tokens = validation.tokens;
  const DocumentPlan plan = plan_documents(tokens, validation.bos_id, config);
  if (config.document_fraction == 1.0) {
    return {tokens.subspan(static_cast<std::size_t>(plan.documents[0].start))};
  }
  std::vector<std::span<const std::uint16_t>> runs;
  for (const PlannedBatch& batch : plan.queue) {
    for (const int number : batch.batch.documents) {
      const Document& document = plan.document(number);
      runs.push_back(tokens.subspan(static_cast<std::size_t>(document.start),
                                    static_cast<std::size_t>(document.length)));
    }
  }
  return runs;
}

}  // namespace

ValidationSet scored_validation(const RunConfig& config) {
  ValidationSet validation = load_validation(config.data, config.model.vocabulary, config.eval.tokens);
  if (config.eval.drop_remainder) {
    validation.tokens.resize(static_cast<std::size_t>(
        whole_rows_length(static_cast<std::int64_t>(validation.tokens.size()), config.eval.sequence_length)));
  }
  if (validation.tokens.empty()) {
    throw data_error("the validation shards '{}' hold less than one row of eval.sequence_length = {} tokens.",
                     config.data.validation, config.eval.sequence_length);
  }
  return validation;
}

void require_equal_bytes(const ValidationSet& validation, const TttConfig& config) {
  if (!validation.byte_table) return;  // side tables were compared when they were read
  std::uint64_t table = 0, decoded = 0, tokens = 0;
  for (const std::span<const std::uint16_t> run : scored_runs(validation, config)) {
    table += validation.byte_table->count(run);
    decoded += count_bytes_by_decoding(*validation.tokenizer, run);
    tokens += run.size() - 1;
  }
  if (table == decoded) return;
  throw data_error(
      "the byte table counts {} bytes in the {} validation tokens to score, decoding them gives {}, so no "
      "bits per byte can be given; use a tokenizer whose pieces hold the space mark at their start only.",
      table, tokens, decoded);
}

namespace {

namespace fs = std::filesystem;

// The libraries in a folder, and that it may be looked through, but not its other files.
void add_libraries(const fs::path& folder, std::set<fs::path>& files) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().filename().string().find(".so") != std::string::npos) files.insert(entry->path());
  }
}

// The validation shards, as the configuration names them.
std::vector<fs::path> validation_shards(const LoadedConfig& loaded) {
  return find_shards({loaded.config.data.validation}, DataSplit::validation);
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  return path == folder || path.native().starts_with(folder.native() + "/");
}

// The folders of the validation shards, where also what they were made from may lie; of those that lie in a folder
// of the system itself, the shards.
std::vector<fs::path> hidden_files(const LoadedConfig& loaded) {
  std::set<fs::path> hidden;
  for (const fs::path& shard : validation_shards(loaded)) {
    const fs::path real = fs::canonical(shard), folder = real.parent_path();
    const bool deep = std::distance(folder.begin(), folder.end()) > 2;  // "/", "opt", ...
    hidden.insert(deep ? folder : real);
  }
  return {hidden.begin(), hidden.end()};
}

}  // namespace

ReachableFiles files_for_scoring(const LoadedConfig& loaded, PluginHost& host) {
  ReachableFiles files;
  if (loaded.config.backend.plugin != "cpu") {
    files.change = all_but(validation_shards(loaded));
    return files;
  }
  std::set<fs::path> libraries, folders;
  std::error_code failed;
  for (const PluginTableRef& table : plugin_tables(loaded.config)) {
    if (!table.table->path.empty()) libraries.insert(table.table->path);
  }
  for (const PluginHost::SearchedPlace& searched : host.searched_places()) {
    for (const PluginFile& file : searched.files) libraries.insert(file.path);
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  libraries.insert(program);
  for (const fs::path& library : libraries) folders.insert(library.parent_path());
  const fs::path prefix = program.parent_path().parent_path();
  folders.insert({prefix / "lib", prefix / "lib" / "mulligan"});  // the second: what a bundle carries
  if (const char* named = std::getenv("LD_LIBRARY_PATH")) {
    std::string_view rest = named;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.insert(fs::path(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  for (const fs::path& folder : folders) add_libraries(folder, libraries);
  files.read = system_folders(hidden_files(loaded));
  for (const KernelRow& row : loaded.config.kernels) files.read.emplace_back(row.path);
  files.read.insert(files.read.end(), libraries.begin(), libraries.end());
  files.look = {folders.begin(), folders.end()};
  return files;
}

void add_files_of_run(ReachableFiles& files, const fs::path& directory, const fs::path& weights) {
  std::error_code failed;
  // An audit log in the folder that the program was started in; what else lies there is not the run's.
  if (directory == ".")
    files.write.push_back(directory);
  else if (!directory.empty())
    files.change.push_back(directory);
  (fs::is_directory(weights, failed) ? files.change : files.read).push_back(weights);
}

std::string reachable_validation(const LoadedConfig& loaded, const ReachableFiles& files) {
  std::error_code failed;
  for (const fs::path& shard : validation_shards(loaded)) {
    const fs::path real = fs::canonical(shard, failed);
    for (const auto* paths : {&files.read, &files.change}) {
      for (const fs::path& path : *paths) {
        if (lies_in(real, fs::weakly_canonical(path, failed)))
          return fmt::format("the validation data, which lie in '{}'", path.string());
      }
    }
  }
  return {};
}

Confinement confine_calls_of(const LoadedConfig& loaded, bool sockets, std::span<const int> untouchable) {
  const std::string& backend = loaded.config.backend.plugin;
  if (backend == "cpu") return confine_calls(sockets, untouchable);
  return {false, false, fmt::format("sockets and programs (the backend '{}' may need them)", backend)};
}

}  // namespace mulligan
