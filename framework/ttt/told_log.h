// What a score transform was told, as it travels to the process that has another one propose for the same
// text (blind_checker.h), and a digest of the proposals.
#pragma once

#include <mulligan/transform.h>

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace mulligan {

struct ToldLog {
  enum Kind : std::int32_t { open, begin, tell };
  // open: stream, vocabulary, tokens, places. begin: stream, place, token, 0. tell: the same.
  struct Entry {
    std::int32_t kind = tell, stream = 0, a = 0, b = 0, c = 0;
  };
  static Entry entry(Kind kind, std::int64_t stream, std::int64_t a, std::int64_t b, std::int64_t c) {
    const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    return {kind, narrow(stream), narrow(a), narrow(b), narrow(c)};
  }
  std::vector<Entry> entries;

  // FNV-1a over the bits of everything that was proposed.
  static constexpr std::uint64_t no_proposals = 0xcbf29ce484222325u;
  static std::uint64_t with(std::uint64_t digest, std::span<const mlg_bias> proposal) {
    const auto add = [&](std::uint64_t value) { digest = (digest ^ value) * 0x100000001b3u; };
    add(proposal.size());
    for (const mlg_bias& bias : proposal) {
      add(static_cast<std::uint64_t>(bias.token));
      const auto bits = std::bit_cast<std::uint64_t>(bias.bias);
      add(bits & 0xffffffffu);
      add(bits >> 32);
    }
    return digest;
  }
};

}  // namespace mulligan
