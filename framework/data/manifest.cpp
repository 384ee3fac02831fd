#include "framework/data/manifest.h"

#include <limits>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"
#include "framework/data/shard.h"

namespace mulligan {
namespace {

constexpr const char* kFormat = "mulligan-data-1";
constexpr const char* kFormatFamily = "\"mulligan-data-";  // as JSON
constexpr const char* kManifestName = "manifest.json";

nlohmann::json to_json(const SplitRecord& split) {
  nlohmann::json shards = nlohmann::json::array();
  for (const ShardRecord& shard : split.shards) {
    shards.push_back({{"file", shard.file}, {"tokens", shard.tokens}, {"sha256", shard.sha256}});
  }
  return {
      {"documents", split.documents}, {"tokens", split.tokens}, {"bytes", split.bytes}, {"shards", shards}};
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
  SplitRecord split{count_of(value, "documents"), count_of(value, "tokens"), count_of(value, "bytes"), {}};
  for (const auto& shard : value.at("shards")) {
    split.shards.push_back({local_name(shard.at("file")), count_of(shard, "tokens"), shard.at("sha256")});
  }
  return split;
}

std::filesystem::path manifest_file(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? path / kManifestName : path;
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
  const nlohmann::json value{
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
  }
  return manifest;
}

}  // namespace mulligan
