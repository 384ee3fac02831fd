#include "framework/ranks/control_options.h"

#include <charconv>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

// Below the shortest time, late heartbeats of a busy machine would count as silence. The longest excludes mistyped values.
constexpr double shortest_seconds = 3, longest_seconds = 1e6;

void read_seconds(const EnvironmentLookup& lookup, const char* name, double& seconds) {
  const auto text = lookup(name);
  if (!text || text->empty()) return;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, seconds);
  if (parsed.ec != std::errc{} || parsed.ptr != end ||
      !(seconds >= shortest_seconds && seconds <= longest_seconds)) {
    throw config_error(
        "the environment variable {}='{}' is not a number of seconds from {:g} to {:g}; set it right on all "
        "ranks, or leave it out.",
        name, printable(*text), shortest_seconds, longest_seconds);
  }
}

}  // namespace

std::string find_secret(const EnvironmentLookup& lookup) {
  if (auto secret = lookup("MULLIGAN_SECRET"); secret && !secret->empty()) return *secret;
  const auto path = lookup("MULLIGAN_SECRET_FILE");
  if (!path || path->empty()) return "";
  std::string text;
  try {
    text = read_file(*path, 1 << 16);
  } catch (const Error& error) {
    throw config_error("MULLIGAN_SECRET_FILE names no readable secret: {}", error.what());
  }
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  if (text.empty()) {
    throw config_error(
        "the file {} of MULLIGAN_SECRET_FILE begins with an empty line; write the secret there.", *path);
  }
  return text;
}

ControlOptions control_options(const EnvironmentLookup& lookup) {
  ControlOptions options;
  options.secret = find_secret(lookup);
  options.error_file = lookup("TORCHELASTIC_ERROR_FILE").value_or("");
  read_seconds(lookup, "MULLIGAN_MEET_SECONDS", options.meet);
  read_seconds(lookup, "MULLIGAN_SILENT_SECONDS", options.silent);
  read_seconds(lookup, "MULLIGAN_STUCK_SECONDS", options.wedged);
  read_seconds(lookup, "MULLIGAN_FIRST_STEP_SECONDS", options.first_step);
  return options;
}

}  // namespace mulligan
