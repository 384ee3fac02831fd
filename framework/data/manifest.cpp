#include "framework/data/manifest.h"

#include <algorithm>
#include <limits>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"
#include "framework/data/byte_count.h"
#include "framework/data/shard.h"
#include "framework/data/side_table.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

constexpr const char* kFormat = "mulligan-data-1";
constexpr const char* kFormatFamily = "\"mulligan-data-";  // as JSON
constexpr const char* kManifestName = "manifest.json";

nlohmann::json to_json(const SplitRecord& split) {
  nlohmann::json shards = nlohmann::json::array();
  for (const ShardRecord& shard : split.shards) {
    nlohmann::json record{{"file", shard.file}, {"tokens", shard.tokens}, {"sha256", shard.sha256}};
    if (!shard.bytes_file.empty()) {
      record["bytes_file"] = shard.bytes_file;
      record["bytes_sha256"] = shard.bytes_sha256;
    }
    shards.push_back(std::move(record));
  }
  nlohmann::json value{
      {"documents", split.documents}, {"tokens", split.tokens}, {"bytes", split.bytes}, {"shards", shards}};
  if (split.source_bytes > 0) value["source_bytes"] = split.source_bytes;
  return value;
}

nlohmann::json to_json(const TextRecord& text) {
  nlohmann::json value{{"cleaned", text.cleaned},
                       {"normalization", text.normalization},
                       {"kept", text.kept},
                       {"documents_cleaned", text.documents_cleaned},
                       {"documents_changed_by_tokenizer", text.documents_changed_by_tokenizer},
                       {"documents_with_nul", text.documents_with_nul},
                       {"binary_dropped", text.binary_dropped},
                       {"hidden_left_out", text.hidden_left_out},
                       {"paths_left_out", text.paths_left_out},
                       {"links_followed", text.links_followed},
                       {"bad_lines_dropped", text.bad_lines_dropped},
                       {"unread_left_out", text.unread_left_out},
                       {"read_as",
                        {{"plain_files", text.plain_files},
                         {"json_lines_files", text.json_files},
                         {"json_lines", text.json_lines},
                         {"json_lines_by_contents", text.json_by_contents}}}};
  if (text.overlap_left_out > 0) value["overlap_left_out"] = text.overlap_left_out;
  if (!text.transform.empty()) value["transform"] = text.transform;
  if (!text.changes_file.empty()) {
    value["changes"] = {{"file", text.changes_file}, {"sha256", text.changes_sha256}};
  }
  return value;
}

nlohmann::json to_json(const AblatedSplit& split) {
  return {{"documents", split.documents},
          {"bytes_before", split.bytes_before},
          {"bytes_after", split.bytes_after},
          {"tokens_before", split.tokens_before},
          {"tokens_after", split.tokens_after}};
}

nlohmann::json to_json(const AblationRecord& ablation) {
  nlohmann::json value{{"classes", ablation.classes},
                       {"mode", ablation.mode},
                       {"mask", ablation.mask},
                       {"probability", ablation.probability},
                       {"seed", ablation.seed},
                       {"taken", ablation.taken},
                       {"train", to_json(ablation.train)},
                       {"comparable", ablation.comparable}};
  if (!ablation.domains.empty()) value["domains"] = ablation.domains;
  if (ablation.validation) value["validation"] = to_json(*ablation.validation);
  return value;
}

// A file name in the manifest's own folder; anything else could point a reader at foreign files.
std::string local_name(const nlohmann::json& value) {
  const auto name = value.get<std::string>();
  if (name.empty() || std::filesystem::path(name).filename() != name || name == "..") {
    throw data_error("it names the file '{}', which is not in its folder", name);
  }
  return name;
}

// A whole number from 0 to `largest`.
template <typename T = std::uint64_t>
T count_of(const nlohmann::json& object, const char* key, T largest = std::numeric_limits<T>::max()) {
  const nlohmann::json& value = object.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(largest)) {
    throw data_error("its '{}' is {}, not a whole number from 0 to {}", key, value.dump(), largest);
  }
  return value.get<T>();
}

SplitRecord split_from(const nlohmann::json& value) {
  SplitRecord split{count_of(value, "documents"), count_of(value, "tokens"), count_of(value, "bytes"), {}, 0};
  for (const auto& shard : value.at("shards")) {
    ShardRecord record{local_name(shard.at("file")), count_of(shard, "tokens"), shard.at("sha256")};
    if (shard.contains("bytes_file")) {
      record.bytes_file = local_name(shard.at("bytes_file"));
      record.bytes_sha256 = shard.at("bytes_sha256");
    }
    split.shards.push_back(std::move(record));
  }
  if (value.contains("source_bytes")) split.source_bytes = count_of(value, "source_bytes");
  return split;
}

TextRecord text_from(const nlohmann::json& value) {
  TextRecord text;
  text.cleaned = value.at("cleaned");
  text.normalization = value.at("normalization");
  text.kept = value.at("kept");
  text.documents_cleaned = count_of(value, "documents_cleaned");
  text.documents_changed_by_tokenizer = count_of(value, "documents_changed_by_tokenizer");
  text.documents_with_nul = count_of(value, "documents_with_nul");
  text.binary_dropped = count_of(value, "binary_dropped");
  text.hidden_left_out = count_of(value, "hidden_left_out");
  text.paths_left_out = count_of(value, "paths_left_out");
  text.links_followed = count_of(value, "links_followed");
  text.bad_lines_dropped = count_of(value, "bad_lines_dropped");
  text.unread_left_out = count_of(value, "unread_left_out");
  const nlohmann::json& read_as = value.at("read_as");
  text.plain_files = count_of(read_as, "plain_files");
  text.json_files = count_of(read_as, "json_lines_files");
  text.json_lines = count_of(read_as, "json_lines");
  text.json_by_contents = count_of(read_as, "json_lines_by_contents");
  if (value.contains("overlap_left_out")) text.overlap_left_out = count_of(value, "overlap_left_out");
  if (value.contains("transform")) text.transform = value.at("transform");
  if (value.contains("changes")) {
    text.changes_file = local_name(value.at("changes").at("file"));
    text.changes_sha256 = value.at("changes").at("sha256");
  }
  return text;
}

AblatedSplit ablated_from(const nlohmann::json& value) {
  return {count_of(value, "documents"), count_of(value, "bytes_before"), count_of(value, "bytes_after"),
          count_of(value, "tokens_before"), count_of(value, "tokens_after")};
}

AblationRecord ablation_from(const nlohmann::json& value) {
  AblationRecord ablation;
  ablation.classes = value.at("classes").get<std::vector<std::string>>();
  ablation.mode = value.at("mode");
  ablation.mask = value.at("mask");
  ablation.probability = value.at("probability");
  ablation.seed = count_of(value, "seed");
  for (const auto& [name, count] : value.at("taken").items()) {
    ablation.taken[name] = count_of(value.at("taken"), name.c_str());
  }
  ablation.train = ablated_from(value.at("train"));
  if (value.contains("domains")) ablation.domains = value.at("domains").get<std::vector<std::string>>();
  if (value.contains("validation")) ablation.validation = ablated_from(value.at("validation"));
  ablation.comparable = value.at("comparable");
  return ablation;
}

std::filesystem::path manifest_file(const std::filesystem::path& path) {
  std::error_code ignored;  // reading the file says what is wrong
  return std::filesystem::is_directory(path, ignored) ? path / kManifestName : path;
}

// `found` is what the files hold.
void check_total(const std::filesystem::path& manifest, const std::string& what, std::uint64_t claimed,
                 std::uint64_t found) {
  if (claimed == found) return;
  throw data_error("'{}' says {} {}, but its files hold {}; prepare or download the data again",
                   manifest.string(), claimed, what, found);
}

// The totals of one side of the split, counted anew.
void check_split(const std::filesystem::path& manifest, const std::string& name, const SplitRecord& split,
                 const ByteTable& table, int bos_id) {
  SplitRecord found;
  int previous = -1;
  for (const ShardRecord& record : split.shards) {
    const Shard shard(manifest.parent_path() / record.file);
    const std::vector<std::uint16_t> tokens = shard.read_all();
    found.tokens += tokens.size();
    found.documents += static_cast<std::uint64_t>(std::count(tokens.begin(), tokens.end(), bos_id));
    found.bytes += table.count(tokens);
    // A document may go on in the next shard.
    if (previous >= 0) found.bytes += static_cast<std::uint64_t>(table.bytes(previous, tokens.front()));
    previous = tokens.back();
  }
  check_total(manifest, name + " tokens", split.tokens, found.tokens);
  check_total(manifest, name + " documents", split.documents, found.documents);
  check_total(manifest, name + " bytes", split.bytes, found.bytes);
}

// Under a text transform the tables next to the shards count, and the original documents are there to compare
// with. Training text has neither, so only its tokens and documents are counted.
void check_transformed(const std::filesystem::path& file, const Manifest& manifest,
                       const Tokenizer& tokenizer) {
  const std::filesystem::path folder = file.parent_path();
  for (const auto& [name, split] :
       {std::pair("training", &manifest.train), {"validation", &manifest.validation}}) {
    std::vector<std::filesystem::path> shards;
    for (const ShardRecord& record : split->shards) shards.push_back(folder / record.file);
    const std::vector<std::uint16_t> tokens = read_tokens(shards);
    check_total(file, std::string(name) + " tokens", split->tokens, tokens.size());
    check_total(file, std::string(name) + " documents", split->documents,
                static_cast<std::uint64_t>(std::ranges::count(tokens, manifest.bos_id)));
    if (split != &manifest.validation) continue;
    const SideTable table = SideTable::load(find_side_tables("", shards), shards);
    require_fit(table, tokens, manifest.bos_id);
    check_total(file, "validation bytes", split->bytes, table.count(tokens));
    require_original_bytes(table, tokens, manifest.bos_id, tokenizer,
                           TextSource({folder / manifest.validation_text_file}));
  }
}

// The side tables of plain text, where the tokens spell another one.
void check_original_bytes(const std::filesystem::path& file, const Manifest& manifest) {
  std::vector<std::filesystem::path> shards;
  for (const ShardRecord& record : manifest.validation.shards)
    shards.push_back(file.parent_path() / record.file);
  if (!stated_original(shards).in_tables) return;
  const std::vector<std::uint16_t> tokens = read_tokens(shards);
  const SideTable table = SideTable::load(find_side_tables("", shards), shards);
  require_fit(table, tokens, manifest.bos_id);
  check_total(file, "bytes of the original validation text", manifest.validation.source_bytes,
              table.count(tokens));
}

void check_totals(const std::filesystem::path& file, const Manifest& manifest) {
  const std::filesystem::path folder = file.parent_path();
  const Tokenizer tokenizer = Tokenizer::load(folder / manifest.tokenizer_file);
  check_total(file, "pieces in the vocabulary", static_cast<std::uint64_t>(manifest.vocabulary),
              static_cast<std::uint64_t>(tokenizer.vocab_size()));
  if (manifest.bos_id != tokenizer.bos_id()) {
    throw data_error(
        "'{}' says that the BOS id is {}, but the tokenizer's is {}; prepare or download the data again",
        file.string(), manifest.bos_id, tokenizer.bos_id());
  }
  if (manifest.text && !manifest.text->transform.empty()) {
    check_transformed(file, manifest, tokenizer);
    return;
  }
  const ByteTable table = ByteTable::from_tokenizer(tokenizer);
  check_split(file, "training", manifest.train, table, manifest.bos_id);
  check_split(file, "validation", manifest.validation, table, manifest.bos_id);
  check_total(file, "bytes of validation text", manifest.validation.bytes,
              std::filesystem::file_size(folder / manifest.validation_text_file));
  check_original_bytes(file, manifest);
}

void check_digest(const std::filesystem::path& file, const std::string& expected) {
  const std::string found = sha256_hex_of_file(file);
  if (found != expected) {
    throw data_error("'{}' has sha256 {} but its manifest says {}; prepare or download it again",
                     file.string(), found, expected);
  }
}

}  // namespace

void save_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  nlohmann::json value{
      {"format", kFormat},
      {"source", manifest.source},
      {"split_rule", manifest.split_rule},
      {"tokenizer",
       {{"file", manifest.tokenizer_file},
        {"sha256", manifest.tokenizer_sha256},
        {"vocabulary", manifest.vocabulary},
        {"bos_id", manifest.bos_id},
        {"trained_here", manifest.tokenizer_trained}}},
      {"duplicates_dropped", manifest.duplicates_dropped},
      {"empty_dropped", manifest.empty_dropped},
      {"train", to_json(manifest.train)},
      {"validation", to_json(manifest.validation)},
      {"validation_text",
       {{"file", manifest.validation_text_file}, {"sha256", manifest.validation_text_sha256}}}};
  if (manifest.text) value["text"] = to_json(*manifest.text);
  if (manifest.ablation) value["ablation"] = to_json(*manifest.ablation);
  if (manifest.overlap) value["overlap"] = to_json(*manifest.overlap);
  if (manifest.symbols) {
    value["symbols"] = {{"per_1000_tokens", manifest.symbols->per_1000_tokens},
                        {"lines", manifest.symbols->lines},
                        {"templates", manifest.symbols->templates}};
  }
  write_file_atomically(folder / kManifestName, value.dump(2) + "\n");
}

Manifest load_manifest(const std::filesystem::path& path) {
  const std::filesystem::path file = manifest_file(path);
  const std::string text = read_file(file, kLargestDescription);
  try {
    const nlohmann::json value = parse_json(text);
    if (!value.is_object()) throw data_error("it is not a JSON object");
    if (value.at("format") != kFormat) {
      throw data_error("its format is {}, not \"{}\"", value.at("format").dump(), kFormat);
    }
    Manifest manifest;
    manifest.source = value.at("source");
    manifest.split_rule = value.at("split_rule");
    const auto& tokenizer = value.at("tokenizer");
    manifest.tokenizer_file = local_name(tokenizer.at("file"));
    manifest.tokenizer_sha256 = tokenizer.at("sha256");
    manifest.vocabulary = count_of(tokenizer, "vocabulary", kMaxVocabulary);
    manifest.bos_id = count_of(tokenizer, "bos_id", kMaxVocabulary - 1);
    manifest.tokenizer_trained = tokenizer.at("trained_here");
    manifest.duplicates_dropped = count_of(value, "duplicates_dropped");
    manifest.empty_dropped = count_of(value, "empty_dropped");
    manifest.train = split_from(value.at("train"));
    manifest.validation = split_from(value.at("validation"));
    manifest.validation_text_file = local_name(value.at("validation_text").at("file"));
    manifest.validation_text_sha256 = value.at("validation_text").at("sha256");
    if (value.contains("text")) manifest.text = text_from(value.at("text"));
    if (value.contains("ablation")) manifest.ablation = ablation_from(value.at("ablation"));
    if (value.contains("overlap") && value.at("overlap").at("measure") == TextOverlap::measure)
      manifest.overlap = text_overlap_from_json(value.at("overlap"));
    if (value.contains("symbols")) {
      const auto& symbols = value.at("symbols");
      manifest.symbols = SymbolRecord{symbols.at("per_1000_tokens").get<std::map<std::string, double>>(),
                                      count_of(symbols, "lines"), count_of(symbols, "templates")};
    }
    return manifest;
  } catch (const std::exception& error) {
    throw data_error("'{}' is not a usable data manifest: {}; prepare the data again", file.string(),
                     error.what());
  }
}

std::optional<Manifest> find_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kManifestName;
  std::error_code failed;
  if (!std::filesystem::exists(file, failed)) return std::nullopt;
  const nlohmann::json value = parse_json(read_file(file));
  // A damaged one of ours must not pass for a foreign one, hence the second mark.
  const bool ours = !value.is_object() || value.contains("split_rule") ||
                    value.value("format", nlohmann::json()).dump().starts_with(kFormatFamily);
  if (!ours) return std::nullopt;
  return load_manifest(file);
}

Manifest verify_manifest(const std::filesystem::path& path, bool digests) {
  const Manifest manifest = load_manifest(path);
  const std::filesystem::path folder = manifest_file(path).parent_path();
  for (const SplitRecord* split : {&manifest.train, &manifest.validation}) {
    for (const ShardRecord& record : split->shards) {
      const Shard shard(folder / record.file);
      if (static_cast<std::uint64_t>(shard.token_count()) != record.tokens) {
        throw data_error("'{}' holds {} tokens but its manifest says {}; prepare or download it again",
                         shard.path().string(), shard.token_count(), record.tokens);
      }
      if (digests) check_digest(shard.path(), record.sha256);
    }
  }
  if (digests) {
    check_digest(folder / manifest.tokenizer_file, manifest.tokenizer_sha256);
    check_digest(folder / manifest.validation_text_file, manifest.validation_text_sha256);
    if (manifest.text && !manifest.text->changes_file.empty()) {
      check_digest(folder / manifest.text->changes_file, manifest.text->changes_sha256);
    }
    check_totals(manifest_file(path), manifest);
  }
  return manifest;
}

}  // namespace mulligan
