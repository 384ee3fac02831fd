// Integers, bits, predicates and moves.
#include <bit>
#include <type_traits>

#include "tests/ptx/lanes.h"

namespace mulligan::ptx {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

// Shifts by the width or more give zeros, or copies of the sign.
template <typename T>
T shift_left(T value, u32 by) {
  return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(value << by);
}
template <typename T>
T shift_right(T value, u32 by) {
  constexpr u32 width = 8 * sizeof(T);
  if (by >= width) return std::is_signed_v<T> && value < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(value >> by);
}
// What a division by zero gives is not said; the emulated device has no such value either.
template <typename T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  return b == static_cast<T>(-1) && std::is_signed_v<T>
             ? static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a))
             : static_cast<T>(a / b);
}
template <typename T>
T remainder(T a, T b) {
  if (b == 0) return a;
  return b == static_cast<T>(-1) && std::is_signed_v<T> ? T{0} : static_cast<T>(a % b);
}

template <typename T>
void add_arithmetic(Forms& forms, const std::string& type) {
  using U = Unsigned<T>;
  add(forms, "add." + type,
      [](T a, T b) { return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b))); });
  add(forms, "sub." + type,
      [](T a, T b) { return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b))); });
  // In 64 bits, so that 16-bit factors are not promoted to int, which may overflow.
  add(forms, "mul.lo." + type,
      [](T a, T b) { return static_cast<T>(u64{static_cast<U>(a)} * u64{static_cast<U>(b)}); });
  add(forms, "mad.lo." + type, [](T a, T b, T c) {
    return static_cast<T>(u64{static_cast<U>(a)} * u64{static_cast<U>(b)} + u64{static_cast<U>(c)});
  });
  add(forms, "div." + type, [](T a, T b) { return quotient(a, b); });
  add(forms, "rem." + type, [](T a, T b) { return remainder(a, b); });
  add(forms, "min." + type, [](T a, T b) { return a < b ? a : b; });
  add(forms, "max." + type, [](T a, T b) { return a < b ? b : a; });
  add(forms, "shr." + type, [](T a, u32 by) { return shift_right(a, by); });
  add(forms, "setp.eq." + type, [](T a, T b) { return a == b; });
  add(forms, "setp.ne." + type, [](T a, T b) { return a != b; });
  add(forms, "setp.lt." + type, [](T a, T b) { return a < b; });
  add(forms, "setp.le." + type, [](T a, T b) { return a <= b; });
  add(forms, "setp.gt." + type, [](T a, T b) { return a > b; });
  add(forms, "setp.ge." + type, [](T a, T b) { return a >= b; });
  if constexpr (std::is_signed_v<T>) {
    add(forms, "neg." + type, [](T a) { return static_cast<T>(U{0} - static_cast<U>(a)); });
    add(forms, "abs." + type, [](T a) { return a < 0 ? static_cast<T>(U{0} - static_cast<U>(a)) : a; });
  }
}

template <typename T>
void add_bits(Forms& forms, const std::string& width) {
  add(forms, "and.b" + width, [](T a, T b) { return static_cast<T>(a & b); });
  add(forms, "or.b" + width, [](T a, T b) { return static_cast<T>(a | b); });
  add(forms, "xor.b" + width, [](T a, T b) { return static_cast<T>(a ^ b); });
  add(forms, "not.b" + width, [](T a) { return static_cast<T>(~a); });
  add(forms, "shl.b" + width, [](T a, u32 by) { return shift_left(a, by); });
  add(forms, "shr.b" + width, [](T a, u32 by) { return shift_right(a, by); });
  add(forms, "setp.eq.b" + width, [](T a, T b) { return a == b; });
  add(forms, "setp.ne.b" + width, [](T a, T b) { return a != b; });
  for (const char* type : {".b", ".u", ".s", ".f"}) {
    add(forms, "mov" + std::string(type) + width, [](T a) { return a; });
    add(forms, "selp" + std::string(type) + width, [](T a, T b, bool first) { return first ? a : b; });
  }
}

}  // namespace

void add_integer_forms(Forms& forms) {
  each<s16, u16, s32, u32, s64, u64>([&]<typename T>() { add_arithmetic<T>(forms, type_name<T>()); });
  add_bits<u16>(forms, "16");
  add_bits<u32>(forms, "32");
  add_bits<u64>(forms, "64");

  add(forms, "mul.wide.s32", [](s32 a, s32 b) { return s64{a} * s64{b}; });
  add(forms, "mul.wide.u32", [](u32 a, u32 b) { return u64{a} * u64{b}; });
  add(forms, "mul.wide.u16", [](u16 a, u16 b) { return u32{a} * u32{b}; });
  add(forms, "mul.wide.s16", [](s16 a, s16 b) { return s32{a} * s32{b}; });
  add(forms, "mad.wide.s32", [](s32 a, s32 b, s64 c) {
    return static_cast<s64>(static_cast<u64>(s64{a} * s64{b}) + static_cast<u64>(c));
  });
  add(forms, "mad.wide.u32", [](u32 a, u32 b, u64 c) { return u64{a} * u64{b} + c; });
  add(forms, "mul.hi.s32", [](s32 a, s32 b) { return static_cast<s32>(s64{a} * s64{b} >> 32); });
  add(forms, "mul.hi.u32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} * u64{b} >> 32); });
  add(forms, "mul.hi.u64",
      [](u64 a, u64 b) { return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64); });
  add(forms, "mul.hi.s64", [](s64 a, s64 b) { return static_cast<s64>(static_cast<__int128>(a) * b >> 64); });

  add(forms, "popc.b32", [](u32 a) { return static_cast<u32>(std::popcount(a)); });
  add(forms, "clz.b32", [](u32 a) { return static_cast<u32>(std::countl_zero(a)); });
  add(forms, "clz.b64", [](u64 a) { return static_cast<u32>(std::countl_zero(a)); });
  add(forms, "shf.l.wrap.b32", [](u32 low, u32 high, u32 by) {
    return static_cast<u32>((u64{high} << 32 | low) >> (32 - (by & 31)));
  });
  add(forms, "shf.r.wrap.b32",
      [](u32 low, u32 high, u32 by) { return static_cast<u32>((u64{high} << 32 | low) >> (by & 31)); });
  // `length` low bits of a, put into b at bit `from`.
  add(forms, "bfi.b32", [](u32 a, u32 b, u32 from, u32 length) {
    from &= 255;
    length &= 255;
    const u64 field = shift_left(length >= 32 ? u64{0xFFFFFFFF} : (u64{1} << length) - 1, from);
    return static_cast<u32>((b & ~field) | (shift_left(u64{a}, from) & field));
  });
  add(forms, "bfi.b64", [](u64 a, u64 b, u32 from, u32 length) {
    from &= 255;
    length &= 255;
    const u64 field = shift_left(length >= 64 ? ~u64{0} : (u64{1} << length) - 1, from);
    return (b & ~field) | (shift_left(a, from) & field);
  });
  // Four bytes of eight, each chosen by a digit of the selector; its highest bit asks for copies of the byte's sign.
  add(forms, "prmt.b32", [](u32 a, u32 b, u32 selector) {
    const u64 bytes = u64{b} << 32 | a;
    u32 result = 0;
    for (int i = 0; i < 4; ++i) {
      const u32 digit = selector >> 4 * i & 15;
      u32 byte = static_cast<u32>(bytes >> 8 * (digit & 7)) & 255;
      if (digit & 8) byte = byte & 128 ? 255 : 0;
      result |= byte << 8 * i;
    }
    return result;
  });
  add(forms, "lop3.b32", [](u32 a, u32 b, u32 c, u32 table) {
    u32 result = 0;
    for (u32 row = 0; row < 8; ++row) {
      if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    }
    return result;
  });

  add(forms, "and.pred", [](bool a, bool b) { return a && b; });
  add(forms, "or.pred", [](bool a, bool b) { return a || b; });
  add(forms, "xor.pred", [](bool a, bool b) { return a != b; });
  add(forms, "not.pred", [](bool a) { return !a; });
  add(forms, "mov.pred", [](bool a) { return a; });

  // The instructions that use the windows of global and shared memory know them, so an address is the same in its window and in the
  // generic one.
  for (const char* name : {"cvta.to.global.u64", "cvta.global.u64", "cvta.to.shared.u64"})
    add(forms, name, [](u64 a) { return a; });

  // mov.b32 %r, {%rs, %rs}
  add(forms, "mov.b32 pack 2", [](u16 a, u16 b) { return u32{b} << 16 | a; });
  add(forms, "mov.b64 pack 2", [](u32 a, u32 b) { return u64{b} << 32 | a; });
  add(forms, "mov.b64 pack 4",
      [](u16 a, u16 b, u16 c, u16 d) { return u64{d} << 48 | u64{c} << 32 | u64{b} << 16 | a; });
  add(forms, "mov.b32 part 0 of 2", [](u32 a) { return static_cast<u16>(a); });
  add(forms, "mov.b32 part 1 of 2", [](u32 a) { return static_cast<u16>(a >> 16); });
  add(forms, "mov.b64 part 0 of 2", [](u64 a) { return static_cast<u32>(a); });
  add(forms, "mov.b64 part 1 of 2", [](u64 a) { return static_cast<u32>(a >> 32); });
}

}  // namespace mulligan::ptx
