"""Ways to damage a file: each takes a random.Random and bytes, and returns other bytes and a few words."""
import json
import re

ODD_NUMBERS = (b"0", b"-1", b"1", b"2", b"65536", b"4294967295", b"4294967296", b"9223372036854775807", b"-9223372036854775808",
               b"18446744073709551616", b"1e308", b"1e999", b"-0.0", b"1e-320", b"0.5", b"1" * 60, b"null", b"true", b'"7"', b"[]",
               b"{}", b"nan", b"inf", b"0x10", b"''")
ODD_VALUES = (None, True, -1, 0, 1, 2**31, 2**53, 2**63, 2**64, 1e308, -0.5, "", "x" * 5000, "../../../etc/passwd", "\u001b[31m",
              "\x00", [], {}, [[[[[[[[]]]]]]]], {"a": {"b": {}}}, [0] * 3000)
ODD_BYTES = (b"\0", b"\xff", b"\x1b[2J", b"\r\n", b"\xc3\x28", b"\xef\xbb\xbf", b"{", b"]", b"\"", b"[" * 5000, b"\n" * 2000)


def flip_bit(draw, data):
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1:], f"a bit of byte {at} flipped"


def set_byte(draw, data):
    at, value = draw.randrange(len(data)), draw.choice((0, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    return data[:at] + bytes([value]) + data[at + 1:], f"byte {at} set to {value}"


def head_byte(draw, data):
    return set_byte(draw, data[:64])[0] + data[64:], "a byte of the first 64 set"


def truncate(draw, data):
    at = draw.choice((draw.randrange(len(data)), draw.randrange(min(len(data), 64)), len(data) - 1))
    return data[:at], f"cut to {at} of {len(data)} bytes"


def insert(draw, data):
    at, what = draw.randrange(len(data) + 1), draw.choice((*ODD_BYTES, draw.randbytes(draw.randint(1, 64))))
    return data[:at] + what + data[at:], f"{len(what)} bytes inserted at {at}"


def delete(draw, data):
    at, length = draw.randrange(len(data)), draw.choice((1, 2, 4, 8, draw.randint(1, 4096)))
    return data[:at] + data[at + length:], f"{length} bytes deleted at {at}"


def splice(draw, data):
    source, at, length = draw.randrange(len(data)), draw.randrange(len(data)), draw.choice((1, 4, 16, 256, 4096))
    piece = data[source:source + length]
    return data[:at] + piece + data[at + len(piece):], f"{len(piece)} bytes of {source} over those at {at}"


def double(draw, data):
    at, length = draw.randrange(len(data)), draw.choice((1, 16, 256, 4096))
    return data[:at] + data[at:at + length] * draw.randint(2, 4) + data[at + length:], f"{length} bytes at {at} repeated"


def fill(draw, data):
    at, length, value = draw.randrange(len(data)), draw.choice((4, 8, 64, 4096)), draw.choice((b"\0", b"\xff", b" "))
    end = min(len(data), at + length)
    return data[:at] + value * (end - at) + data[end:], f"bytes {at} to {end} set to {value!r}"


def append(draw, data):
    what = draw.choice((b"\0", b"\n", b"garbage\n", draw.randbytes(100), data[-200:], data))
    return data + what, f"{len(what)} bytes appended"


def empty(draw, data):
    return b"", "empty"


def edit_number(draw, data):
    """Another number in a text, or in the text that a binary file begins with."""
    numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", data[:200_000]))
    if not numbers:
        return flip_bit(draw, data)
    found = draw.choice(numbers)
    if draw.random() < 0.4 and len(found.group()) < 18 and b"e" not in found.group():
        other = str(int(float(found.group())) + draw.choice((-1, 1, 2, 10))).encode()
    else:
        other = draw.choice(ODD_NUMBERS)
    return data[:found.start()] + other + data[found.end():], f"{found.group().decode()} made {other[:20].decode()}"


def swap_lines(draw, data):
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return splice(draw, data)
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.choice(("swapped", "repeated", "left out"))
    if kind == "swapped":
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == "repeated":
        lines.insert(b, lines[a])
    else:
        del lines[a]
    return b"".join(lines), f"line {a + 1} {kind}"


def edit_json(draw, data):
    """One value of a JSON document, or of one line of JSON lines, replaced, left out or moved."""
    try:
        lines, chosen = None, None
        document = json.loads(data)
    except ValueError:
        lines = data.splitlines()
        chosen = draw.randrange(len(lines)) if lines else 0
        try:
            document = json.loads(lines[chosen])
        except (ValueError, IndexError):
            return edit_number(draw, data)
    places = []
    collect(document, places)
    if not places:
        return flip_bit(draw, data)
    holder, key = draw.choice(places)
    kind, value = draw.choice(("left out", "replaced", "replaced", "replaced", "moved")), draw.choice(ODD_VALUES)
    if kind == "left out":
        del holder[key]
    elif kind == "moved":
        other, name = draw.choice(places)
        holder[key] = json.loads(json.dumps(other[name]))
    else:
        holder[key] = value
    text = json.dumps(document).encode()
    words = f"JSON value '{key}' {kind}" + (f": {str(value)[:20]!r}" if kind == "replaced" else "")
    if lines is None:
        return text, words
    lines[chosen] = text
    return b"\n".join(lines) + b"\n", f"line {chosen + 1}: {words}"


def collect(node, places):
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        places.append((node, key))
        collect(value, places)


BINARY = {flip_bit: 6, set_byte: 3, head_byte: 3, truncate: 3, insert: 2, delete: 2, splice: 3, double: 1, fill: 2, append: 2,
          empty: 0.3}
TEXT = {**BINARY, edit_number: 8, swap_lines: 3, head_byte: 0}
JSON = {**TEXT, edit_json: 10}
HEADED = {**BINARY, edit_number: 6}  # a header of JSON, then binary


def damaged(draw, data, ways):
    """(bytes that differ from `data`, words)."""
    while True:
        other, words = draw.choices(list(ways), weights=ways.values())[0](draw, data)
        if draw.random() < 0.1:
            other, more = draw.choices(list(ways), weights=ways.values())[0](draw, other or b"\0")
            words += ", " + more
        if other != data:
            return other, words
