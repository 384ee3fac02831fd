#include "tools/record/submission_readme.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulligan::record {
namespace {

// `open` is followed by `close`, which ends the first that is open.
bool leaves_open(std::string_view text, std::string_view open, std::string_view close) {
  for (std::size_t at = text.find(open); at != std::string_view::npos; at = text.find(open, at)) {
    at = text.find(close, at + open.size());
    if (at == std::string_view::npos) return true;
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
    const char mark = first == std::string_view::npos ? ' ' : line[first];
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
               rest.find_first_not_of(" \t\r") == std::string_view::npos) {
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
  std::size_t end = std::string_view::npos;  // behind its '>'; std::string_view::npos: it does not end
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
    const bool code =
        fence.take(line) || line.starts_with("    ") || line.find('\t') != std::string_view::npos;
    const bool doubtful = line.find_first_of("`\\") != std::string_view::npos ||
                          line.find("](") != std::string_view::npos ||
                          line.find("]:") != std::string_view::npos;
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
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const Tag tag = tag_at(text, at);
    if (tag.name.empty()) continue;
    const bool within = at < in_tag;
    if (!within && tag.end != std::string_view::npos) in_tag = tag.end;
    if (!is_element(tag.name)) continue;  // others, such as vector<float>, are text
    if (!tag.closes) {
      ++open[tag.name];
    } else if (!within && tag.end != std::string_view::npos && closes_at(at)) {
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

namespace {

std::string number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string seed_rows(const Submission& s) {
  std::string rows =
      "| seed | val_bpb | val_loss (nats) | before quantisation | quantised | steps | ms "
      "per step | training s | evaluation s | model bytes | code bytes | total bytes |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const SeedResult& r : s.results) {
    rows += fmt::format("| {} | **{}** | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                        r.seed.value_or(0), number(r.val_bpb, 8), number(r.val_loss, 8),
                        number(r.val_bpb_before, 5), number(r.val_bpb_quantised, 5), r.steps.value_or(0),
                        number(r.step_avg_ms, 1), number(r.train_seconds, 2), number(r.eval_seconds, 2),
                        r.model_bytes.value_or(0), r.code_bytes.value_or(0), r.artifact_bytes.value_or(0));
  }
  rows += fmt::format("\nMean {} bits per byte", number(s.val_bpb, 8));
  if (s.val_bpb_std) rows += fmt::format(", standard deviation of the sample {}", number(s.val_bpb_std, 8));
  rows += fmt::format("; mean {} nats per token.\n", number(s.val_loss, 8));
  return rows;
}

std::string rules_text(const Submission& s) {
  std::string text;
  if (s.budgets) {
    text += fmt::format(
        "- Budgets kept by every seed: training and calibration within {:g} s, test-time training "
        "from the loaded weights to the score within {:g} s, model and packed source within {} bytes.\n",
        s.budgets->train_seconds, s.budgets->eval_seconds, s.budgets->artifact_bytes);
  }
  text += fmt::format("- The code counts with {} bytes: those of `{}` in this folder.\n",
                      s.bytes_code.value_or(0), source_file);
  if (s.overlap) {
    text += fmt::format(
        "- {:.4g} % of the validation text stands in the training data with changes, "
        "{:.4g} % as it is, {:.4g} % in short pieces, and {:.4g} % of the training data is like validation "
        "text; {} tokens of validation and {} of training data were compared.\n",
        100 * s.overlap->similar, 100 * s.overlap->copied, 100 * s.overlap->pieces, 100 * s.overlap->training,
        s.overlap->validation_read, s.overlap->training_read);
  }
  if (!s.data.empty()) {
    text +=
        fmt::format("- sha256 of the data: training shards `{}`, validation shards `{}`, tokenizer `{}`.\n",
                    s.data.train, s.data.validation, s.data.tokenizer);
  }
  if (s.comparison) {
    text += fmt::format("- Against {}: {}\n", s.comparison->name, s.comparison->decision);
    for (const std::string& note : s.comparison->notes) text += fmt::format("  Note: {}.\n", note);
  }
  return text;
}

}  // namespace

std::string readme_figures(const Submission& submission) {
  return fmt::format(
      "{}\n\n{}\n{}\n"
      "{}\n",
      figures_begin, seed_rows(submission), rules_text(submission), figures_end);
}

std::string figures_fault(const std::string& readme, const std::string& figures) {
  const std::size_t at = readme.find(figures);
  if (at == std::string::npos) return "is not what submission.json gives";
  if (readme.find(figures_begin) != at || readme.find(figures_begin, at + 1) != std::string::npos)
    return "stands there twice";
  if (at > 0 && readme[at - 1] != '\n') return "does not begin a line";
  if (leaves_something_open(std::string_view(readme).substr(0, at)))
    return "stands behind a comment, a block of code or an element of HTML that does not end before it, and "
           "may hide it";
  return {};
}

std::string readme_text(const Submission& s) {
  std::string text =
      fmt::format("# {}\n\n{} (@{}), {}, track {}.\n\n", s.name, s.author, s.github_id, s.date, s.track);
  if (!s.blurb.empty()) text += s.blurb + "\n\n";
  text += fmt::format("## Result\n\n{}\n", readme_figures(s));
  text += fmt::format("## How it was made\n\n```bash\n{}\n```\n\n", s.command);
  text += fmt::format("{}, on {}.\n\n", s.software, s.hardware);
  text +=
      "Each seed was trained, quantised and scored with test-time training under a strict ledger; its log "
      "holds all three stages. Test-time training is a state machine: a chunk is scored, its score is "
      "booked, only then are its tokens shown to the adapters. Every validation token is scored once, left "
      "to right, from a full softmax; that its score does not depend on later tokens is checked while "
      "scoring (the log's line \"causality\").\n\n";
  text += fmt::format(
      "## Files\n\n- `{}`: the source that an evaluation needs, which counts (`brotli -d -c {} | tar x`)\n"
      "- `{}`: the source of program, plugins and configurations, training included\n"
      "- `config.toml`: every setting of the first seed; the others differ in `run.seed` and `run.directory` "
      "alone\n",
      source_file, source_file, whole_source_file);
  for (const SeedResult& result : s.results)
    text += fmt::format("- `{}`: seed {}\n", result.log, result.seed.value_or(0));
  text += "\n`mulligan record --verify FOLDER` checks sums, sizes, claims and statistics of this folder.\n";
  return text;
}

}  // namespace mulligan::record
