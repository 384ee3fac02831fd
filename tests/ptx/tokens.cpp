#include "tests/ptx/tokens.h"

#include <cctype>
#include <stdexcept>

namespace mulligan::ptx {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%';
}

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  std::uint32_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '\0' || std::isspace(static_cast<unsigned char>(c))) {
      ++i;
      continue;
    }
    if (text.substr(i, 2) == "//") {
      while (i < text.size() && text[i] != '\n') ++i;
      continue;
    }
    if (text.substr(i, 2) == "/*") {
      for (; i < text.size() && text.substr(i, 2) != "*/"; ++i) line += text[i] == '\n';
      i += 2;
      continue;
    }
    std::size_t end = i + 1;
    if (c == '"') {
      while (end < text.size() && text[end] != '"') ++end;
      ++end;
    } else if (in_word(c)) {
      while (end < text.size() && in_word(text[end])) ++end;
    }
    tokens.push_back({text.substr(i, end - i), line});
    i = end;
  }
  return tokens;
}

std::vector<std::string> lines_of_text(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\t' || !lines.back().empty()) {
      lines.back() += c == '\t' ? ' ' : c;
    }
  }
  return lines;
}

TokenReader::TokenReader(const std::string& text) : lines_(lines_of_text(text)), tokens_(tokens_of(text)) {
  if (tokens_.empty()) throw std::runtime_error("the PTX is empty");
}

std::string_view TokenReader::peek(std::size_t ahead) const {
  return next_ + ahead < tokens_.size() ? tokens_[next_ + ahead].text : std::string_view();
}

std::string_view TokenReader::take() {
  if (at_end()) fail("ends too early");
  return tokens_[next_++].text;
}

bool TokenReader::take_if(std::string_view text) {
  if (peek() != text) return false;
  ++next_;
  return true;
}

void TokenReader::expect(std::string_view text) {
  if (!take_if(text)) fail("'" + std::string(text) + "' was expected before '" + std::string(peek()) + "'");
}

std::uint64_t TokenReader::take_number() {
  const bool negative = take_if("-");
  std::string word(take());
  int base = 0;
  std::size_t prefix = 0;
  if (word.starts_with("0f") || word.starts_with("0F") || word.starts_with("0d") || word.starts_with("0D")) {
    if (negative) fail("a sign before the bits of a number");
    base = 16;
    prefix = 2;
  }
  if (word.ends_with('U')) word.pop_back();
  std::size_t read = 0;
  std::uint64_t value = 0;
  try {
    value = std::stoull(word.substr(prefix), &read, base);
  } catch (const std::exception&) {
    fail("'" + word + "' is not a number");
  }
  if (read + prefix != word.size()) fail("'" + word + "' is not a number");
  return negative ? std::uint64_t{0} - value : value;
}

std::vector<std::string_view> TokenReader::take_line() {
  std::vector<std::string_view> taken;
  for (const std::uint32_t here = line(); !at_end() && line() == here;) taken.push_back(take());
  return taken;
}

void TokenReader::skip_braces() {
  expect("{");
  for (int depth = 1; depth > 0;) {
    const std::string_view token = take();
    depth += token == "{" ? 1 : token == "}" ? -1 : 0;
  }
}

void TokenReader::fail(const std::string& what, std::uint32_t line) const {
  throw std::runtime_error("PTX of " + (function_.empty() ? "a module" : function_) + ", line " +
                           std::to_string(line) + ": " + what + ": " + lines_.at(line - 1));
}

}  // namespace mulligan::ptx
