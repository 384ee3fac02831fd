#include "framework/data/original_documents.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/parallel.h"
#include "framework/data/documents.h"
#include "framework/data/text_transform.h"
#include "framework/data/transformed_encoding.h"

namespace mulligan {
namespace {

using TokenIds = std::span<const std::uint16_t>;

// A document's tokens with its BOS and without that of the next.
TokenIds tokens_of(TokenIds stream, const Document& document, int bos_id) {
  TokenIds ids =
      stream.subspan(static_cast<std::size_t>(document.start), static_cast<std::size_t>(document.length));
  if (ids.size() > 1 && ids.back() == bos_id) ids = ids.first(ids.size() - 1);
  return ids;
}

// All of the stream: what stands before the first BOS is scored like a document.
std::vector<Document> all_documents(TokenIds stream, int bos_id) {
  std::vector<Document> documents = find_documents(stream, bos_id);
  const std::int64_t first =
      documents.empty() ? static_cast<std::int64_t>(stream.size()) : documents.front().start;
  if (first > 0) documents.insert(documents.begin(), Document{0, first});
  return documents;
}

std::uint64_t decoded_bytes(const Tokenizer& tokenizer, const TextTransform* transform, TokenIds ids) {
  const std::string spelled = tokenizer.document_text(ids);
  if (transform == nullptr) return spelled.size();
  try {
    return transform->undo(spelled).size();
  } catch (const Error&) {  // normalisation has changed what a symbol stands in front of
    return spelled.size();
  }
}

std::uint64_t counted(const ByteCounter& bytes, TokenIds stream, const Document& document) {
  std::uint64_t sum = 0;
  for (std::int64_t at = std::max<std::int64_t>(document.start, 1); at < document.start + document.length;
       ++at)
    sum += static_cast<std::uint64_t>(bytes.bytes_at(stream, static_cast<std::size_t>(at)));
  return sum;
}

bool beyond_bound(std::uint64_t bytes, std::uint64_t decoded) {
  return static_cast<double>(bytes) > kDocumentByteFactor * static_cast<double>(decoded) + kSpareBytes;
}

Error too_many(std::size_t document, std::uint64_t bytes, std::uint64_t decoded) {
  return data_error(
      "the bytes counted in validation document {} are {}, but its tokens decode to {}, and more than {:g} "
      "times that and {} are not believed; name byte side tables (data.validation_bytes) and documents "
      "(data.validation_documents) of these shards",
      document + 1, bytes, decoded, kDocumentByteFactor, kSpareBytes);
}

// Makes the counts of a document add up to `sum`: more goes to the last token, less is taken from the last ones.
void fit_sum(std::span<std::uint16_t> counts, std::uint64_t sum) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint16_t>::max();
  std::uint64_t now = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  for (auto count = counts.rbegin(); count != counts.rend() && now != sum; ++count) {
    const std::uint64_t others = now - *count;
    *count = static_cast<std::uint16_t>(sum > others ? std::min(sum - others, most) : 0);
    now = others + *count;
  }
}

}  // namespace

void require_near_decoded(const SideTable& table, TokenIds tokens, int bos_id, const Tokenizer& tokenizer) {
  const std::vector<Document> documents = all_documents(tokens, bos_id);
  const TextTransform* transform = transform_of(tokenizer);
  std::vector<std::uint64_t> bytes(documents.size()), decoded(documents.size());
  parallel_for(documents.size(), 0, [&](std::size_t i) {
    bytes[i] = counted(table, tokens, documents[i]);
    decoded[i] = decoded_bytes(tokenizer, transform, tokens_of(tokens, documents[i], bos_id));
  });
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (beyond_bound(bytes[i], decoded[i])) throw too_many(i, bytes[i], decoded[i]);
  }
  const auto sum = [](const auto& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  };
  const std::uint64_t all = sum(bytes), text = sum(decoded);
  if (static_cast<double>(all) <= kSetByteFactor * static_cast<double>(text) + kSpareBytes) return;
  throw data_error(
      "the byte side tables count {} bytes in the validation set, but its tokens decode to {}, and more than "
      "{:g} times that is not believed without the original documents; name these with "
      "data.validation_documents, or the tables of these shards with data.validation_bytes",
      all, text, kSetByteFactor);
}

SideTable encode_originals(TokenIds tokens, int bos_id, const Tokenizer& tokenizer, const ByteCounter& bytes,
                           const TextSource& originals) {
  const std::vector<Document> documents = find_documents(tokens, bos_id);
  if (originals.size() < documents.size()) {
    throw data_error(
        "data.validation_documents holds {} documents, but the validation shards {}; give the originals of "
        "all of them, in their order",
        originals.size(), documents.size());
  }
  std::vector<std::uint16_t> counts(tokens.size());
  for (std::size_t at = 1; at < tokens.size(); ++at)
    counts[at] = static_cast<std::uint16_t>(bytes.bytes_at(tokens, at));
  const TextTransform* transform = transform_of(tokenizer);
  std::vector<std::uint8_t> other(documents.size());
  parallel_for(documents.size(), 0, [&](std::size_t i) {
    const JsonLine line = originals.read(i);
    if (!line.problem.empty()) throw data_error("{}: {}", originals.name(i), line.problem);
    const DocumentEncoding encoding = encode_document(tokenizer, transform, line.text);
    const TokenIds ids = tokens_of(tokens, documents[i], bos_id).subspan(1);
    const std::span<std::uint16_t> own =
        std::span(counts).subspan(static_cast<std::size_t>(documents[i].start) + 1, ids.size());
    const bool cut = i + 1 == documents.size() && ids.size() < encoding.ids.size();
    if (std::ranges::equal(ids, std::span(encoding.ids).first(cut ? ids.size() : encoding.ids.size()))) {
      const TextOrigin origin({}, line.source_bytes);
      const std::vector<std::uint16_t> found = original_counts(encoding, line.text.size(), origin);
      std::ranges::copy(std::span(found).first(own.size()), own.begin());
    } else {
      other[i] = 1;
      fit_sum(own, line.source_bytes);
    }
  });
  const auto first = static_cast<std::size_t>(std::ranges::find(other, 1) - other.begin());
  const auto count = static_cast<std::size_t>(std::ranges::count(other, 1));
  if (count * 100 > documents.size()) {
    throw data_error(
        "the original of validation document {}, {}, is not what its tokens say, and so it is with {} of {} "
        "documents; bring together shards, tokenizer and documents of one preparation",
        first + 1, originals.name(first), count, documents.size());
  }
  SideTable table(std::move(counts));
  for (std::size_t i = first; i < documents.size(); ++i) {
    if (other[i] == 0) continue;
    const std::uint64_t sum = counted(table, tokens, documents[i]);
    const std::uint64_t decoded =
        decoded_bytes(tokenizer, transform, tokens_of(tokens, documents[i], bos_id));
    if (beyond_bound(sum, decoded)) throw too_many(i, sum, decoded);
  }
  return table;
}

}  // namespace mulligan
