#include "tools/record/hidden_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mulligan::record {
namespace {

constexpr auto npos = std::string_view::npos;

// `open` is followed by `close`, which ends the first that is open.
bool leaves_open(std::string_view text, std::string_view open, std::string_view close) {
  for (std::size_t at = text.find(open); at != npos; at = text.find(open, at)) {
    at = text.find(close, at + open.size());
    if (at == npos) return true;
  }
  return false;
}

// The blocks of code between lines of ``` or ~~~.
class Fence {
 public:
  bool is_open() const { return length_ > 0; }
  // Whether the line belongs to a block, its first and last line included.
  bool take(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t>");
    const char mark = first == npos ? ' ' : line[first];
    if (mark != '`' && mark != '~') return is_open();
    const std::size_t end = std::min(line.find_first_not_of(mark, first), line.size());
    const std::string_view lead = line.substr(0, first), rest = line.substr(end);
    const std::size_t length = end - first;
    if (length < 3) return is_open();
    if (!is_open()) {
      lead_ = lead;
      mark_ = mark;
      length_ = length;
    } else if (mark == mark_ && length >= length_ && lead == lead_ &&
               rest.find_first_not_of(" \t\r") == npos) {
      length_ = 0;
    }
    return true;
  }

 private:
  std::string_view lead_;
  char mark_ = ' ';
  std::size_t length_ = 0;
};

bool is_element(const std::string& name) {
  static const std::set<std::string> elements = {
      "a",      "article",  "aside",    "b",       "blockquote", "body",   "button",  "center",
      "code",   "dd",       "del",      "details", "dialog",     "div",    "dl",      "dt",
      "em",     "embed",    "fieldset", "figure",  "font",       "footer", "form",    "h1",
      "h2",     "h3",       "h4",       "h5",      "h6",         "head",   "header",  "i",
      "iframe", "ins",      "kbd",      "li",      "main",       "map",    "mark",    "math",
      "menu",   "nav",      "noscript", "object",  "ol",         "p",      "picture", "plaintext",
      "pre",    "s",        "samp",     "script",  "section",    "select", "small",   "span",
      "strong", "style",    "sub",      "summary", "sup",        "svg",    "table",   "tbody",
      "td",     "template", "textarea", "th",      "thead",      "title",  "tr",      "tt",
      "u",      "ul",       "var",      "video",   "xmp"};
  return elements.contains(name);
}

struct Tag {
  std::string name;
  bool closes = false;
  std::size_t end = npos;  // behind its '>'; npos: it does not end
};

// The tag whose '<' stands at `at`; without a name where there is none.
Tag tag_at(std::string_view text, std::size_t at) {
  Tag tag;
  std::size_t i = at + 1;
  tag.closes = i < text.size() && text[i] == '/';
  if (tag.closes) ++i;
  for (; i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])); ++i)
    tag.name += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
  for (char quote = 0; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '>') {
      tag.end = i + 1;
      break;
    }
  }
  return tag;
}

// By line: whether something that closes counts there.
std::vector<std::pair<std::size_t, bool>> lines_of(std::string_view text, bool& fenced) {
  std::vector<std::pair<std::size_t, bool>> lines;
  Fence fence;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const bool code = fence.take(line) || line.starts_with("    ") || line.find('\t') != npos;
    const bool doubtful =
        line.find_first_of("`\\") != npos || line.find("](") != npos || line.find("]:") != npos;
    lines.emplace_back(begin, !code && !doubtful);
    begin = end + 1;
  }
  fenced = fence.is_open();
  return lines;
}

bool leaves_element_open(std::string_view text, const std::vector<std::pair<std::size_t, bool>>& lines) {
  const auto closes_at = [&](std::size_t at) {
    const auto behind = std::ranges::upper_bound(lines, at, {}, &std::pair<std::size_t, bool>::first);
    return behind != lines.begin() && std::prev(behind)->second;
  };
  std::map<std::string, int> open;
  std::size_t in_tag = 0;  // where the last tag of any kind ends
  for (std::size_t at = text.find('<'); at != npos; at = text.find('<', at + 1)) {
    const Tag tag = tag_at(text, at);
    if (tag.name.empty()) continue;
    const bool within = at < in_tag;
    if (!within && tag.end != npos) in_tag = tag.end;
    if (!is_element(tag.name)) continue;  // others, such as vector<float>, are text
    if (!tag.closes) {
      ++open[tag.name];
    } else if (!within && tag.end != npos && closes_at(at)) {
      open[tag.name] = std::max(open[tag.name] - 1, 0);
    }
  }
  return std::ranges::any_of(open, [](const auto& element) { return element.second > 0; });
}

}  // namespace

bool leaves_something_open(std::string_view before) {
  if (leaves_open(before, "<!--", "-->") || leaves_open(before, "<?", "?>") ||
      leaves_open(before, "<![CDATA[", "]]>"))
    return true;
  bool fenced = false;
  const auto lines = lines_of(before, fenced);
  return fenced || leaves_element_open(before, lines);
}

}  // namespace mulligan::record
