#include "framework/ranks/control_options.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_number.h"
#include "framework/core/printable.h"
#include "framework/core/temporary_path.h"
#include "framework/ranks/handshake.h"

namespace mulligan {

namespace fs = std::filesystem;

namespace {

// Below the shortest time, late heartbeats of a busy machine would count as silence. The longest excludes mistyped values.
constexpr double shortest_seconds = 3, longest_seconds = 1e6;

void read_seconds(const EnvironmentLookup& lookup, const char* name, double& seconds) {
  const auto text = lookup(name);
  if (!text || text->empty()) return;
  seconds = parse_number<double>(*text).value_or(0);
  if (!(seconds >= shortest_seconds && seconds <= longest_seconds)) {
    throw config_error(
        "the environment variable {}='{}' is not a number of seconds from {:g} to {:g}; set it right on all "
        "ranks, or leave it out.",
        name, printable(*text), shortest_seconds, longest_seconds);
  }
}

std::string first_line_of(const fs::path& path) {
  std::string text = read_file(path, 1 << 16);
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  return text;
}

[[noreturn]] void refuse(const std::string& why) {
  throw config_error(
      "ranks of one machine share a secret that other users cannot read, and {}; fix that, or "
      "give all ranks the same MULLIGAN_SECRET, or MULLIGAN_SECRET_FILE naming a file with it.",
      why);
}

// Requires a folder or file of this user that no other user may write, or, if asked for, read.
void require_private(const fs::path& path, bool folder) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) {
    refuse(fmt::format("'{}' cannot be looked at ({})", path.string(), std::strerror(errno)));
  }
  if (folder ? !S_ISDIR(found.st_mode) : !S_ISREG(found.st_mode)) {
    refuse(fmt::format("'{}' is not a {}", path.string(), folder ? "folder" : "file"));
  }
  if (found.st_uid != geteuid()) refuse(fmt::format("'{}' belongs to another user", path.string()));
  const mode_t others = folder ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO;
  if (found.st_mode & others) {
    refuse(fmt::format("others may {} '{}' (chmod {} it)", folder ? "write to" : "read", path.string(),
                       folder ? "700" : "600"));
  }
}

// The folder for it, there and private; empty where this one cannot be made or written to. A home folder may be
// another user's (sudo).
fs::path folder_at(const fs::path& folder, bool may_be_others) {
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return {};
  struct stat found {};
  if (may_be_others && lstat(folder.c_str(), &found) == 0 && found.st_uid != geteuid()) return {};
  require_private(folder, true);
  return access(folder.c_str(), W_OK) == 0 || fs::exists(folder / "secret") ? folder : fs::path();
}

fs::path home_folder(const EnvironmentLookup& lookup) {
  if (const auto home = lookup("HOME"); home && home->starts_with('/')) return *home;
  const passwd* user = getpwuid(geteuid());
  return user && user->pw_dir && *user->pw_dir == '/' ? user->pw_dir : "";
}

fs::path secret_folder(const EnvironmentLookup& lookup) {
  if (const fs::path home = home_folder(lookup); !home.empty()) {
    if (const fs::path folder = folder_at(home / ".mulligan", true); !folder.empty()) return folder;
  }
  const fs::path folder = folder_at(fs::path("/tmp") / fmt::format("mulligan-{}", geteuid()), false);
  if (folder.empty()) refuse("neither the home folder nor /tmp can be written to");
  return folder;
}

// Written under another name and linked: who reads it finds all of it, and the first of several stays.
void make_secret(const fs::path& path) {
  const fs::path draft = temporary_name(path);
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) refuse(fmt::format("'{}' cannot be written ({})", draft.string(), std::strerror(errno)));
  const std::string text = random_secret() + "\n";
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  const bool linked = written && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int problem = errno;
  ::unlink(draft.c_str());
  if (!linked) refuse(fmt::format("'{}' cannot be written ({})", path.string(), std::strerror(problem)));
}

}  // namespace

std::string find_secret(const EnvironmentLookup& lookup) {
  if (auto secret = lookup("MULLIGAN_SECRET"); secret && !secret->empty()) return *secret;
  const auto path = lookup("MULLIGAN_SECRET_FILE");
  if (!path || path->empty()) return "";
  std::string text;
  try {
    text = first_line_of(*path);
  } catch (const Error& error) {
    throw config_error("MULLIGAN_SECRET_FILE names no readable secret: {}", error.what());
  }
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

std::string random_secret() {
  std::string text;
  for (const unsigned char byte : random_nonce()) text += fmt::format("{:02x}", byte);
  return text;
}

std::string user_secret(const EnvironmentLookup& lookup) {
  const fs::path path = secret_folder(lookup) / "secret";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) make_secret(path);
  require_private(path, false);
  const std::string text = first_line_of(path);
  if (text.empty()) refuse(fmt::format("'{}' begins with an empty line (remove it)", path.string()));
  return text;
}

}  // namespace mulligan
