// What a score transform was told, where adapters of another library find it: at an address that both know.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace test {

struct SharedText {
  static constexpr std::uint64_t most = 1 << 20;
  std::uint64_t count;  // texts opened, documents begun and tokens told, as messages count them
  std::int32_t tokens[most];
};

inline SharedText& shared_text() {
  static SharedText* text = [] {
    void* wanted = reinterpret_cast<void*>(std::uintptr_t{0x600000000000});
    void* made = ::mmap(wanted, sizeof(SharedText), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return static_cast<SharedText*>(made == MAP_FAILED ? wanted : made);
  }();
  return *text;
}

inline void note_told(std::int32_t token) {
  SharedText& text = shared_text();
  if (text.count < SharedText::most) text.tokens[text.count++] = token;
}

// A number of the tokens that stand last in full messages of 32768 entries, 0 before the first of them.
inline float last_told_of_all_messages() {
  constexpr std::uint64_t message = 1 << 15, looked_at = 64;
  const SharedText& text = shared_text();
  const std::uint64_t end = text.count / message * message;
  std::uint64_t hash = 0;
  for (std::uint64_t i = end - (end > 0 ? looked_at : 0); i < end; ++i)
    hash = (hash ^ static_cast<std::uint32_t>(text.tokens[i])) * 0x100000001b3u;
  return static_cast<float>(hash >> 48) / 65536.0F;
}

}  // namespace test
