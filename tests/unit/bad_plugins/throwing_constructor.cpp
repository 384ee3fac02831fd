// A schedule whose constructor always throws, with the values of its keys in the sentence.
#include <mulligan/schedule.hpp>

#include <sstream>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  bool flag = true;
  int count = 3;
  std::int64_t big = 1LL << 40;
  double number = 0.125;
  float small = 0.5f;
  std::string word = "one";
  std::vector<double> list = {1, 2.5};
  double must = 0;
};

class ThrowingConstructor final : public sdk::Schedule {
 public:
  static constexpr const char* summary = "refuses every configuration";
  static inline const sdk::Schema<Config> schema{
      sdk::key("flag", &Config::flag, "a switch"),
      sdk::key("count", &Config::count, "a count").range(1, 10),
      sdk::key("big", &Config::big, "a large number"),
      sdk::key("number", &Config::number, "a number").at_least(0),
      sdk::key("small", &Config::small, "a number in single precision"),
      sdk::key("word", &Config::word, "a word").choices("one|two"),
      sdk::key("list", &Config::list, "some numbers").range(0, 9),
      sdk::key("must", &Config::must, "a number without a default").required()};

  explicit ThrowingConstructor(const Config& c) {
    std::ostringstream text;
    text << "no good: " << c.flag << ' ' << c.count << ' ' << c.big << ' ' << c.number << ' ' << c.small
         << ' ' << c.word;
    for (const double value : c.list) text << ' ' << value;
    text << ' ' << c.must;
    throw sdk::Error(text.str());
  }
  sdk::Rate rate(const sdk::Progress&, double base_lr) const override { return {base_lr, 0}; }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(ThrowingConstructor, throwing_constructor);
