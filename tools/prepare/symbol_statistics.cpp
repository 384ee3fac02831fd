#include "tools/prepare/symbol_statistics.h"

#include <algorithm>
#include <functional>

#include "framework/core/parallel.h"
#include "tools/prepare/ablate.h"

namespace mulligan {
namespace {

constexpr std::size_t most_lines = std::size_t{1} << 24;
constexpr std::size_t block_documents = 256;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

AblationRules all_symbols() {
  AblationRules rules;
  rules.classes = {SymbolClass::latex, SymbolClass::digits, SymbolClass::operators, SymbolClass::greek};
  return rules;
}

struct Counted {
  SymbolCounts symbols{};
  std::vector<std::size_t> templates;  // a hash for each line that is not blank
};

Counted count(const std::string& text, const AblationRules& rules) {
  Counted counted;
  static_cast<void>(ablate(text, rules, counted.symbols));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != line.npos)
      counted.templates.push_back(std::hash<std::string>()(line_template(line)));
    begin = end + 1;
  }
  return counted;
}

}  // namespace

std::string line_template(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size();) {
    if (is_digit(line[i])) {
      text += '0';
      while (i < line.size() && is_digit(line[i])) ++i;
    } else if (is_letter(line[i])) {
      text += 'x';
      while (i < line.size() && (is_letter(line[i]) || is_digit(line[i]))) ++i;
    } else {
      text += line[i++];
    }
  }
  return text;
}

SymbolRecord symbol_statistics(const std::vector<CorpusDocument>& documents, std::uint64_t tokens,
                               int threads) {
  const AblationRules rules = all_symbols();
  SymbolCounts symbols{};
  std::vector<std::size_t> templates;
  for (std::size_t first = 0; first < documents.size(); first += block_documents) {
    std::vector<Counted> block(std::min(block_documents, documents.size() - first));
    parallel_for(block.size(), threads,
                 [&](std::size_t i) { block[i] = count(documents[first + i].text(), rules); });
    for (const Counted& one : block) {
      for (std::size_t kind = 0; kind < symbol_class_count; ++kind) symbols[kind] += one.symbols[kind];
      const std::size_t room = most_lines - templates.size();
      templates.insert(
          templates.end(), one.templates.begin(),
          one.templates.begin() + static_cast<std::ptrdiff_t>(std::min(room, one.templates.size())));
    }
  }
  SymbolRecord record;
  for (const SymbolClass kind : rules.classes) {
    record.per_1000_tokens[word_of(kind)] =
        tokens == 0 ? 0.0
                    : 1000.0 * static_cast<double>(symbols[static_cast<std::size_t>(kind)]) /
                          static_cast<double>(tokens);
  }
  record.lines = templates.size();
  std::ranges::sort(templates);
  record.templates = static_cast<std::uint64_t>(std::ranges::unique(templates).begin() - templates.begin());
  return record;
}

}  // namespace mulligan
