#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "framework/artifact/reachable_source.h"
#include "framework/artifact/source_tokens.h"

namespace mulligan {
namespace {

using namespace source_text;

Words words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

// Words of C++, and names by which libraries use our classes or we use theirs.
const Words foreign_words = words_of(
    "alignas alignof and_eq bitand bitor break catch class co_await co_return co_yield compl concept "
    "const const_cast consteval constexpr constinit continue decltype default delete double "
    "dynamic_cast explicit export extern false final float friend inline mutable namespace noexcept "
    "not_eq nullptr operator or_eq override private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template thread_local "
    "throw typedef typeid typename union unsigned using virtual volatile while xor_eq "
    "allocate await_ready await_resume await_suspend begin bos_id deallocate do_allocate do_deallocate "
    "do_is_equal emplace_back ends_with final_suspend format_as formatter from_json generate "
    "get_return_object has_value initial_suspend is_open overflow parse pbackfail pop_back "
    "promise_type push_back push_front result_type return_value return_void seekoff seekpos showmanyc "
    "starts_with to_json try_lock uflow underflow unhandled_exception unlock unlock_shared value_or "
    "xsgetn xsputn yield_value");
const Words foreign_spaces{"Json",     "boost",  "dnnl",          "fmt", "fs",
                           "nlohmann", "return", "sentencepiece", "std"};
// No declaration follows them.
const Words no_types = words_of(
    "and asm case co_await co_return co_yield delete do else enum goto namespace new not operator or private "
    "public return sizeof throw using static_cast");

// Finds the names that only the tree's C++ uses and gives them short ones.
class ShortNames {
 public:
  // `tokens`: of each file that is parsed; empty for others.
  ShortNames(const SourceFiles& files, const std::vector<Tokens>& tokens) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      is_parsed(files[i].first) ? read(tokens[i]) : take(files[i].second);
    }
    for (const Tokens& of_file : tokens) {
      for (const Token& token : of_file) {
        const std::string name = is_own(token.text) ? token.text : stem(token.text);
        if (is_own(name) && !short_.contains(name)) short_[name] = next(name);
      }
    }
  }

  std::string of(const std::string& name) const {
    if (const auto found = short_.find(name); found != short_.end()) return found->second;
    const auto found = short_.find(stem(name));
    return found == short_.end() || taken_.contains(name) ? name : found->second + '_';
  }

 private:
  static bool has_small(std::string_view text) {
    return std::ranges::any_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
  }
  static std::string stem(const std::string& member) {
    return member.ends_with('_') ? member.substr(0, member.size() - 1) : "";
  }

  void take(std::string_view text) {
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      for (end = at; end < text.size() && is_word(text[end]);) ++end;
      if (end > at) taken_.emplace(text.substr(at, end - at));
    }
  }

  void read(const Tokens& tokens) {
    std::size_t macro_end = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Token &token = tokens[i], &after = tokens[std::min(i + 1, tokens.size() - 1)];
      const std::string& text = token.text;
      if (text[0] == '#' && text.find("include") != 1) take(text);
      if (!token.is_name()) continue;
      words_.insert(text);
      if (after.is("(") && !has_small(text)) macro_end = std::max(macro_end, group_end(tokens, i + 1));
      if (i < macro_end) taken_.insert(text);
      if (text == "extern" && after.is_text()) {  // a library's, unless it is a block
        for (std::size_t j = i + 2; j < tokens.size() && !tokens[j].is(";") && !tokens[j].is("{"); ++j)
          taken_.insert(tokens[j].text);
      }
      if (i == 0) continue;
      const Token& before = tokens[i - 1];
      if (before.is("::")) {
        std::size_t scope = i - 1;
        while (scope > 1 && tokens[scope].is("::") && tokens[scope - 1].is_name()) scope -= 2;
        if (scope + 1 == i || foreign_spaces.contains(tokens[scope + 1].text)) taken_.insert(text);
      }
      if (before.is("::") || before.is(".") || before.is("->")) members_.insert(text);
      const bool type = before.is("struct") || before.is("class");
      if (before.is_name() && !no_types.contains(before.text) &&
          !(type && (after.is(";") || after.is(")"))) &&
          std::string_view(";={(,)[:><").find(after.text) != std::string_view::npos)
        declared_.insert(text);
    }
  }

  // A member's name with two words or a capital is none of the standard library's.
  bool is_own(const std::string& name) const {
    if (name.size() < 5 || name[0] == '_' || name.ends_with("_t") ||
        !(declared_.contains(name) || (name.ends_with('_') && words_.contains(name))) ||
        taken_.contains(name) || foreign_words.contains(name) || words_.contains(stem(name)))
      return false;
    const std::size_t line = name.find('_', 1), capital = name[0] == 'k' ? 1 : 0;
    return !members_.contains(name) || line != name.npos ||
           (has_small(name) && name[capital] >= 'A' && name[capital] <= 'Z');
  }

  // Aa, Ab, ... for types and aA, aB, ... for others: the text coder foretells them in this order.
  std::string next(const std::string& name) {
    const bool type = name[0] >= 'A' && name[0] <= 'Z';
    for (;;) {
      const int n = given_[type]++, rest = n % 676, more = n / 676;
      std::string made{static_cast<char>('a' + rest / 26), static_cast<char>('A' + rest % 26)};
      if (type) made = {static_cast<char>(made[0] - 32), static_cast<char>(made[1] + 32)};
      if (more > 0) made += static_cast<char>('a' + more - 1);
      if (name.ends_with('_')) made += '_';
      if (!words_.contains(made) && !taken_.contains(made)) return made;
    }
  }

  Words words_, taken_, members_, declared_;
  std::map<std::string, std::string> short_;
  int given_[2] = {0, 0};
};

// Without access specifiers, override, final and visibility. Classes become structs, but not the word before a template parameter.
Tokens without_access(const Tokens& tokens) {
  Tokens kept;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token &token = tokens[i], &before = tokens[i > 0 ? i - 1 : 0];
    const auto next = [&](const char* text) { return i + 1 < tokens.size() && tokens[i + 1].is(text); };
    const bool access = token.is("public") || token.is("private") || token.is("protected");
    const bool checked = token.is("override") || (token.is("final") && !before.is(".") && !before.is("->"));
    if (access && next(":")) {
      ++i;
    } else if (!token.text.starts_with("#pragma GCC visibility") &&
               !(checked && (next("{") || next(";") || next(":") || (next("=") && token.is("override"))))) {
      kept.push_back(token);
      const bool names_any = i + 2 < tokens.size() && (tokens[i + 2].is(">") || tokens[i + 2].is(","));
      const bool type =
          token.is("class") && !names_any && !before.is("enum") && !before.is("<") && !before.is(",");
      if (type) kept.back().text = "struct";
    }
  }
  return kept;
}

// Which lines #include other lines make unnecessary.
class Includes {
 public:
  // Lines in a literal are no tokens.
  Includes(const std::map<std::string, Tokens>& parsed, const std::set<std::string>& names) : names_(names) {
    for (const auto& [name, tokens] : parsed) {
      for (const Token& token : tokens) {
        if (std::string found = target(name, token); is_parsed(found))
          direct_[name].push_back(std::move(found));
      }
    }
  }

  // The header of a library, which can be included before all others. JSON's takes long to compile; CUDA's define what
  // device sources define for the host.
  bool is_library(const std::string& file, const Token& token) const {
    const auto starts = [&](const char* name) {
      return token.text.starts_with(std::string("#include <") + name);
    };
    return starts("") && !starts("cu") && !starts("nv") && !starts("nlohmann/json.") &&
           target(file, token).empty();
  }

  // Another header of `file` includes it, too.
  bool is_redundant(const std::string& file, const Token& token) const {
    const std::string wanted = target(file, token);
    return is_parsed(wanted) && std::ranges::any_of(direct_.at(file), [&](const std::string& other) {
             return other != wanted && reaches(other, wanted) && !reaches(wanted, other);
           });
  }

 private:
  std::string target(const std::string& file, const Token& token) const {
    return included_file(file, token.text, [&](const std::string& path) { return names_.contains(path); });
  }

  bool reaches(const std::string& from, const std::string& to) const {
    std::set<std::string> seen{from};
    std::vector<std::string> open{from};
    while (!open.empty()) {
      const auto found = direct_.find(open.back());
      open.pop_back();
      if (found == direct_.end()) continue;
      for (const std::string& next : found->second) {
        if (next == to) return true;
        if (seen.insert(next).second) open.push_back(next);
      }
    }
    return false;
  }

  const std::set<std::string>& names_;
  std::map<std::string, std::vector<std::string>> direct_;
};

}  // namespace

SourceFiles short_names(SourceFiles sources) {
  std::vector<Tokens> tokens;
  for (const auto& [name, text] : sources)
    tokens.push_back(is_parsed(name) ? without_access(tokens_of(text)) : Tokens());
  const ShortNames names(sources, tokens);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!is_parsed(sources[i].first)) continue;
    for (Token& token : tokens[i]) token.text = names.of(token.text);
    sources[i].second.clear();
    put(sources[i].second, tokens[i], 0, tokens[i].size());
    sources[i].second += "\n";
  }
  return sources;
}

SourceFiles join_headers(SourceFiles files) {
  std::map<std::string, Tokens> parsed;
  std::set<std::string> names;
  for (const auto& [name, text] : files) {
    names.insert(name);
    if (is_parsed(name)) parsed[name] = tokens_of(text);
  }
  const Includes includes(parsed, names);
  Words joined;
  for (auto& [name, text] : files) {
    if (!is_parsed(name)) continue;
    Tokens kept;
    int conditions = 0;
    for (const Token& token : parsed[name]) {
      conditions += token.text.starts_with("#if") ? 1 : token.text.starts_with("#endif") ? -1 : 0;
      if (conditions == 0 && includes.is_library(name, token)) {
        joined.insert(token.text);
      } else if (conditions > 0 || !includes.is_redundant(name, token)) {
        kept.push_back(token);
      }
    }
    text.clear();
    put(text, kept, 0, kept.size());
    text += '\n';
  }
  std::string& header = files.emplace_back(standard_header, "").second;
  for (const std::string& line : joined) header += line + '\n';
  return files;
}

}  // namespace mulligan
