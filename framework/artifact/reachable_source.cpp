#include "framework/artifact/reachable_source.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace mulligan {
namespace {

using Words = std::set<std::string, std::less<>>;

Words words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

bool is_word(char c) {
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
std::size_t token_end(std::string_view source, std::size_t at) {
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

Tokens tokens_of(std::string_view source) {
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
void put(std::string& out, const Tokens& tokens, std::size_t begin, std::size_t end) {
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

// A definition or a preprocessor line: the tokens from `begin` to `end`. For a namespace or class these are its head. Its members
// `inner` and the tokens from `body_end` to `last` follow.
struct Item {
  enum Kind { plain, space, type } kind = plain;
  std::size_t begin = 0, end = 0, body_end = 0, last = 0;
  bool root = false;      // reached with what it is in
  bool function = false;  // with its body, outside of a class
  bool destructor = false, dropped = false, live = false;
  std::vector<std::string> names, scopes;  // one of the names and all of the scopes must be named
  std::vector<Item> inner;
};
using Items = std::vector<Item>;

const Words no_names{"alignas",  "begin",    "bool",     "char",         "const",  "decltype", "double",
                     "explicit", "float",    "for",      "if",           "inline", "int",      "long",
                     "noexcept", "operator", "requires", "sizeof",       "static", "switch",   "void",
                     "while",    "unsigned", "auto",     "__attribute__"};

// Objects of these types only fill tables that an evaluation does not read.
const Words unread_types{"KernelRules"};

class Parser {
 public:
  Parser(const Tokens& tokens, bool header) : tokens_(tokens), header_(header) {}

  Items items(const std::string& in_class) {
    Items found;
    while (more() && !now().is("}")) found.push_back(item(in_class));
    return found;
  }

 private:
  bool more() const { return at_ < tokens_.size(); }
  const Token& now(std::size_t ahead = 0) const {
    static const Token none{" "};
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : none;
  }
  const Token& before() const { return tokens_[at_ - 1]; }

  // Skips a bracketed group, including nested groups.
  void skip(std::string_view open, std::string_view close) {
    int depth = 0;
    do {
      const char c = now().text[0];
      depth += open.find(c) != open.npos ? 1 : close.find(c) != close.npos && !now().is("->") ? -1 : 0;
      ++at_;
    } while (depth > 0 && more() && !(open[0] == '<' && before().is(";")));
  }
  void skip_group() { skip("([{", ")]}"); }

  void to_semicolon() {
    while (more() && !now().is(";"))
      now().is("(") || now().is("{") || now().is("[") ? skip_group() : void(++at_);
    ++at_;
  }

  Item item(const std::string& in_class) {
    Item item;
    item.begin = at_;
    const std::string& first = now().text;
    if (first[0] == '#') {
      std::istringstream words(first.substr(1));
      std::string command, name;
      words >> command >> name;
      item.root = command != "define" && command != "undef";
      item.names = {name.substr(0, name.find('('))};
      ++at_;
    } else if ((first == "public" || first == "private" || first == "protected") && now(1).is(":")) {
      item.root = true;
      at_ += 2;
    } else if ((first == "namespace" || first == "extern") && opens_body()) {
      while (!now().is("{")) ++at_;
      item.kind = Item::space;
      item.end = ++at_;
      item.inner = items({});
      item.body_end = at_++;
    } else if (first == "using" || first == "friend" || first == "typedef" || first == "static_assert") {
      item.root = first != "using" || !now(2).is("=");
      item.dropped = first == "static_assert";
      item.names = {now(1).text};
      to_semicolon();
    } else {
      declaration(item, in_class);
    }
    item.last = std::min(at_, tokens_.size());
    if (item.kind == Item::plain) item.end = item.last;
    return item;
  }

  bool opens_body() const {
    std::size_t ahead = 1;
    while (now(ahead).is_name() || now(ahead).is("::") || now(ahead).is_text()) ++ahead;
    return now(ahead).is("{");
  }

  // Records the declared name at `word` and the scopes A::B:: before it.
  void name(Item& item, std::size_t word) const {
    item.names.push_back(tokens_[word].text);
    item.destructor = word > item.begin && tokens_[word - 1].is("~");
    if (item.destructor) --word;
    while (word > item.begin + 1 && tokens_[word - 1].is("::")) {
      word -= 2;
      while (tokens_[word].is(">") || !tokens_[word].is_name()) --word;
      item.scopes.push_back(tokens_[word].text);
    }
  }

  void declaration(Item& item, const std::string& in_class) {
    std::size_t type = 0, last_name = 0, called = 0;
    bool value = false, constant = false, special = false, body = false;
    for (; more() && !now().is("}"); ++at_) {
      const std::string& token = now().text;
      if (token == ";") {
        ++at_;
        break;
      }
      if (token[0] == '#') {
        if (before().is(")") || before().is("}")) break;  // after a call of a macro
        special = true;
      } else if (token == "<" && at_ > 0 &&
                 (before().is("template") || (before().is_name() && !now().after_space))) {
        const std::size_t operand = at_;
        skip("<([{", ">)]}");
        at_ = before().is(";") ? operand : at_ - 1;
      } else if (token == "virtual" || token == "override") {
        special = true;
      } else if (token == "operator") {
        special = special || in_class.size() > 0 || !before().is("::");
        if (called == 0) called = at_;
        while (more() && (!now(1).is("(") || token == now().text)) ++at_;
      } else if (token == "constexpr" || token == "concept") {
        constant = true;
      } else if (token == "class" || token == "struct" || token == "union" || token == "enum") {
        if (type == 0 && called == 0 && !value) type = at_ + 1;
      } else if (token == "=" && called == 0) {
        value = true;
      } else if (token == "(" || token == "[") {
        if (token == "(" && called == 0 && !value && at_ > item.begin && before().is_name() &&
            !no_names.contains(before().text))
          called = at_ - 1;
        skip_group();
        --at_;
      } else if (token == "{") {
        if (type > 0 && called == 0 && !value)
          return tokens_[type - 1].is("enum") ? enumeration(item, type) : members(item, type);
        const bool constraint = before().is("requires");
        body = !value && !constraint;
        skip_group();
        if (body && !now().is(";") && !now().is(",") && !now().is("{") && !now().is("(")) break;
        --at_;
      } else if (called == 0 && !value && now().is_name() && !no_names.contains(token)) {
        last_name = at_;
      }
    }
    const Token &first = tokens_[item.begin], &second = tokens_[std::min(item.begin + 1, tokens_.size() - 1)];
    const auto small = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
    const bool macro = second.is("(") && std::ranges::none_of(first.text, small);
    item.dropped = unread_types.contains(first.is("const") ? second.text : first.text);
    if (called > 0 && tokens_[called].is("operator") && !special) {
      name(item, called);
      item.names = {item.scopes.front()};
    } else if (called > 0) {
      name(item, called);
      item.function = body && in_class.empty();
      // Without a body it may be an object, as `const Register registered(...);` is.
      item.root = special || item.names[0] == in_class || item.names[0] == "main" ||
                  (!header_ && !body && in_class.empty());
    } else if (last_name > 0 && (constant || (type > 0 && last_name == type && !value))) {
      name(item, last_name);
      item.root = special;
    } else {
      item.root = true;
    }
    item.root |= macro;
  }

  void enumeration(Item& item, std::size_t word) {
    for (std::size_t i = word; i < at_; ++i) item.names.push_back(tokens_[i].text);
    for (++at_; more() && !now().is("}"); ++at_) {
      if (before().is("{") || before().is(",")) item.names.push_back(now().text);
    }
    to_semicolon();
  }

  void members(Item& item, std::size_t word) {
    item.kind = Item::type;
    for (; word < at_ && !tokens_[word].is(":") && !tokens_[word].is("<"); ++word) {
      if (tokens_[word].is_name() && !tokens_[word].is("final") && !no_names.contains(tokens_[word].text))
        item.names = {tokens_[word].text};
    }
    item.root = item.names.empty();
    item.end = ++at_;
    item.inner = items(item.root ? "" : item.names[0]);
    item.body_end = at_;
    for (; more() && !now().is(";"); ++at_) item.names.push_back(now().text);
    ++at_;
  }

  const Tokens& tokens_;
  bool header_;
  std::size_t at_ = 0;
};

void erase(Tokens& tokens, std::size_t begin, std::size_t end) {
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
               tokens.begin() + static_cast<std::ptrdiff_t>(end));
}

// Returns the index after the group that begins at `open`.
std::size_t group_end(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  do {
    depth += tokens[open].is("(") ? 1 : tokens[open].is(")") ? -1 : 0;
  } while (++open < tokens.size() && depth > 0);
  return open;
}

// Removes texts that an evaluation does not need: help and ranges of plugin keys, and the part of an error message after a semicolon.
void shorten(Tokens& tokens) {
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    const bool key = tokens[i].is("(") && tokens[i - 1].is("key") && tokens[i - 2].is("::");
    const std::size_t end = key ? group_end(tokens, i) : 0;
    if (key && tokens[end - 2].is_text()) {
      while (end < tokens.size() && tokens[end].is(".")) erase(tokens, end, group_end(tokens, end + 2));
      std::size_t text = end - 2;
      while (tokens[text - 1].is_text()) --text;
      tokens[text].text = "\"\"";
      erase(tokens, text + 1, end - 1);
    }
    const std::string& call = tokens[i - 2].text;
    if (!tokens[i - 1].is("(") || !(call.ends_with("rror") || call == "bad" || call == "fail")) continue;
    for (; i < tokens.size() && tokens[i].is_text(); ++i) {
      const std::size_t mark = tokens[i].text.find("; ");
      if (mark == std::string::npos) continue;
      tokens[i].text = tokens[i].text.substr(0, mark) + '"';
      while (i + 1 < tokens.size() && tokens[i + 1].is_text()) erase(tokens, i + 1, i + 2);
    }
  }
}

struct File {
  std::string name, text;
  bool parsed = false;
  Tokens tokens = {};
  Items items = {};
};

bool is_parsed(std::string_view name) {
  return name.ends_with(".cpp") || name.ends_with(".h") || name.ends_with(".hpp");
}

// Calls act(item, "mulligan::cuda::") for the functions of namespaces.
template <typename Act>
void for_functions(const Tokens& tokens, Items& items, const std::string& space, Act&& act) {
  for (Item& item : items) {
    if (item.function) act(item, space);
    if (item.kind != Item::space) continue;
    std::string inner = space;
    for (std::size_t i = item.begin + 1; i + 1 < item.end; ++i) inner += tokens[i].text;
    for_functions(tokens, item.inner, inner + "::", act);
  }
}

class Reach {
 public:
  explicit Reach(std::vector<File>& files) {
    for (File& file : files) {
      if (!file.parsed) mention(file.tokens, 0, file.tokens.size(), all_);
    }
    for (changed_ = true; std::exchange(changed_, false);) {
      for (File& file : files) mark(file, file.items, all_);
    }
  }

 private:
  static void mention(const Tokens& tokens, std::size_t begin, std::size_t end, Words& words) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::string& text = tokens[i].text;
      if (tokens[i].is_name()) words.insert(text);
      if (text[0] != '#' || text.find("include") == 1) continue;
      const Tokens inside = tokens_of(text.substr(1));
      mention(inside, 0, inside.size(), words);
    }
  }

  // Only `words` name the items. For an unnamed namespace these are the words of its file.
  void mark(const File& file, Items& items, Words& words) {
    for (Item& item : items) {
      if (item.kind == Item::space) {
        const bool unnamed = item.end == item.begin + 2 && file.name.ends_with(".cpp");
        mark(file, item.inner, unnamed ? own_[file.name] : words);
        item.live = std::ranges::any_of(item.inner, &Item::live);
        continue;
      }
      const auto named_in = [](const Words& known) {
        return [&](const std::string& word) { return known.contains(word); };
      };
      const bool named = std::ranges::any_of(item.names, named_in(item.scopes.empty() ? words : all_));
      const bool reached =
          !item.dropped && (item.root || named) && std::ranges::all_of(item.scopes, named_in(words));
      if (reached && !item.live) {
        item.live = changed_ = true;
        for (Words* known : {&all_, &own_[file.name]}) {
          mention(file.tokens, item.begin, item.end, *known);
          if (item.kind == Item::type) mention(file.tokens, item.body_end, item.last, *known);
        }
      }
      if (item.live) mark(file, item.inner, all_);  // a template may name them
    }
  }

  Words all_{"main", "begin", "end",  "formatter", "format_as",
             "what", "hash",  "swap", "generate",  "result_type"};
  std::map<std::string, Words> own_;  // by file
  bool changed_ = true;
};

// Removes the functions that launch/evaluator/replaced*.cpp defines differently.
void drop_replaced(std::vector<File>& files) {
  std::map<std::string, int> functions;
  for (const bool replaces : {true, false}) {
    for (File& file : files) {
      if (file.name.starts_with("launch/evaluator/replaced") != replaces) continue;
      for_functions(file.tokens, file.items, "", [&](Item& item, const std::string& space) {
        std::string full = (item.destructor ? "~" : "") + item.names[0];
        for (const std::string& scope : item.scopes) full = scope + "::" + full;
        full = space + full;
        if (replaces) functions[full] = 0;
        item.dropped = !replaces && functions.contains(full);
        if (item.dropped) ++functions[full];
      });
    }
  }
  for (const auto& [full, count] : functions) {
    if (count == 0) throw std::runtime_error("launch/evaluator replaces '" + full + "', which is not there");
  }
}

void write(const File& file, const Items& items, std::string& out) {
  for (const Item& item : items) {
    if (!item.live) continue;
    put(out, file.tokens, item.begin, item.end);
    write(file, item.inner, out);
    if (item.kind != Item::plain) put(out, file.tokens, item.body_end, item.last);
  }
}

bool defines(const File& file, const Items& items) {
  return std::ranges::any_of(items, [&](const Item& item) {
    if (!item.live || item.kind == Item::space) return item.live && defines(file, item.inner);
    return file.tokens[item.begin].text[0] != '#' && !file.tokens[item.begin].is("using");
  });
}

// The lines WORD(NAME) of a list for which the folder NAME has files.
std::string listed(const std::vector<File>& files, const File& list) {
  std::istringstream lines(list.text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t open = line.find('(') + 1;
    const std::string folder = list.name.substr(0, list.name.rfind('/') + 1) +
                               line.substr(open, line.find(')') - open) + "/element.cpp";
    if (std::ranges::any_of(files, [&](const File& file) { return file.name == folder; }))
      kept += line + "\n";
  }
  return kept;
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
  explicit ShortNames(const std::vector<File>& files) {
    for (const File& file : files) {
      file.parsed ? read(file.tokens) : take(file.text);
    }
    for (const File& file : files) {
      for (const Token& token : file.tokens) {
        const std::string name = is_own(token.text) ? token.text : stem(token.text);
        if (file.parsed && is_own(name) && !short_.contains(name)) short_[name] = next(name);
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

// Without access specifiers. Classes become structs, but not the word before a template parameter.
Tokens without_access(const Tokens& tokens) {
  Tokens kept;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const bool access = token.is("public") || token.is("private") || token.is("protected");
    if (access && i + 1 < tokens.size() && tokens[i + 1].is(":")) {
      ++i;
    } else {
      kept.push_back(token);
      const Token& before = tokens[i > 0 ? i - 1 : 0];
      const bool names_any = i + 2 < tokens.size() && (tokens[i + 2].is(">") || tokens[i + 2].is(","));
      const bool type =
          token.is("class") && !names_any && !before.is("enum") && !before.is("<") && !before.is(",");
      if (type) kept.back().text = "struct";
    }
  }
  return kept;
}

}  // namespace

std::string without_comments(std::string_view source) {
  const Tokens tokens = tokens_of(source);
  std::string out;
  put(out, tokens, 0, tokens.size());
  return out + (out.empty() || out.back() == '\n' ? "" : "\n");
}

SourceFiles reachable_source(SourceFiles sources) {
  std::vector<File> files;
  for (auto& [name, text] : sources) {
    File& file = files.emplace_back(File{name, std::move(text)});
    file.parsed = is_parsed(name);
    file.tokens = tokens_of(file.text);
    if (!file.parsed) continue;
    shorten(file.tokens);
    file.items = Parser(file.tokens, !name.ends_with(".cpp")).items({});
  }
  drop_replaced(files);
  const Reach reach(files);
  SourceFiles kept;
  for (const File& file : files) {
    std::string text;
    if (file.parsed) {
      if (file.name.ends_with(".cpp") && !defines(file, file.items)) continue;
      write(file, file.items, text);
      text += "\n";
    } else if (file.name.ends_with(".cu") || file.name.ends_with(".cuh")) {
      text = without_comments(file.text);
    } else {
      std::istringstream lines(file.name.ends_with("/list.inc") ? listed(files, file) : file.text);
      for (std::string line; std::getline(lines, line);) text += line.starts_with('#') ? "" : line + "\n";
    }
    kept.emplace_back(file.name, std::move(text));
  }
  return kept;
}

SourceFiles short_names(SourceFiles sources) {
  std::vector<File> files;
  for (auto& [name, text] : sources) {
    File& file = files.emplace_back(File{name, text});
    file.parsed = is_parsed(name);
    if (file.parsed) file.tokens = without_access(tokens_of(text));
  }
  const ShortNames names(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i].parsed) continue;
    for (Token& token : files[i].tokens) token.text = names.of(token.text);
    sources[i].second.clear();
    put(sources[i].second, files[i].tokens, 0, files[i].tokens.size());
    sources[i].second += "\n";
  }
  return sources;
}

SourceFiles join_standard_headers(SourceFiles files) {
  Words included;
  for (auto& [name, text] : files) {
    if (!is_parsed(name)) continue;
    Tokens kept;  // lines in a literal are none
    for (Token& token : tokens_of(std::exchange(text, ""))) {
      const std::string& line = token.text;
      const bool standard = line.starts_with("#include <") && line.find_first_of("./") == line.npos;
      standard ? void(included.insert(line)) : kept.push_back(std::move(token));
    }
    put(text, kept, 0, kept.size());
    text += '\n';
  }
  std::string& header = files.emplace_back(standard_header, "").second;
  for (const std::string& line : included) header += line + '\n';
  return files;
}

}  // namespace mulligan
