// PTX text cut into words, marks and strings, each with its line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan::ptx {

struct Token {
  std::string_view text;
  std::uint32_t line;
};

// The text without comments; `text` must outlive the tokens. Words are runs of letters, digits and "_$.%".
std::vector<Token> tokens_of(std::string_view text);

// The lines of a text; the first one is at 0.
std::vector<std::string> lines_of_text(std::string_view text);

// Reads tokens one after another. What is not as expected throws with line and text of the function that is parsed.
class TokenReader {
 public:
  explicit TokenReader(const std::string& text);

  bool at_end() const { return next_ == tokens_.size(); }
  std::string_view peek(std::size_t ahead = 0) const;
  std::uint32_t line() const { return at_end() ? tokens_.back().line : tokens_[next_].line; }
  std::string_view take();
  bool take_if(std::string_view text);
  void expect(std::string_view text);
  // A number, with a sign: decimal, 0x..., or the bits of 0f... and 0d...
  std::uint64_t take_number();
  // All that is left of the present line, and of a block in braces that begins next.
  std::vector<std::string_view> take_line();
  void skip_braces();

  [[noreturn]] void fail(const std::string& what) const { fail(what, line()); }
  [[noreturn]] void fail(const std::string& what, std::uint32_t line) const;
  void set_function(std::string name) { function_ = std::move(name); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  std::string function_;
};

}  // namespace mulligan::ptx
