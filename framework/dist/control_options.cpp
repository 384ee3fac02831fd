#include "framework/dist/control_options.h"

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {

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
  return options;
}

}  // namespace mulligan
