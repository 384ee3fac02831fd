#include "framework/data/text_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/data/shard.h"
#include "framework/data/tokenizer_format.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// What tells a file or folder from all others.
using Inode = std::pair<dev_t, ino_t>;

std::optional<Inode> inode_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return Inode(found.st_dev, found.st_ino);
}

class FileSearch {
 public:
  explicit FileSearch(TextFiles& found) : found_(found) {}

  void add_input(const fs::path& input) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    if (fs::is_regular_file(status)) {
      add_file(input);
      return;
    }
    if (!fs::is_directory(status)) {
      throw data_error(
          "the text input '{}' is neither a folder nor a file{}; give folders, text files or JSONL files",
          input.string(), error ? " (" + error.message() + ")" : "");
    }
    const std::size_t before = found_.files.size();
    add_folder(input, "the folder was read before");
    // Folders themselves come before the links to them, so that a link inside of the input is never the name by which
    // its own files are known.
    while (!links_.empty()) {
      std::vector<fs::path> links = std::exchange(links_, {});
      std::ranges::sort(links);
      for (const fs::path& link : links) follow(link);
    }
    std::sort(found_.files.begin() + static_cast<std::ptrdiff_t>(before), found_.files.end());
  }

 private:
  void leave_out(const fs::path& path, std::string reason) {
    found_.left_out.emplace_back(path, std::move(reason));
  }

  void add_file(const fs::path& file) {
    if (const auto inode = inode_of(file)) files_.insert(*inode);
    found_.files.push_back(file);
  }

  // All below, except what lies behind links.
  void add_folder(const fs::path& top, const char* repeated) {
    std::vector<fs::path> folders = {top};
    while (!folders.empty()) {
      const fs::path folder = std::move(folders.back());
      folders.pop_back();
      const auto inode = inode_of(folder);
      if (inode && !folders_.insert(*inode).second) {
        leave_out(folder, repeated);
        continue;
      }
      std::error_code failed;
      for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
           entry.increment(failed))
        sort_in(*entry, folders);
      if (failed) {
        throw data_error("cannot read the folder '{}': {}; check its permissions and those below it",
                         folder.string(), failed.message());
      }
    }
  }

  void sort_in(const fs::directory_entry& entry, std::vector<fs::path>& folders) {
    std::error_code unknown;
    const fs::file_status status = entry.symlink_status(unknown);
    if (entry.path().filename().string().starts_with('.')) {
      found_.hidden.push_back(entry.path());
    } else if (fs::is_symlink(status)) {
      links_.push_back(entry.path());
    } else if (fs::is_directory(status)) {
      folders.push_back(entry.path());
    } else if (fs::is_regular_file(status)) {
      add_file(entry.path());
    } else {
      leave_out(entry.path(), "it is neither a file nor a folder");
    }
  }

  void follow(const fs::path& link) {
    std::error_code failed;
    const fs::file_status status = fs::status(link, failed);
    const auto inode = inode_of(link);
    if (!inode) {
      leave_out(link, "the link leads nowhere");
    } else if (fs::is_directory(status)) {
      if (folders_.contains(*inode)) return leave_out(link, "it links to a folder that was read before");
      ++found_.links;
      add_folder(link, "the folder was read before");
    } else if (fs::is_regular_file(status)) {
      if (files_.contains(*inode)) return leave_out(link, "it links to a file that was read before");
      ++found_.links;
      add_file(link);
    } else {
      leave_out(link, "it links to neither a file nor a folder");
    }
  }

  TextFiles& found_;
  std::set<Inode> folders_, files_;
  std::vector<fs::path> links_;  // of the present input, not yet followed
};

}  // namespace

TextFiles find_text_files(const std::vector<fs::path>& inputs) {
  TextFiles found;
  FileSearch search(found);
  for (const fs::path& input : inputs) search.add_input(input);
  std::ranges::sort(found.hidden);
  std::ranges::sort(found.left_out);
  return found;
}

WideEncoding wide_encoding(std::string_view head) {
  using namespace std::string_view_literals;
  struct Mark {
    std::string_view bytes;
    const char *name, *shown;
  };
  // UTF-32LE begins like UTF-16LE.
  constexpr Mark marks[] = {{"\xFF\xFE\0\0"sv, "UTF-32", "UTF-32 (little-endian, by its byte order mark)"},
                            {"\0\0\xFE\xFF"sv, "UTF-32", "UTF-32 (big-endian, by its byte order mark)"},
                            {"\xFF\xFE"sv, "UTF-16", "UTF-16 (little-endian, by its byte order mark)"},
                            {"\xFE\xFF"sv, "UTF-16", "UTF-16 (big-endian, by its byte order mark)"}};
  for (const Mark& mark : marks) {
    if (head.starts_with(mark.bytes)) return {mark.name, mark.shown};
  }
  // Without a mark: letters of most alphabets have zero bytes at the same places of each unit, and only there.
  constexpr std::size_t fewest = 8, most = 4096;
  head = head.substr(0, std::min(most, head.size()) / 4 * 4);
  if (head.size() < fewest) return {};
  std::size_t zeros[4] = {}, units = head.size() / 4;
  for (std::size_t i = 0; i < head.size(); ++i) zeros[i % 4] += head[i] == '\0' ? 1 : 0;
  const auto many = [&](std::size_t place) { return zeros[place] * 4 >= units * 3; };
  const auto few = [&](std::size_t place) { return zeros[place] * 20 <= units; };
  if (few(0) && many(2) && many(3)) return {"UTF-32LE", "UTF-32 (little-endian, without a byte order mark)"};
  if (many(0) && many(1) && few(3)) return {"UTF-32BE", "UTF-32 (big-endian, without a byte order mark)"};
  if (few(0) && few(2) && many(1) && many(3))
    return {"UTF-16LE", "UTF-16 (little-endian, without a byte order mark)"};
  if (few(1) && few(3) && many(0) && many(2))
    return {"UTF-16BE", "UTF-16 (big-endian, without a byte order mark)"};
  return {};
}

}  // namespace mulligan

namespace mulligan {
namespace {

constexpr const char* kOtherModel =
    "mulligan reads SentencePiece models alone: name the tokenizer.model of a model that has one, or leave --tokenizer "
    "out, and 'mulligan prepare' trains one on your text (--vocab-size)";

std::string pieces_text(std::size_t pieces) {
  return pieces <= static_cast<std::size_t>(kMaxVocabulary)
             ? fmt::format("{} pieces", pieces)
             : fmt::format("{} pieces, and shards hold at most {}", pieces, kMaxVocabulary);
}

// Lines of a base64 text and a rank, as of tiktoken.
std::size_t ranked_lines(std::string_view bytes) {
  constexpr std::size_t judged = 16;
  const auto is_base64 = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/' || c == '=';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string_view rest = bytes;
  std::size_t lines = 0;
  for (; lines < judged && !rest.empty(); ++lines) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return 0;
    if (!std::ranges::all_of(line.substr(0, space), is_base64)) return 0;
    if (!std::ranges::all_of(line.substr(space + 1), is_digit)) return 0;
  }
  return lines < 2 ? 0 : lines + static_cast<std::size_t>(std::ranges::count(rest, '\n'));
}

std::string json_format(std::string_view bytes) {
  const nlohmann::json json = parse_json(bytes);
  if (!json.is_object()) return {};
  if (const auto model = json.find("model"); model != json.end() && model->is_object()) {
    const auto type = model->find("type");
    const auto vocabulary = model->find("vocab");
    return fmt::format("a Hugging Face tokenizer.json ({}{}); {}",
                       type != model->end() && type->is_string() ? type->get<std::string>() : "model",
                       vocabulary == model->end() ? "" : ", " + pieces_text(vocabulary->size()), kOtherModel);
  }
  if (json.contains("tokenizer_class") || json.contains("added_tokens_decoder"))
    return fmt::format("a Hugging Face tokenizer_config.json; {}", kOtherModel);
  if (!json.empty() &&
      std::ranges::all_of(json, [](const nlohmann::json& id) { return id.is_number_integer(); }))
    return fmt::format("a vocab.json of byte pair encoding ({}); {}", pieces_text(json.size()), kOtherModel);
  return fmt::format("a JSON file; {}", kOtherModel);
}

}  // namespace

std::string foreign_tokenizer_format(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr const char* download = "download the file itself again";
  if (bytes.starts_with("version https://git-lfs"))
    return "a pointer of Git LFS and not the file; fetch that with 'git lfs pull'";
  if (bytes.starts_with("<!DOCTYPE") || bytes.starts_with("<!doctype") || bytes.starts_with("<html"))
    return fmt::format("a web page; {}", download);
  if (bytes.starts_with("\x1F\x8B")) return "compressed with gzip; unpack it with gunzip";
  if (bytes.starts_with("\x28\xB5\x2F\xFD")) return "compressed with zstd; unpack it with unzstd";
  if (bytes.starts_with("PK\x03\x04")) return "a zip archive; unpack it, and name the model in it";
  if (bytes.starts_with("GGUF")) return fmt::format("a GGUF file; {}", kOtherModel);
  if (bytes.starts_with("#version"))
    return fmt::format("a merges.txt of byte pair encoding; {}", kOtherModel);
  if (const std::size_t pieces = ranked_lines(bytes)) {
    return fmt::format("a tiktoken file of byte pair encoding, as Llama 3 calls its tokenizer.model ({}); {}",
                       pieces_text(pieces), kOtherModel);
  }
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') return json_format(bytes);
  return {};
}

}  // namespace mulligan
