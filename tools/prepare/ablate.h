// Ablation of symbols: what training text loses when its formulas, digits, operators or Greek letters go.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/words.h"

namespace mulligan {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Where two begin at one place the first takes it.
enum class SymbolClass {
  latex,      // $...$, $$...$$, \(...\), \[...\] within a paragraph, and \command{...} with balanced braces
  digits,     // a run of 0 to 9
  operators,  // + = < > ^ / * and the mathematical signs of Unicode, each by itself
  greek,      // a run of Greek letters
};
template <>
inline constexpr auto config_words<SymbolClass> = std::array{"latex", "digits", "operators", "greek"};
inline constexpr std::size_t symbol_class_count = config_words<SymbolClass>.size();

enum class AblationMode {
  remove,  // the symbol goes
  mask,  // the mask stands in its place, 1, 2, 4, ... times: as often as the largest power of two that is at
         // most the symbol's number of characters
  decontext,  // the symbols of a class change places within the document, so that they lose their context alone
};
template <>
inline constexpr auto config_words<AblationMode> = std::array{"remove", "mask", "decontext"};

struct AblationRules {
  std::vector<SymbolClass> classes;  // empty: nothing is done
  AblationMode mode = AblationMode::remove;
  double probability = 1;  // with which each symbol is taken
  std::uint64_t seed = 0;
  std::string mask = "\u25A1";
  bool validation = false;  // the validation documents, too; otherwise scores stay comparable
  // Globs over the names of documents (TextSource::name; * any characters): the text of others stays as it
  // is. Empty: all.
  std::vector<std::string> domains = {};
  bool any() const { return !classes.empty(); }
  bool takes(const std::string& document) const;
};

// Symbols taken, by class.
using SymbolCounts = std::array<std::uint64_t, symbol_class_count>;

// The text without the symbols that are taken. Which they are, and their new places, follows from seed and
// text alone. Bytes that are no UTF-8 stay as they are. Adds what was taken to `taken`.
// `ends`, if given, becomes what TextOrigin::change() needs.
std::string ablate(std::string_view text, const AblationRules& rules, SymbolCounts& taken,
                   std::vector<std::uint64_t>* ends = nullptr);

// "latex,digits" and "mask": throws config_error for other words, a class given twice, or none.
std::vector<SymbolClass> parse_symbol_classes(const std::string& words);
AblationMode parse_ablation_mode(std::string_view word);

}  // namespace mulligan
