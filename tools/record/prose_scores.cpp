#include "tools/record/prose_scores.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/record/prose_words.h"

namespace mulligan::record {
namespace {

using Kind = ProseToken::Kind;
using Line = std::vector<ProseToken>;

enum class Meaning { other, bpb, loss, difference };

bool is_one_of(const ProseToken& token, const std::set<std::string>& words) {
  return token.kind != Kind::number && words.contains(token.text);
}

// Stand between a score and its name.
bool connects(const ProseToken& token) {
  static const std::set<std::string> words = {
      ":",    "=",    "<",     ">",      "|",       "(",        ")",    "[",      "]",     "-",
      "\"",   "'",    "/",     "of",     "is",      "are",      "at",   "to",     "was",   "be",
      "now",  "mean", "final", "best",   "in",      "a",        "an",   "the",    "this",  "our",
      "with", "from", "down",  "total",  "average", "exact",    "test", "ttt",    "score", "value",
      "only", "just", "about", "result", "reaches", "achieves", "gets", "reached"};
  return token.kind == Kind::number || is_one_of(token, words);
}

// Name a difference, or what else is no score.
bool names_difference(const ProseToken& token) {
  static const std::set<std::string> words = {"by",        "std",       "sd",         "sem",
                                              "deviation", "delta",     "gain",       "margin",
                                              "gap",       "threshold", "difference", "improvement"};
  return is_one_of(token, words);
}

bool names_other_number(const ProseToken& token) {
  static const std::set<std::string> words = {"lr",    "rate",  "decay",    "ratio",       "scale", "eps",
                                              "beta",  "alpha", "momentum", "temperature", "ema",   "wd",
                                              "share", "p",     "factor",   "weight",      "clip",  "betas"};
  return is_one_of(token, words);
}

bool is_unit(const ProseToken& token) {
  static const std::set<std::string> words = {
      "%",   "x",     "s",      "ms",    "sec",     "seconds", "second", "min", "minutes", "h", "hours",
      "kb",  "mb",    "gb",     "kib",   "mib",     "gib",     "m",      "b",   "k",       "g", "ghz",
      "mhz", "bytes", "tokens", "steps", "million", "billion", "w",      "j",   "usd"};
  return is_one_of(token, words);
}

// The tokens with each phrase for a score as one, which no word is like.
constexpr const char *val_bpb = "@val_bpb", *bpb = "@bpb", *val_loss = "@val_loss", *loss = "@loss";
Line with_phrases(const Line& line) {
  Line joined;
  const auto word = [&](std::size_t at) { return at < line.size() ? line[at].text : std::string(); };
  for (std::size_t at = 0; at < line.size();) {
    const auto matches = [&](std::initializer_list<std::set<std::string>> parts) {
      std::size_t end = at;
      for (const auto& part : parts) {
        while (end > at && word(end) == "-") ++end;
        if (end >= line.size() || line[end].kind == Kind::number || !part.contains(word(end)))
          return std::size_t{0};
        ++end;
      }
      return end;
    };
    std::string name;
    std::size_t end = 0;
    const auto phrase = [&](const char* called, std::initializer_list<std::set<std::string>> parts) {
      if (end == 0 && (end = matches(parts)) != 0) name = called;
    };
    phrase(val_bpb, {{"valbpb"}});
    phrase(val_bpb, {{"val", "validation"}, {"bpb"}});
    phrase(bpb, {{"bpb", "bpbs"}});
    phrase(bpb, {{"bit", "bits"}, {"per", "/"}, {"byte", "bytes"}});
    phrase(val_loss, {{"valloss"}});
    phrase(val_loss, {{"val", "validation"}, {"loss"}});
    phrase(loss, {{"nat", "nats"}, {"per", "/"}, {"token", "tokens"}});
    if (end == 0) {
      joined.push_back(line[at++]);
      continue;
    }
    ProseToken token = line[at];
    token.text = name;
    joined.push_back(token);
    at = end;
  }
  return joined;
}

Meaning meaning_of(const ProseToken& token) {
  if (token.text == val_bpb || token.text == bpb) return Meaning::bpb;
  return token.text == val_loss || token.text == loss ? Meaning::loss : Meaning::other;
}

// Of a table: what each column is about, by the row above its line of dashes.
class Table {
 public:
  void take(const Line& line) {
    const bool row = std::ranges::any_of(line, [](const ProseToken& token) { return token.text == "|"; });
    const bool rule = row && std::ranges::all_of(line, [](const ProseToken& token) {
                        return token.text == "|" || token.text == "-" || token.text == ":";
                      });
    if (rule) columns_ = columns_of(before_);
    if (!row) columns_.clear();
    before_ = line;
  }
  Meaning column(const Line& line, std::size_t at) const {
    const auto cell =
        static_cast<std::size_t>(std::count_if(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(at),
                                               [](const ProseToken& token) { return token.text == "|"; }));
    return cell < columns_.size() ? columns_[cell] : Meaning::other;
  }

 private:
  static std::vector<Meaning> columns_of(const Line& head) {
    std::vector<Meaning> columns(1, Meaning::other);
    for (const ProseToken& token : head) {
      if (token.text == "|") columns.push_back(Meaning::other);
      if (names_difference(token) || token.text == "+") columns.back() = Meaning::difference;
      if (columns.back() == Meaning::other) columns.back() = meaning_of(token);
    }
    return columns;
  }
  std::vector<Meaning> columns_;
  Line before_;
};

struct Reading {
  Meaning meaning = Meaning::other;
  bool named = false;  // val_bpb or val_loss, before it
};

// What the number at `at` is, by the words around it.
Reading reading_of(const Line& line, std::size_t at) {
  constexpr std::size_t farthest = 12, most_others = 3;
  const ProseToken& number = line[at];
  bool directly = true, sign = false;
  std::size_t others = 0;  // words between that connect nothing
  for (std::size_t i = at; i-- > 0 && at - i <= farthest;) {
    const ProseToken& token = line[i];
    if (const Meaning meaning = meaning_of(token); meaning != Meaning::other) {
      const bool named = (token.text == val_bpb || token.text == val_loss);
      if (number.decimals == 0 && (!directly || (at + 1 < line.size() && line[at + 1].kind == Kind::word)))
        return {};
      return {sign && !named ? Meaning::difference : meaning, named && directly};
    }
    if (names_difference(token) || token.text == "+") return {Meaning::difference, false};
    if (i + 1 == at && token.text == "-" && !number.spaced &&
        (i == 0 || token.spaced || line[i - 1].text == "("))
      sign = true;
    if (is_one_of(token, {".", ";", "!", "?"}) || names_other_number(token)) break;
    if (!connects(token) && ++others > most_others) break;
    directly = directly && token.kind == Kind::mark;
  }
  if (sign) return {Meaning::difference, false};
  for (std::size_t i = at + 1; number.decimals > 0 && i < line.size() && i - at <= farthest / 2; ++i) {
    const ProseToken& token = line[i];
    if (const Meaning meaning = meaning_of(token); meaning != Meaning::other) return {meaning, false};
    const bool dash = token.text == "-" && !token.spaced;
    if (!dash && !is_one_of(token, {"(", ")", "[", "/", ">", "in", "mean", "average"}) &&
        token.kind != Kind::number)
      break;
  }
  return {};
}

// To the digits that the number has, rounded or cut off.
bool is_among(const ProseToken& number, const std::vector<double>& known) {
  const double last =
      number.power ? 1e-3 * std::abs(number.value) : 1.0001 * std::pow(10.0, -number.decimals);
  return std::ranges::any_of(known, [&](double one) { return std::abs(number.value - one) <= last; });
}

bool is_heading(const Line& line) {
  return !line.empty() && line.front().text == "#";
}

bool trains(const Line& line) {
  return std::ranges::any_of(line, [](const ProseToken& token) { return token.text.starts_with("train"); });
}

class Finder {
 public:
  Finder(const KnownFigures& known, bool heading) : known_(known), heading_(heading) {}

  void read(const Line& raw) {
    const Line line = with_phrases(raw);
    table_.take(line);
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at].kind == Kind::number && is_better(line, at)) claims_.insert(line[at].text);
    }
  }
  std::vector<std::string> claims() const { return {claims_.begin(), claims_.end()}; }

 private:
  bool is_better(const Line& line, std::size_t at) const {
    const ProseToken& number = line[at];
    Reading reading = reading_of(line, at);
    if (reading.meaning == Meaning::other && number.decimals > 0) reading.meaning = table_.column(line, at);
    if (reading.meaning == Meaning::difference) return false;
    if (reading.meaning == Meaning::loss && !reading.named && trains(line)) return false;
    const double best = reading.meaning == Meaning::loss ? known_.best_loss : known_.best_bpb;
    constexpr double least = 0.05;  // of the best
    if (!(number.value < best) || number.value < 0) return false;
    if (number.value < least * best && !reading.named) return false;
    if (reading.meaning != Meaning::other) return !is_among(number, known_.scores);
    const bool shown = (heading_ || is_heading(line)) && number.decimals >= 2;
    if ((number.decimals < 4 && !shown) || number.power) return false;
    return !has_other_unit(line, at) && !is_among(number, known_.all);
  }

  static bool has_other_unit(const Line& line, std::size_t at) {
    if (at + 1 < line.size() && is_unit(line[at + 1])) return true;
    for (std::size_t i = at; i-- > 0;) {
      if (names_other_number(line[i])) return true;
      if (!is_one_of(line[i], {":", "=", "(", "<", "of", "is", "|", "[", ","}) &&
          line[i].kind != Kind::number)
        break;
    }
    return false;
  }

  const KnownFigures& known_;
  bool heading_;
  Table table_;
  std::set<std::string> claims_;
};

}  // namespace

std::vector<std::string> better_scores(std::string_view text, const KnownFigures& known, bool heading) {
  std::set<std::string> claims;
  for (const bool tags : {false, true}) {
    Finder finder(known, heading);
    for (const Line& line : prose_lines(text, tags)) finder.read(line);
    for (std::string& claim : finder.claims()) claims.insert(std::move(claim));
  }
  return {claims.begin(), claims.end()};
}

std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  for (const Line& line : prose_lines(text, true)) {
    for (const ProseToken& token : line)
      if (token.kind == Kind::number) numbers.push_back(token.value);
  }
  return numbers;
}

}  // namespace mulligan::record
