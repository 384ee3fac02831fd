#include "tools/record/prose_words.h"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace mulligan::record {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// The character at the front of `text`, which is taken off; a byte that is no UTF-8 is itself.
char32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t character = length == 1 ? first : first & (0x7FU >> length);
  if (length > text.size()) return text.remove_prefix(1), first;
  for (std::size_t i = 1; i < length; ++i)
    character = (character << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(length);
  return character;
}

// "&#48;", "&#x30;" or "&period;" at the front; 0: there is none.
char32_t take_entity(std::string_view& text) {
  constexpr std::size_t longest = 12;
  const std::size_t end = text.substr(0, longest).find(';');
  if (end == std::string_view::npos || end < 2) return 0;
  const std::string_view name = text.substr(1, end - 1);
  char32_t character = 0;
  if (name.front() == '#') {
    const bool hexadecimal = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
    std::uint32_t number = 0;
    const char* digits = name.data() + (hexadecimal ? 2 : 1);
    const auto [last, error] =
        std::from_chars(digits, name.data() + name.size(), number, hexadecimal ? 16 : 10);
    if (error == std::errc() && last == name.data() + name.size()) character = number;
  } else {
    for (const auto& [known, one] :
         {std::pair{"period", U'.'}, std::pair{"comma", U','}, std::pair{"nbsp", U' '},
          std::pair{"lowbar", U'_'}, std::pair{"equals", U'='}, std::pair{"colon", U':'}}) {
      if (name == known) character = one;
    }
  }
  if (character != 0) text.remove_prefix(end + 1);
  return character;
}

// What it looks like among the characters that are looked at; 0: nothing.
char plain(char32_t c) {
  constexpr std::pair<char32_t, char32_t> invisible[] = {
      {0xAD, 0xAD}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}};
  for (const auto& [first, last] : invisible)
    if (c >= first && c <= last) return 0;
  if (c == '*' || c == '`' || c == '\\' || c == '~' || c == '_' || c == '$') return 0;
  if (c == '\n') return '\n';
  if (c < 0x20 || c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x3000) return ' ';
  if (c < 0x7F) return static_cast<char>(c);
  if (c >= 0xFF01 && c <= 0xFF5E) return plain(c - 0xFEE0);                 // wide forms
  for (const char32_t zero : {0x660, 0x6F0, 0x966, 0x9E6, 0x2070, 0x2080})  // digits
    if (c >= zero && c < zero + 10) return static_cast<char>('0' + (c - zero));
  if (c >= 0x1D7CE && c <= 0x1D7FF) return static_cast<char>('0' + (c - 0x1D7CE) % 10);
  if (c == 0xB7 || c == 0x2024 || c == 0x2219 || c == 0x22C5 || c == 0x66B) return '.';
  if (c == 0xB1) return '+';  // plus or minus
  if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212) return '-';
  if (c == 0xD7) return 'x';
  if (c == 0x394 || c == 0x2206) return '+';                    // a difference
  if ((c >= 0x2000 && c <= 0x2BFF) || c == 0x2E3A) return '>';  // arrows and other signs
  return 'z';                                                   // a letter of whatever script
}

std::string seen_text(std::string_view text, bool tags) {
  std::string seen;
  bool more_tags = !tags;
  while (!text.empty()) {
    if (text.starts_with("<!--")) {
      text.remove_prefix(4);
      continue;
    }
    const bool tag = more_tags && text.size() > 1 && text[0] == '<' && (is_letter(text[1]) || text[1] == '/');
    if (tag) {
      const std::size_t end = text.find('>');
      more_tags = end != std::string_view::npos;
      if (more_tags) {
        text.remove_prefix(end + 1);
        continue;
      }
    }
    const char32_t entity = text[0] == '&' ? take_entity(text) : 0;
    if (const char c = plain(entity != 0 ? entity : take_character(text))) seen += c;
  }
  return seen;
}

// The number at the front of `text`; a mark where it is none, such as a version. Takes it off.
ProseToken take_number(std::string_view& text) {
  std::size_t end = 0, point = std::string_view::npos;
  int points = 0;
  bool comma = false;
  const auto digit_at = [&](std::size_t at) { return at < text.size() && is_digit(text[at]); };
  for (; end < text.size(); ++end) {
    if (is_digit(text[end])) continue;
    const bool separates = text[end] == '.' || (text[end] == ',' && (points == 0 || comma));
    if (!separates || !digit_at(end + 1)) break;
    comma = text[end] == ',';
    if (++points == 1) point = end;
  }
  std::string written(text.substr(0, end));
  const int decimals = point == std::string_view::npos ? 0 : static_cast<int>(end - point) - 1;
  const bool thousands = comma && decimals == 3 && written[0] != '0';
  ProseToken token{ProseToken::Kind::number, written, 0, decimals, false, false};
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t last = end + (text[end + 1] == '-' || text[end + 1] == '+' ? 2 : 1);
    if (digit_at(last)) {
      while (digit_at(last)) ++last;
      written += text.substr(end, last - end);
      token.power = true;
      end = last;
    }
  }
  text.remove_prefix(end);
  if (points > 1 || thousands) return {ProseToken::Kind::mark, "#", 0, 0, false, false};
  if (comma) written[point] = '.';
  token.value = std::strtod(written.c_str(), nullptr);
  token.text = std::move(written);
  return token;
}

// `joined`: something stands before it without white space.
ProseToken take_token(std::string_view& text, bool joined) {
  const bool point = text[0] == '.' && text.size() > 1 && is_digit(text[1]) && !joined;
  if (point || is_digit(text[0])) return take_number(text);
  ProseToken token;
  if (!is_letter(text[0])) {
    token.text = text[0];
    text.remove_prefix(1);
    return token;
  }
  token.kind = ProseToken::Kind::word;
  while (!text.empty() && is_letter(text[0])) {
    token.text += static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    text.remove_prefix(1);
  }
  return token;
}

}  // namespace

std::vector<std::vector<ProseToken>> prose_lines(std::string_view markdown, bool tags) {
  const std::string seen = seen_text(markdown, tags);
  std::vector<std::vector<ProseToken>> lines(1);
  bool spaced = true;
  for (std::string_view rest = seen; !rest.empty();) {
    if (rest[0] == '\n') lines.emplace_back();
    if (rest[0] == '\n' || rest[0] == ' ') {
      rest.remove_prefix(1);
      spaced = true;
      continue;
    }
    const bool joined =
        !spaced && !lines.back().empty() && lines.back().back().kind != ProseToken::Kind::mark;
    lines.back().push_back(take_token(rest, joined));
    lines.back().back().spaced = std::exchange(spaced, false);
  }
  return lines;
}

}  // namespace mulligan::record
