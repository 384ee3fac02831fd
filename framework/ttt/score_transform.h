// What a score transform makes of losses, and who tells it which token when.
#pragma once

#include <mulligan/transform.h>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "framework/config/ttt_config.h"
#include "framework/plugin/transform.h"
#include "framework/ttt/document_plan.h"

namespace mulligan {

// What a score transform was told, as it travels to the process that has another one propose for the same
// text (blind_checker.h), and a digest of the proposals.
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

// TransformWitness: hears what a score transform was told and what it proposed.
class TransformWitness {
 public:
  virtual ~TransformWitness() = default;
  // The stream `number` begins anew.
  virtual void opened(std::int64_t number, const mlg_transform_text& text) = 0;
  virtual void began(std::int64_t number, std::int64_t place, std::int32_t token) = 0;
  // `proposal` was made for the coming token of `place`, which is then told.
  virtual void told(std::int64_t number, std::int64_t place, std::int32_t token,
                    std::span<const mlg_bias> proposal) = 0;
};

// The loss of `target` in nats when the biases of `proposal` are added to the logits and the softmax is made
// anew: loss - [bias of the target] + log(sum over all tokens of p e^bias). `loss` is the target's without
// them, proposed_losses[i] that of proposal[i].token, from the same logits.
double transformed_loss(double loss, std::int32_t target, std::span<const mlg_bias> proposal,
                        std::span<const double> proposed_losses);

// Asks a transform for its proposals and then tells it the tokens, in one of the orders of [ttt.transform].
class TransformFeed {
 public:
  // `places` documents of a batch at most. In file order it makes all proposals here. The arguments must
  // outlive this object. `witness` (or null) hears all of it. Throws what the plugin's calls throw.
  TransformFeed(const Transform& transform, TransformOrder order, std::span<const std::uint16_t> tokens,
                const DocumentPlan& plan, std::int64_t vocabulary, std::int64_t places,
                TransformWitness* witness = nullptr);

  // Batches of this lane follow; it knows what earlier batches of it have told.
  void enter_lane(std::int64_t lane);
  // The document `number` begins at `place`: its first token is given.
  void begin(std::int64_t place, int number);
  // Called for the targets [first, first + count) of the document at `place`, in order: each is proposed for,
  // handed to `proposed`, and then told.
  template <typename Proposed>
  void propose(std::int64_t place, std::int64_t first, std::int64_t count, Proposed&& proposed) {
    for (std::int64_t target = first; target < first + count; ++target) {
      if (order_ == TransformOrder::file) {
        proposed(target, of_file(target));
        continue;
      }
      const Reader reader = stream_of(place);
      const std::span<const mlg_bias> proposal = reader.stream->propose(reader.place);
      proposed(target, proposal);
      if (witness_) witness_->told(reader.number, reader.place, token(target), proposal);
      reader.stream->observe(reader.place, token(target));
    }
  }

 private:
  struct Hint {
    std::int64_t target = 0;
    mlg_bias bias{};
  };
  struct Reader {
    Transform::Stream* stream = nullptr;
    std::int64_t place = 0, number = 0;  // number: for the witness
  };
  std::int32_t token(std::int64_t position) const { return tokens_[static_cast<std::size_t>(position)]; }
  Reader stream_of(std::int64_t place) const;
  std::unique_ptr<Transform::Stream> open(std::int64_t number, std::int64_t tokens,
                                          std::int64_t places) const;
  std::span<const mlg_bias> of_file(std::int64_t target);
  void read_file();

  const Transform& transform_;
  TransformOrder order_;
  std::span<const std::uint16_t> tokens_;
  const DocumentPlan& plan_;
  std::int64_t vocabulary_, places_;
  TransformWitness* witness_;
  std::map<std::int64_t, std::unique_ptr<Transform::Stream>> lanes_;  // queue order
  Reader lane_;                                                       // of them
  std::vector<std::unique_ptr<Transform::Stream>> documents_;         // document order, by place
  std::vector<Hint> file_;                                            // file order, by target
  std::vector<mlg_bias> found_;                                       // of_file's result
};

}  // namespace mulligan
