// The tokens of C++ and CUDA source, for the two steps that choose and shorten what an evaluation counts.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan::source_text {

using Words = std::set<std::string, std::less<>>;

inline bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

struct Token {
  std::string text;  // a line of the preprocessor is one
  bool after_space = false;
  bool is(std::string_view other) const { return text == other; }
  bool is_name() const { return is_word(text[0]) && std::isdigit(static_cast<unsigned char>(text[0])) == 0; }
  bool is_text() const { return text[0] == '"'; }
};
using Tokens = std::vector<Token>;

// The end of the comment, literal, word or sign at `at`.
inline std::size_t token_end(std::string_view source, std::size_t at) {
  const char c = source[at];
  const auto after = [&](std::string_view mark, std::size_t from) {
    const std::size_t found = source.find(mark, from);
    return found == source.npos ? source.size() : found + mark.size();
  };
  std::size_t end = at + 1;
  if (source.substr(at, 2) == "//") return std::min(source.find('\n', at), source.size());
  if (source.substr(at, 2) == "/*") return after("*/", at + 2);
  if (c == '"' && at > 0 && source[at - 1] == 'R') {
    const std::size_t open = std::min(source.find('(', at), source.size());
    return after(")" + std::string(source.substr(end, open - end)) + "\"", open);
  }
  if (c == '"' || c == '\'') {
    while (end < source.size() && source[end] != c && source[end] != '\n') end += source[end] == '\\' ? 2 : 1;
    return std::min(end + 1, source.size());
  }
  const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
  if (is_word(c)) {
    while (end < source.size() && (is_word(source[end]) || (number && source[end] == '\''))) ++end;
  } else if (source.substr(at, 2) == "::" || source.substr(at, 2) == "->") {
    ++end;
  }
  return end;
}

inline Tokens tokens_of(std::string_view source) {
  Tokens tokens;
  bool space = false, begins_line = true, directive = false;
  for (std::size_t at = 0, end = 0; at < source.size(); at = end) {
    end = token_end(source, at);
    const std::string_view text = source.substr(at, end - at);
    const bool continued = text == "\\" && end < source.size() && source[end] == '\n';
    if (text == "\n") {
      begins_line = true;
      directive = false;
    }
    if (continued) ++end;
    if (continued || std::isspace(static_cast<unsigned char>(text[0])) != 0 || text.starts_with("//") ||
        text.starts_with("/*")) {
      space = true;
    } else if (directive) {
      if (space) tokens.back().text += ' ';
      tokens.back().text += text;
      space = false;
    } else {
      directive = begins_line && text == "#";
      tokens.push_back({std::string(text), std::exchange(space, false)});
      begins_line = false;
    }
  }
  return tokens;
}

// Appends tokens.
inline void put(std::string& out, const Tokens& tokens, std::size_t begin, std::size_t end) {
  constexpr std::string_view longer =
      "++ -- << >> <= >= == != && || += -= *= /= %= &= |= ^= -> :: .* // /* <: %: <% ## ..";
  const auto quotes = [](char c) { return c == '"' || c == '\''; };
  for (std::size_t i = begin; i < end; ++i) {
    const Token& token = tokens[i];
    const char a = out.empty() ? '\n' : out.back(), b = token.text[0];
    const bool word = is_word(a) || quotes(a);
    if (b == '#') {
      out += (a == '\n' ? "" : "\n") + token.text + "\n";
      continue;
    }
    if ((i == begin || token.after_space) &&
        ((word && is_word(b)) || (is_word(a) && quotes(b)) || longer.find(std::string{a, b}) != longer.npos))
      out += ' ';
    out += token.text;
  }
}

// Returns the index after the group that begins at `open`.
inline std::size_t group_end(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  do {
    depth += tokens[open].is("(") ? 1 : tokens[open].is(")") ? -1 : 0;
  } while (++open < tokens.size() && depth > 0);
  return open;
}

// Whether a file's definitions are chosen and its names shortened.
inline bool is_parsed(std::string_view name) {
  return name.ends_with(".cpp") || name.ends_with(".h") || name.ends_with(".hpp");
}

// The file, of those that `exists`, that a line #include of `file` names; empty: none, so a library's. NAME.inc is made by the
// build of NAME. A header of launch/evaluator/include takes the place of that of include.
template <typename Exists>
std::string included_file(const std::string& file, std::string_view line, Exists&& exists) {
  const std::size_t word = line.find_first_not_of(" \t");
  if (word == line.npos || !line.substr(word).starts_with("#include")) return {};
  const std::size_t begin = line.find_first_of("<\"", word) + 1, end = line.find_first_of(">\"", begin);
  if (begin == 0 || end == line.npos) return {};  // a macro
  const std::string name(line.substr(begin, end - begin));
  const std::string own_folder = line[begin - 1] == '"' ? file.substr(0, file.rfind('/') + 1) : "";
  for (const char* folder : {own_folder.c_str(), "launch/evaluator/include/", "", "include/", "kernels/"}) {
    std::string path = std::filesystem::path(folder + name).lexically_normal().generic_string();
    if (exists(path)) return path;
    if (path.ends_with(".inc") && exists(path.erase(path.size() - 4))) return path;
  }
  return {};
}

}  // namespace mulligan::source_text
