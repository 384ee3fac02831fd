// The causality probe of score transforms.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/plugin/transform.h"

namespace mulligan {

// The documents of one batch: tokens[document][position]. A document's first token is given and not scored.
using ProbeText = std::vector<std::vector<std::int32_t>>;
// The proposals for each scored token, in the order of scoring.
using Proposals = std::vector<std::vector<mlg_bias>>;

bool same_biases(std::span<const mlg_bias> a, std::span<const mlg_bias> b);

// Proposals for `text` in the queue order of test-time training: in chunks of `chunk_tokens`, and within a chunk document by document, in
// a stream of its own.
Proposals queue_proposals(const Transform& transform, const ProbeText& text, std::int64_t vocabulary,
                          std::int64_t chunk_tokens);

// Makes the proposals for a text in chunks: queue_proposals, except in tests.
using ProposalSource = std::function<Proposals(const ProbeText& text, std::int64_t chunk_tokens)>;

// Requests proposals for a text that repeats itself, for the same text again, and for texts that differ from it from some token on, in the
// order of scoring. Returns a sentence about the fault, or empty. Faults are proposals that know their own or a later token, or remember an
// earlier stream.
std::string transform_problem(const ProposalSource& proposals, std::int64_t vocabulary);
std::string transform_problem(const Transform& transform, std::int64_t vocabulary);

}  // namespace mulligan
