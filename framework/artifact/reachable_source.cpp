#include "framework/artifact/reachable_source.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <stdexcept>

#include "framework/artifact/source_tokens.h"

namespace mulligan {
namespace {

using namespace source_text;

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
    const bool deleted = !in_class.empty() && tokens_[at_ - 2].is("delete");
    item.dropped = deleted || unread_types.contains(first.is("const") ? second.text : first.text);
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

// A literal without what follows a semicolon in it.
std::string without_advice(const std::string& text) {
  const std::size_t mark = text.find("; ");
  return mark == std::string::npos ? text : text.substr(0, mark) + '"';
}

// The texts of errors and warnings in a call's arguments from `open` to its end lose what follows a semicolon: advice. The text
// of a logic_error, which no input causes, goes.
void shorten_message(Tokens& tokens, std::size_t open, bool whole) {
  int depth = 0;
  for (std::size_t i = open; i < group_end(tokens, open) - 1; ++i) {
    const std::string& text = tokens[i].text;
    depth += text == "(" || text == "{" ? 1 : text == ")" || text == "}" ? -1 : 0;
    const std::string shorter = whole ? "\"\"" : without_advice(text);
    if (depth != 1 || !tokens[i].is_text() || shorter == text) continue;
    tokens[i].text = shorter;
    std::size_t end = i + 1;
    while (tokens[end].is_text()) ++end;
    if (tokens[end].is("+")) {
      int inner = 0;  // the sum ends with the argument
      for (; inner > 0 || !(tokens[end].is(",") || tokens[end].is(")")); ++end)
        inner += tokens[end].is("(") || tokens[end].is("{")   ? 1
                 : tokens[end].is(")") || tokens[end].is("}") ? -1
                                                              : 0;
    }
    erase(tokens, i + 1, end);
  }
}

// A header of C as one of C++ alone.
void plain_header(Tokens& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is("#ifdef __cplusplus")) continue;
    std::size_t end = i;
    while (!tokens[end].is("#endif")) ++end;
    erase(tokens, end, end + 1);
    erase(tokens, i, i + 1);
  }
  if (tokens.empty() || !tokens[0].text.starts_with("#ifndef MULLIGAN_")) return;
  tokens[0].text = "#pragma once";
  erase(tokens, tokens.size() - 1, tokens.size());
  erase(tokens, 1, 2);
}

// Removes texts that an evaluation does not need: help and ranges of plugin keys, summaries of plugins, static assertions,
// what plugins log and advice in messages.
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
    if (tokens[i].is("static_assert") &&
        (tokens[i - 1].is(";") || tokens[i - 1].is("{") || tokens[i - 1].is("}"))) {
      erase(tokens, i, group_end(tokens, i + 1) + 1);
      --i;
      continue;
    }
    const bool log = tokens[i - 2].is("sdk") && tokens[i].is("log") && i + 6 < tokens.size();
    if (log && tokens[i + 6].is("info")) erase(tokens, i - 2, group_end(tokens, i + 1));
    if (tokens[i - 2].is("summary") && tokens[i - 1].is("=") && tokens[i].is_text()) {
      tokens[i].text = "\"\"";
      while (tokens[i + 1].is_text()) erase(tokens, i + 1, i + 2);
    }
    if (tokens[i - 1].is("return") && tokens[i].is_text()) tokens[i].text = without_advice(tokens[i].text);
    const std::string& call = tokens[i - 2].text;
    if (tokens[i - 1].is("(") &&
        (call.ends_with("rror") || call.ends_with("rror_if") || call == "bad" || call == "fail" ||
         call == "require" || call == "stand_in" || call == "say_once"))
      shorten_message(tokens, i - 1, call == "logic_error");
  }
}

struct File {
  std::string name, text;
  Tokens tokens = {};
  Items items = {};
};

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
      if (!is_parsed(file.name)) mention(file.tokens, 0, file.tokens.size(), all_);
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
    file.tokens = tokens_of(file.text);
    if (!is_parsed(name)) continue;
    plain_header(file.tokens);
    shorten(file.tokens);
    file.items = Parser(file.tokens, !name.ends_with(".cpp")).items({});
  }
  drop_replaced(files);
  const Reach reach(files);
  SourceFiles kept;
  for (const File& file : files) {
    std::string text;
    if (is_parsed(file.name)) {
      if (file.name.ends_with(".cpp") && !defines(file, file.items)) continue;
      write(file, file.items, text);
      text += "\n";
    } else if (file.name.ends_with(".cu") || file.name.ends_with(".cuh")) {
      text = without_comments(file.text);
    } else {
      std::istringstream lines(file.name.ends_with("/list.inc") ? listed(files, file) : file.text);
      for (std::string line; std::getline(lines >> std::ws, line);) text += line[0] == '#' ? "" : line + "\n";
    }
    kept.emplace_back(file.name, std::move(text));
  }
  return kept;
}

}  // namespace mulligan
