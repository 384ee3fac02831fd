#include "framework/artifact/evaluation_source.h"

#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "framework/artifact/code_size.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/reachable_source.h"
#include "framework/artifact/source_tokens.h"
#include "framework/artifact/text_packer.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// Folders in which each folder is a plugin.
constexpr const char* plugin_folders[] = {"plugins/backends",   "plugins/losses", "plugins/schedules",
                                          "plugins/transforms", "optimizers",     "ttt"};

// The lines of sources.txt by their heading, which names the parts that they are of; "": of every evaluation.
std::map<std::string, std::vector<fs::path>> listed_sources(const fs::path& root) {
  std::map<std::string, std::vector<fs::path>> listed;
  std::istringstream lines(read_file(root / "launch/evaluator/sources.txt"));
  std::string plugin;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) {
      plugin = line.substr(1, line.size() - 2);
      listed[plugin];
    } else if (!line.empty() && !line.starts_with('#')) {
      listed[plugin].push_back(line);
    }
  }
  return listed;
}

// The compiled files of a plugin that sources.txt does not have, without its tests.
std::vector<fs::path> whole_plugin(const fs::path& root, const std::string& plugin) {
  const auto place = std::ranges::find_if(plugin_folders, [&](const char* folder) {
    return !plugin.empty() && fs::is_directory(root / folder / plugin);
  });
  data_error_if(
      place == std::end(plugin_folders),
      "'{}' is not a plugin of the source tree '{}', so the code of an evaluation cannot be counted", plugin,
      root.string());
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / *place / plugin)) {
    const bool test = entry.path().stem().string().ends_with("_test");
    if (entry.path().extension() == ".cpp" && !test) files.push_back(entry.path().lexically_relative(root));
  }
  return files;
}

std::vector<fs::path> includes_of(const fs::path& root, const fs::path& file) {
  std::vector<fs::path> found;
  std::istringstream lines(read_file(root / file));
  for (std::string line; std::getline(lines, line);) {
    const std::string included =
        source_text::included_file(file.generic_string(), line,
                                   [&](const std::string& path) { return fs::is_regular_file(root / path); });
    if (!included.empty()) found.emplace_back(included);
  }
  return found;
}

// A gzip file without name and time, which every machine unpacks.
std::string gzip(const std::string& text) {
  std::string stream = compress(Compression::zlib, text), end(8, '\0');
  const auto sum = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
  for (int i = 0; i < 4; ++i) {
    end[i] = static_cast<char>(sum >> 8 * i);
    end[i + 4] = static_cast<char>(text.size() >> 8 * i);
  }
  // Between zlib's header and its checksum is what gzip has between its own.
  return std::string("\x1f\x8b\x08\0\0\0\0\0\x02\x03", 10) + stream.substr(2, stream.size() - 6) + end;
}

}  // namespace

EvaluationSource evaluation_source(const fs::path& root, const std::set<std::string>& parts) {
  require_source_tree(root);
  const auto listed = listed_sources(root);
  std::set<fs::path> files{"launch/evaluator/CMakeLists.txt"};
  std::vector<fs::path> open;
  const auto takes = [&](const std::string& heading) {
    std::istringstream words(heading);
    return std::all_of(std::istream_iterator<std::string>(words), {}, [&](const std::string& word) {
      const bool without = word[0] == '!';
      return parts.contains(word.substr(without)) != without;
    });
  };
  for (const auto& [heading, files_of_it] : listed) {
    if (takes(heading)) open.insert(open.end(), files_of_it.begin(), files_of_it.end());
  }
  for (const std::string& part : parts) {
    if (listed.contains(part)) continue;
    const std::vector<fs::path> more = whole_plugin(root, part);
    open.insert(open.end(), more.begin(), more.end());
  }
  while (!open.empty()) {
    const fs::path file = open.back();
    open.pop_back();
    if (!files.insert(file).second) continue;
    const std::vector<fs::path> included = includes_of(root, file);
    open.insert(open.end(), included.begin(), included.end());
  }
  return {files.begin(), files.end()};
}

std::string evaluation_archive(const fs::path& root, const EvaluationSource& source) {
  SourceFiles files;
  for (const fs::path& file : source) files.emplace_back(file.generic_string(), read_file(root / file));
  // Files of the same name in the folders of kernels are alike, so they pack better together.
  std::ranges::stable_sort(files, {}, [](const auto& file) {
    const fs::path path = file.first;
    const bool kernel = file.first.starts_with("kernels/");
    return kernel ? std::tuple(true, path.extension(), path.filename())
                  : std::tuple(false, fs::path(), fs::path());
  });
  std::string archive;
  for (const auto& [name, text] : join_headers(short_names(reachable_source(std::move(files))))) {
    data_error_if(text.find('\0') != text.npos || name.find('\n') != name.npos,
                  "'{}' has a zero byte, or a line end in its name; an evaluation cannot be packed with it",
                  name);
    archive += name + '\n' + text + '\0';
  }
  return archive;
}

std::vector<std::pair<std::string, std::string>> archived_files(std::string_view archive) {
  std::vector<std::pair<std::string, std::string>> files;
  while (!archive.empty()) {
    const std::size_t end = archive.find('\0'), line = archive.substr(0, end).find('\n');
    if (end == archive.npos || line == archive.npos)
      throw std::runtime_error("is no archive of an evaluation's source");
    files.emplace_back(archive.substr(0, line), archive.substr(line + 1, end - line - 1));
    archive.remove_prefix(end + 1);
  }
  return files;
}

EvaluationPackage packed_evaluation(const fs::path& root, const EvaluationSource& source) {
  const std::string archive = evaluation_archive(root, source);
  EvaluationPackage package;
  package.files = kept_bytes("text_6_" + sha256_hex(archive), [&] { return pack_text(archive); });
  std::string program = without_comments(read_file(root / "framework/artifact/text_coder.h"));
  program.erase(0, program.find('\n') + 1);  // #pragma once
  std::istringstream lines(without_comments(read_file(root / "launch/evaluator/unpack.cpp")));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("text_coder.h") == line.npos) program += line + "\n";
  }
  package.unpacker = gzip(short_names({{"unpack.cpp", program}})[0].second);
  return package;
}

void write_evaluation(const EvaluationPackage& package, const fs::path& folder) {
  data_error_if(fs::exists(folder), "'{}' exists already; name a folder that does not", folder.string());
  fs::create_directories(folder);
  write_file_atomically(folder / package.files_name, package.files);
  write_file_atomically(folder / package.unpacker_name, package.unpacker);
}

}  // namespace mulligan
