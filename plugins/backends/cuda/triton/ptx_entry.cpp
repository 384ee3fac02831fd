#include "plugins/backends/cuda/triton/compiled_file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace mulligan::cuda::triton {
namespace {

// Words, and each of ( ) { } [ ] , ; as a word of its own. Comments are left out; a quoted string
// is one word.
std::vector<std::string> split(const std::string& text) {
  constexpr std::string_view kMarks = "(){}[],;";
  std::vector<std::string> words;
  bool inside = false;  // of a word
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.compare(i, 2, "//") == 0 || text.compare(i, 2, "/*") == 0) {
      const bool line = text[i + 1] == '/';
      const std::size_t end = text.find(line ? "\n" : "*/", i + 2);
      if (end == std::string::npos) break;
      i = line ? end : end + 1;
      inside = false;
    } else if (c == '"') {
      const std::size_t end = std::min(text.find('"', i + 1), text.size());
      words.push_back(text.substr(i, end - i + 1));
      i = end;
      inside = false;
    } else if (kMarks.find(c) != std::string_view::npos) {
      words.emplace_back(1, c);
      inside = false;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      words.back() += c;
      inside = true;
    }
  }
  return words;
}

bool is_type(const std::string& word) {
  static const std::vector<std::string> types = {
      ".u8",  ".s8",  ".b8",  ".u16", ".s16", ".b16", ".f16",  ".bf16",   ".u32",     ".s32",
      ".b32", ".f32", ".u64", ".s64", ".b64", ".f64", ".b128", ".texref", ".surfref", ".samplerref"};
  return std::find(types.begin(), types.end(), word) != types.end();
}

// Reads the words of a PTX file from left to right.
class EntryReader {
 public:
  EntryReader(std::vector<std::string> words, std::string file)
      : words_(std::move(words)), file_(std::move(file)) {}

  bool at_end() const { return at_ == words_.size(); }
  const std::string& next() {
    if (at_end()) throw std::runtime_error(file_ + " is cut off in the middle of its PTX; compile it again");
    return words_[at_++];
  }
  bool skip(std::string_view word) {
    if (at_end() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

 private:
  std::vector<std::string> words_;
  std::string file_;
  std::size_t at_ = 0;
};

// After the name of an entry: "(.param .u64 .ptr .global .align 1 a, .param .f32 b)".
std::vector<std::string> read_parameters(EntryReader& reader) {
  std::vector<std::string> parameters;
  if (!reader.skip("(")) return parameters;
  for (std::string word = reader.next(); word != ")"; word = reader.next()) {
    if (word == ".param") {
      parameters.emplace_back();
    } else if (parameters.empty()) {
      continue;
    } else if (is_type(word) && parameters.back().empty()) {
      parameters.back() = word.substr(1);
    } else if (word == "[") {
      parameters.back() += "[" + reader.next() + "]";
    }
  }
  return parameters;
}

// Between the parameters and the body: ".reqntid 128" or ".reqntid 16, 8, 1".
std::uint32_t read_threads(EntryReader& reader) {
  std::uint32_t threads = 0;
  for (std::string word = reader.next(); word != "{" && word != ";"; word = reader.next()) {
    if (word != ".reqntid") continue;
    threads = static_cast<std::uint32_t>(std::strtoul(reader.next().c_str(), nullptr, 10));
    while (reader.skip(","))
      threads *= static_cast<std::uint32_t>(std::strtoul(reader.next().c_str(), nullptr, 10));
  }
  return threads;
}

int number_of(const std::string& architecture) {
  return architecture.starts_with("sm_") ? std::atoi(architecture.c_str() + 3) : 0;
}

}  // namespace

bool ptx_runs_on(const std::string& target, const std::string& device) {
  const int wanted = number_of(target), present = number_of(device);
  if (wanted == 0) return false;
  if (target.back() == 'a') return present == wanted;
  if (target.back() == 'f') return present / 10 == wanted / 10 && present >= wanted;
  return present >= wanted;
}

PtxEntry read_ptx_entry(const std::string& text, const std::string& name, const std::string& file) {
  EntryReader reader(split(text), file);
  PtxEntry entry;
  bool found = false;
  std::string others;
  while (!reader.at_end() && !found) {
    if (reader.skip(".target")) {
      entry.target = reader.next();
    } else if (reader.skip(".entry")) {
      const std::string& other = reader.next();
      found = other == name;
      others += (others.empty() ? "" : ", ") + other;
      if (found) {
        entry.parameters = read_parameters(reader);
        entry.threads = read_threads(reader);
      }
    } else {
      reader.next();
    }
  }
  if (entry.target.empty()) {
    throw std::runtime_error(file + " is not PTX: it has no .target; name the .ptx that Triton wrote");
  }
  if (!found) {
    throw std::runtime_error(file + " has no entry point " + name + "; " +
                             (others.empty() ? "it has none at all" : "it has " + others));
  }
  return entry;
}

}  // namespace mulligan::cuda::triton
