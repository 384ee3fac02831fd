#include "framework/check/transform_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/core/philox.h"

namespace mulligan {
namespace {

// The documents of one batch: tokens[document][position]. A document's first token is given and not scored.
using ProbeText = std::vector<std::vector<std::int32_t>>;
// The proposals for each scored token, in the order of scoring.
using Proposals = std::vector<std::vector<mlg_bias>>;
using Order = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr std::size_t chunk = 7, documents = 3, motif = 29, repeats = 6;

// Where the scored tokens of a text stand, in the queue order of test-time training: chunk by chunk, and within a chunk
// document by document.
Order queue_order(const ProbeText& text) {
  Order order;
  std::size_t longest = 0;
  for (const auto& document : text) longest = std::max(longest, document.size());
  for (std::size_t first = 1; first < longest; first += chunk) {
    for (std::size_t document = 0; document < text.size(); ++document) {
      for (std::size_t i = first; i < std::min(first + chunk, text[document].size()); ++i)
        order.emplace_back(document, i);
    }
  }
  return order;
}

// Documents of unequal length that repeat one motif: long contexts occur again, in other documents too.
ProbeText repeating_text(std::int64_t vocabulary) {
  const PhiloxStream draws(0, "transform probe");
  const auto below = static_cast<std::uint32_t>(std::min<std::int64_t>(vocabulary, 1 << 16));
  std::uint64_t next = 0;
  std::vector<std::int32_t> piece;
  for (std::size_t i = 0; i < motif; ++i)
    piece.push_back(static_cast<std::int32_t>(draws.bits(next++) % below));
  ProbeText text(documents);
  for (std::size_t document = 0; document < documents; ++document) {
    text[document].push_back(static_cast<std::int32_t>(1 % below));
    for (std::size_t i = 0; i < (repeats - document) * motif; ++i) {
      const bool stray = draws.bits(next++) % 64 == 0;
      text[document].push_back(stray ? static_cast<std::int32_t>(draws.bits(next++) % below)
                                     : piece[(i + document) % motif]);
    }
  }
  return text;
}

// The first of `count` proposals that differ; `count` where none does.
std::size_t first_other(const Proposals& a, const Proposals& b, std::size_t count) {
  std::size_t at = 0;
  while (at < count && same_biases(a[at], b[at])) ++at;
  return at;
}

// Those for a text in a stream of its own.
Proposals queue_proposals(const Transform& transform, const ProbeText& text, const Order& order,
                          std::int64_t vocabulary, std::size_t ahead) {
  const auto stream = transform.open(
      {vocabulary, static_cast<std::int64_t>(order.size()), static_cast<std::int64_t>(text.size())});
  for (std::size_t document = 0; document < text.size(); ++document)
    stream->begin(static_cast<std::int64_t>(document), text[document].front());
  Proposals proposals;
  std::vector<std::size_t> told(text.size(), 1);
  for (const auto& [document, position] : order) {
    const auto place = static_cast<std::int64_t>(document);
    const auto tell = [&, &tokens = text[document], &next = told[document]](std::size_t end) {
      for (; next < std::min(end, tokens.size()); ++next) stream->observe(place, tokens[next]);
    };
    tell(position + ahead);
    const auto proposal = stream->propose(place);
    proposals.emplace_back(proposal.begin(), proposal.end());
    tell(position + 1);
  }
  return proposals;
}

}  // namespace

bool same_biases(std::span<const mlg_bias> a, std::span<const mlg_bias> b) {
  return std::ranges::equal(
      a, b, [](const mlg_bias& x, const mlg_bias& y) { return x.token == y.token && x.bias == y.bias; });
}

std::string transform_problem(const Transform& transform, std::int64_t vocabulary, std::size_t ahead) {
  const ProbeText text = repeating_text(vocabulary);
  const Order order = queue_order(text);
  const auto proposals = [&](const ProbeText& of) {
    return queue_proposals(transform, of, order, vocabulary, ahead);
  };
  const Proposals first = proposals(text), again = proposals(text);
  if (const std::size_t at = first_other(first, again, order.size()); at < order.size()) {
    return fmt::format(
        "the proposal for token {} of {} is another one when the same text is "
        "scored again in a new stream, so it knows more than the tokens before it",
        at + 1, order.size());
  }
  const PhiloxStream draws(1, "transform probe");
  const auto others = static_cast<std::uint32_t>(std::min<std::int64_t>(vocabulary, 1 << 16) - 1);
  for (std::size_t cut = 0; cut < order.size(); cut += std::max<std::size_t>(1, order.size() / 37)) {
    ProbeText changed = text;
    for (std::size_t i = cut; i < order.size(); ++i) {
      std::int32_t& token = changed[order[i].first][order[i].second];
      token = static_cast<std::int32_t>((static_cast<std::uint32_t>(token) + 1 + draws.bits(i) % others) %
                                        (others + 1));
    }
    // The proposal at the cut is for the first token that changed.
    const std::size_t at = first_other(first, proposals(changed), cut + 1);
    if (at <= cut) {
      return fmt::format(
          "the proposal for token {} of {} changes with the tokens from {} on, so a score would know what it "
          "scores",
          at + 1, order.size(), cut + 1);
    }
  }
  return {};
}

}  // namespace mulligan
