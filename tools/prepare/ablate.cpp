#include "tools/prepare/ablate.h"

#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <numeric>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/philox.h"
#include "framework/core/utf8.h"

namespace mulligan {
namespace {

// Bytes of a formula, at most: text with many beginnings and no end is still read in time that grows with its
// length alone.
constexpr std::size_t longest_formula = 4096;

// A symbol of the text, and where it lies.
struct Symbol {
  SymbolClass kind;
  std::size_t begin = 0, length = 0;
};

bool is_operator(char32_t c) {
  constexpr std::u32string_view others = U"+=<>^/*\u00AC\u00B1\u00D7\u00F7";
  return others.find(c) != others.npos || (c >= 0x2200 && c <= 0x22FF);  // Mathematical Operators
}

bool is_greek(char32_t c) {
  const bool mark = c == 0x375 || c == 0x37E || c == 0x384 || c == 0x385 || c == 0x387;
  return (c >= 0x370 && c <= 0x3FF && !mark) || (c >= 0x1F00 && c <= 0x1FFF);
}

// The length of what `open` begins and `close` ends within one paragraph, both included; 0 where it has no
// end or nothing is between them.
std::size_t delimited(std::string_view text, std::string_view open, std::string_view close) {
  if (!text.starts_with(open)) return 0;
  text = text.substr(0, longest_formula);
  for (std::size_t at = open.size(); at < text.size(); ++at) {
    if (text.substr(at).starts_with(close)) return at > open.size() ? at + close.size() : 0;
    if (text.substr(at).starts_with("\n\n")) return 0;
    if (text[at] == '\\' && close[0] != '\\') ++at;  // an escaped character ends nothing
  }
  return 0;
}

// The length of \name{...}, with balanced braces within one paragraph; 0 where there is none.
std::size_t command(std::string_view text) {
  text = text.substr(0, longest_formula);
  std::size_t at = 1;
  while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0) ++at;
  if (at == 1 || at >= text.size() || text[at] != '{') return 0;
  for (int depth = 0; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at + 1;
    if (text.substr(at).starts_with("\n\n")) return 0;
  }
  return 0;
}

std::size_t latex(std::string_view text) {
  if (text[0] == '$') {
    const std::size_t display = delimited(text, "$$", "$$");
    return display > 0 ? display : text.starts_with("$$") ? 0 : delimited(text, "$", "$");
  }
  if (text[0] != '\\') return 0;
  for (const auto& [open, close] : {std::pair{"\\(", "\\)"}, std::pair{"\\[", "\\]"}}) {
    if (const std::size_t length = delimited(text, open, close)) return length;
  }
  return command(text);
}

// The length of the symbol of that class at the start of `text`; 0: there is none.
std::size_t symbol_length(std::string_view text, SymbolClass kind) {
  if (kind == SymbolClass::latex) return latex(text);
  if (kind == SymbolClass::digits) {
    return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
  }
  std::size_t length = 0;
  while (length < text.size()) {
    const std::size_t bytes = utf8_length(text.substr(length));
    if (bytes == 0) break;
    const char32_t c = utf8_code_point(text.substr(length), bytes);
    if (kind == SymbolClass::operators) return is_operator(c) ? bytes : 0;
    if (!is_greek(c)) break;
    length += bytes;
  }
  return length;
}

std::vector<Symbol> find_symbols(std::string_view text, const std::vector<SymbolClass>& classes) {
  std::vector<Symbol> found;
  for (std::size_t at = 0; at < text.size();) {
    Symbol symbol{};
    for (std::size_t kind = 0; kind < symbol_class_count && symbol.length == 0; ++kind) {
      const auto named = static_cast<SymbolClass>(kind);
      if (std::ranges::find(classes, named) == classes.end()) continue;
      symbol = {named, at, symbol_length(text.substr(at), named)};
    }
    if (symbol.length > 0) found.push_back(symbol);
    const bool escaped_dollar = symbol.length == 0 && text.substr(at).starts_with("\\$");
    at += symbol.length > 0 ? symbol.length
          : escaped_dollar  ? 2
                            : std::max<std::size_t>(utf8_length(text.substr(at)), 1);
  }
  return found;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// For each symbol, which one takes its place: those of a class change places among each
// other (Fisher and Yates).
std::vector<std::size_t> exchanged(const std::vector<Symbol>& symbols, const PhiloxStream& draws) {
  std::vector<std::size_t> order(symbols.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t kind = 0; kind < symbol_class_count; ++kind) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i].kind == static_cast<SymbolClass>(kind)) places.push_back(i);
    }
    for (std::size_t left = places.size(); left > 1; --left) {
      const auto other =
          static_cast<std::size_t>(draws.uniform(places[left - 1]) * static_cast<double>(left));
      std::swap(order[places[left - 1]], order[places[other]]);
    }
  }
  return order;
}

}  // namespace

bool AblationRules::takes(const std::string& document) const {
  const auto matches = [&](const std::string& glob) {
    return fnmatch(glob.c_str(), document.c_str(), 0) == 0;
  };
  return domains.empty() || std::ranges::any_of(domains, matches);
}

std::string ablate(std::string_view text, const AblationRules& rules, SymbolCounts& taken,
                   std::vector<std::uint64_t>* ends) {
  const std::string document = sha256_hex(text);
  const PhiloxStream choice(rules.seed, "ablate/" + document), order(rules.seed, "ablate_order/" + document);
  std::vector<Symbol> symbols = find_symbols(text, rules.classes);
  std::size_t number = 0;
  std::erase_if(symbols, [&](const Symbol&) { return choice.uniform(number++) >= rules.probability; });
  const std::vector<std::size_t> sources = exchanged(symbols, order);
  std::string out;
  std::size_t done = 0;
  const auto copy_until = [&](std::size_t end) {
    out += text.substr(done, end - done);
    for (; ends && done < end; ++done) ends->push_back(done + 1);
    done = end;
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    ++taken[static_cast<std::size_t>(symbol.kind)];
    copy_until(symbol.begin);
    done = symbol.begin + symbol.length;
    if (rules.mode == AblationMode::mask) {
      const std::size_t times = std::bit_floor(characters(text.substr(symbol.begin, symbol.length)));
      for (std::size_t n = 0; n < times; ++n) out += rules.mask;
    } else if (rules.mode == AblationMode::decontext) {
      const Symbol& source = symbols[sources[i]];
      out += text.substr(source.begin, source.length);
    }
    // The last byte of what stands in a symbol's place is all of the symbol.
    if (ends && out.size() > ends->size()) {
      ends->resize(out.size() - 1, symbol.begin);
      ends->push_back(done);
    }
  }
  copy_until(text.size());
  return out;
}

std::vector<SymbolClass> parse_symbol_classes(const std::string& words) {
  std::vector<SymbolClass> classes;
  std::istringstream all(words + ',');
  for (std::string word; std::getline(all, word, ',');) {
    const auto kind = of_word<SymbolClass>(word);
    if (!kind || std::ranges::find(classes, *kind) != classes.end()) {
      throw config_error(
          "'{}' in the classes of symbols '{}' is not a class, or stands there twice; name "
          "each of latex, digits, operators, greek at most once, with commas between them",
          word, words);
    }
    classes.push_back(*kind);
  }
  return classes;
}

AblationMode parse_ablation_mode(std::string_view word) {
  if (const auto mode = of_word<AblationMode>(word)) return *mode;
  throw config_error("'{}' is not a mode of ablation; choose remove, mask or decontext", word);
}

}  // namespace mulligan
