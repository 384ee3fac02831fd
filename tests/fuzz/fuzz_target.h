// The fuzz targets: one function per reader of bytes that come from outside. Each takes any bytes and must
// end with the reader's result or with the framework's Error; anything else is a bug and ends the process.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "framework/core/error.h"

namespace mulligan::fuzz {

void toml(std::string_view input);           // a run's configuration and its --set overrides
void shard(std::string_view input);          // a token shard, and the loader and evaluation rows over it
void data_manifest(std::string_view input);  // manifest.json of prepared data
void checkpoint(std::string_view input);     // manifest and tensors of a checkpoint
void metrics(std::string_view input);        // metrics.jsonl of a run that is resumed
void artifact(std::string_view input);       // an artifact
void codes(std::string_view input);          // codes of the entropy coder
void task_vectors(std::string_view input);   // a file of task vectors
void rendezvous(
    std::string_view input);  // what ranks and strangers send each other, and what launchers tell them

// The result of `reader`, or nothing when it refused its input with an Error, as it may.
template <typename Reader>
auto unless_refused(Reader&& reader) -> std::optional<decltype(reader())> {
  try {
    return reader();
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What must hold for whatever was read.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

// Takes the part of `rest` before the line `====` and leaves what follows it. Several parts of one input
// are divided so.
inline std::string_view take_part(std::string_view& rest) {
  constexpr std::string_view line = "\n====\n";
  const std::size_t end = rest.find(line);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + line.size());
  return part;
}

// A safetensors file.
inline std::string safetensors_of(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length).append(header).append(data);
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace mulligan::fuzz
