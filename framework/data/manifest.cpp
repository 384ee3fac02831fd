#include "framework/data/manifest.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/parse_json.h"
#include "framework/core/sha256.h"
#include "framework/data/shard.h"

namespace mulligan {
using Json = nlohmann::ordered_json;

template <typename Fields>
void describe(Fields& f, ShardRecord& shard) {
  f("file", shard.file)("tokens", shard.tokens)("sha256", shard.sha256);
  f.maybe("bytes_file", shard.bytes_file).maybe("bytes_sha256", shard.bytes_sha256);
}

template <typename Fields>
void describe(Fields& f, SplitRecord& split) {
  f("documents", split.documents)("bytes", split.bytes).maybe("source_bytes", split.source_bytes);
  f("shards", split.shards)("tokens", split.tokens);
}

template <typename Fields>
void describe(Fields& f, FileDigest& file) {
  f("file", file.file)("sha256", file.sha256);
}

template <typename Fields>
void describe(Fields& f, TextRecord& text) {
  f("cleaned", text.cleaned)("normalization", text.normalization)("kept", text.kept);
  f("documents_cleaned", text.documents_cleaned);
  f("documents_changed_by_tokenizer", text.documents_changed_by_tokenizer);
  f("documents_with_nul", text.documents_with_nul)("binary_dropped", text.binary_dropped);
  f("hidden_left_out", text.hidden_left_out)("paths_left_out", text.paths_left_out);
  f("links_followed", text.links_followed)("bad_lines_dropped", text.bad_lines_dropped);
  f("unread_left_out", text.unread_left_out);
  f.object("read_as", [&](auto& read_as) {
    read_as("plain_files", text.plain_files)("json_lines_files", text.json_files);
    read_as("json_lines", text.json_lines)("json_lines_by_contents", text.json_by_contents);
  });
  f.maybe("overlap_left_out", text.overlap_left_out).maybe("transform", text.transform);
  f.maybe("changes", text.changes);
}

template <typename Fields>
void describe(Fields& f, AblatedSplit& split) {
  f("documents", split.documents)("bytes_before", split.bytes_before)("bytes_after", split.bytes_after);
  f("tokens_before", split.tokens_before)("tokens_after", split.tokens_after);
}

template <typename Fields>
void describe(Fields& f, AblationRecord& ablation) {
  f("classes", ablation.classes)("mode", ablation.mode)("mask", ablation.mask);
  f("probability", ablation.probability)("seed", ablation.seed)("taken", ablation.taken);
  f("train", ablation.train)("comparable", ablation.comparable);
  f.maybe("domains", ablation.domains).maybe("validation", ablation.validation);
}

template <typename Fields>
void describe(Fields& f, SymbolRecord& symbols) {
  f("per_1000_tokens", symbols.per_1000_tokens)("lines", symbols.lines)("templates", symbols.templates);
}

// Without its overlap, which is left out where its measure is another.
template <typename Fields>
void describe(Fields& f, Manifest& m) {
  f("source", m.source)("split_rule", m.split_rule);
  f.object("tokenizer", [&](auto& tokenizer) {
    tokenizer("file", m.tokenizer_file)("sha256", m.tokenizer_sha256)("vocabulary", m.vocabulary);
    tokenizer("bos_id", m.bos_id)("trained_here", m.tokenizer_trained);
  });
  f("duplicates_dropped", m.duplicates_dropped)("empty_dropped", m.empty_dropped);
  f("train", m.train)("validation", m.validation);
  f.object("validation_text",
           [&](auto& text) { text("file", m.validation_text_file)("sha256", m.validation_text_sha256); });
  f.maybe("text", m.text).maybe("ablation", m.ablation).maybe("symbols", m.symbols);
}

namespace {

constexpr const char* kFormat = "mulligan-data-1";
constexpr const char* kFormatFamily = "\"mulligan-data-";  // as JSON
constexpr const char* kManifestName = "manifest.json";

void require_sound(const Manifest& manifest) {
  // Files lie in the manifest's own folder; anything else could point a reader at foreign files.
  for (const auto& [name, sha256] : manifest.files()) {
    data_error_if(name.empty() || std::filesystem::path(name).filename() != name || name == "..",
                  "it names the file '{}', which is not in its folder", name);
  }
  data_error_if(manifest.vocabulary > kMaxVocabulary || manifest.bos_id >= kMaxVocabulary,
                "it has {} pieces and the BOS id {}, but a vocabulary has at most {} pieces",
                manifest.vocabulary, manifest.bos_id, kMaxVocabulary);
}

std::filesystem::path manifest_file(const std::filesystem::path& path) {
  std::error_code ignored;  // reading the file says what is wrong
  return std::filesystem::is_directory(path, ignored) ? path / kManifestName : path;
}

}  // namespace

std::vector<FileDigest> Manifest::files() const {
  std::vector<FileDigest> all = {{tokenizer_file, tokenizer_sha256},
                                 {validation_text_file, validation_text_sha256}};
  if (!text.changes.file.empty()) all.push_back(text.changes);
  for (const SplitRecord* split : {&train, &validation}) {
    for (const ShardRecord& shard : split->shards) {
      all.push_back({shard.file, shard.sha256});
      if (!shard.bytes_file.empty()) all.push_back({shard.bytes_file, shard.bytes_sha256});
    }
  }
  return all;
}

void save_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  Json json = {{"format", kFormat}};
  json.update(fields_to_json(manifest));
  if (manifest.overlap) json["overlap"] = to_json(*manifest.overlap);
  write_file_atomically(folder / kManifestName, json.dump(2) + "\n");
}

Manifest load_manifest(const std::filesystem::path& path) {
  const std::filesystem::path file = manifest_file(path);
  const std::string text = read_file(file, kLargestDescription);
  try {
    const Json json = parse_json<Json>(text);
    data_error_if(!json.is_object(), "it is not a JSON object");
    data_error_if(json.at("format") != kFormat, "its format is {}, not \"{}\"", json.at("format").dump(),
                  kFormat);
    Manifest manifest = fields_from_json<Manifest>(json);
    require_sound(manifest);
    if (json.contains("overlap") && json.at("overlap").at("measure") == TextOverlap::measure)
      manifest.overlap = text_overlap_from_json(json.at("overlap"));
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
  const Json value = parse_json<Json>(read_file(file));
  // A damaged one of ours must not pass for a foreign one, hence the second mark.
  const bool ours = !value.is_object() || value.contains("split_rule") ||
                    value.value("format", Json()).dump().starts_with(kFormatFamily);
  if (!ours) return std::nullopt;
  return load_manifest(file);
}

const ShardRecord* SplitRecord::find(const std::filesystem::path& shard) const {
  const auto found = std::ranges::find(shards, shard.filename().string(), &ShardRecord::file);
  return found == shards.end() ? nullptr : &*found;
}

const Manifest* NearManifests::next_to(const std::filesystem::path& file) {
  const auto [place, fresh] = read_.try_emplace(folder_of(file));
  if (fresh) place->second = find_manifest(place->first);
  return place->second ? &*place->second : nullptr;
}

void require_digest(const std::filesystem::path& file, const std::string& found, const std::string& listed) {
  if (found == listed) return;
  throw data_error(
      "'{}' has sha256 {} but the manifest next to it says {}: it was changed or belongs to another preparation; "
      "prepare or download it again",
      file.string(), short_digest(found), short_digest(listed));
}

}  // namespace mulligan
