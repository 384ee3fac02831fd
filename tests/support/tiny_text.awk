# Text to train tests on, which no change of the project alters: 160 documents, half a megabyte, the same bytes everywhere.
#
#   LC_ALL=C awk -v folder=FOLDER -f tests/support/tiny_text.awk        writes FOLDER/000.txt to FOLDER/159.txt
#
# It stands in for the pages and sources of a project: prose, code and tables, of 400 to 20,000 bytes; words by a power law, of
# which every document has some of its own that come again and again; some UTF-8 beyond ASCII. All is drawn by Lehmer's generator
# (16807, 2^31 - 1), exact in awk's double precision; no function of a mathematical library decides anything.

function draw(n) { state = (state * 16807) % 2147483647; return state % n }
# Small numbers far more often than large ones.
function power_law(n,  u) { u = draw(65536) / 65536; return int(n * u * u * u) }
function one_of(list, count) { return list[1 + draw(count)] }

function made_word(  word, syllables) {
  for (syllables = 1 + draw(3) + (draw(4) == 0); syllables > 0; --syllables)
    word = word one_of(onset, onsets) one_of(vowel, vowels) (draw(3) ? "" : one_of(coda, codas))
  return word
}
function capital(word) { return toupper(substr(word, 1, 1)) substr(word, 2) }

function noun(  kind) {
  kind = draw(20)
  if (kind < 6) return own[draw(own_words)]
  if (kind == 6) return draw(3) ? word[power_law(words)] : one_of(foreign, foreigns)
  if (kind == 7) return draw(2) ? draw(1000) : sprintf("%d.%02d", draw(40), draw(100))
  return word[power_law(words)]
}
function phrase() { return one_of(article, articles) " " (draw(3) ? "" : word[power_law(words)] " ") noun() }
function clause(  text) {
  text = phrase() " " one_of(verb, verbs) " " phrase()
  while (draw(3) == 0) text = text " " one_of(preposition, prepositions) " " phrase()
  return text
}
function sentence(  text, kind) {
  text = clause()
  kind = draw(8)
  if (kind == 0) text = text ", " one_of(joining, joinings) " " clause()
  if (kind == 1) text = text " (" noun() ")"
  if (kind == 2) text = text ": `" name() "`"
  if (kind == 3) text = text "; " clause()
  return capital(text) (draw(12) ? "." : draw(2) ? "?" : " \342\200\223 " clause() ".")
}
# Lines of a paragraph are broken after about 110 bytes.
function paragraph(  text, line, sentences) {
  for (sentences = 1 + draw(6); sentences > 0; --sentences) {
    line = line (line == "" ? "" : " ") sentence()
    if (length(line) > 110) { text = text line "\n"; line = "" }
  }
  return text (line == "" ? "" : line "\n") "\n"
}

function name() { return own[draw(own_words)] (draw(2) ? "_" word[power_law(words)] : "") }
function value() { return draw(3) ? name() : draw(4) ? draw(256) : sprintf("0x%02x", draw(256)) }
function statement(  kind) {
  kind = draw(9)
  if (kind < 3) return name() " = " value() one_of(operator, operators) value() ";"
  if (kind == 3) return "return " name() "(" value() ", " value() ");"
  if (kind == 4) return "// " sentence()
  if (kind == 5) return "if (" name() " < " value() ") continue;"
  if (kind == 6) return "const auto " name() " = std::move(" name() ");"
  if (kind == 7) return name() ".push_back(\"" noun() "\");"
  return "assert(" name() " == " value() ");"
}
function code(  text, lines, indent) {
  text = "// " sentence() "\n" one_of(type, types) " " name() "(" one_of(type, types) " " name() ", " one_of(type, types) " " name() ") {\n"
  indent = "  "
  for (lines = 3 + draw(12); lines > 0; --lines) {
    if (draw(6) == 0 && indent == "  ") {
      text = text indent "for (int i = 0; i < " value() "; ++i) {\n"
      indent = "    "
    }
    text = text indent statement() "\n"
    if (draw(4) == 0 && indent == "    ") { indent = "  "; text = text indent "}\n" }
  }
  if (indent == "    ") text = text "  }\n"
  return text "}\n\n"
}
function table(  text, rows) {
  text = "| " noun() " | " noun() " | n |\n|---|---|---|\n"
  for (rows = 2 + draw(8); rows > 0; --rows)
    text = text "| " name() " | " sprintf("%d.%03d \302\261 0.%03d", draw(10), draw(1000), draw(1000)) " | " draw(20) " |\n"
  return text "\n"
}
function piece(kind,  what) {
  what = draw(10)
  if (what == 0) return table()
  if (what == 1) return "## " capital(noun()) " " one_of(preposition, prepositions) " " noun() "\n\n"
  return (kind == 0) == (what < 8) ? code() : paragraph()
}

# Bytes of a document, at least: between these marks evenly.
function size(  mark) {
  mark = draw(marks - 1) + 1
  return size_mark[mark] + draw(size_mark[mark + 1] - size_mark[mark])
}

BEGIN {
  state = 42
  onsets = split("b c d f g h k l m n p r s t v w br cl dr fr gr pl pr sh sp st th tr", onset, " ")
  vowels = split("a e i o u a e i o ai ea ou", vowel, " ")
  codas = split("n r s t l m nd st ck ng", coda, " ")
  articles = split("the the the a one each every no this that its their", article, " ")
  verbs = split("is is has was holds makes reads takes gives becomes needs writes keeps counts refuses leaves", verb, " ")
  prepositions = split("of of in to for with by from on under between without", preposition, " ")
  joinings = split("and but which because so while where as", joining, " ")
  types = split("int void double bool auto std::string std::vector<int>", type, " ")
  operators = split("+,-,*,/,%,==,&&,<<", operator, ",")
  for (i = 1; i <= operators; ++i) operator[i] = " " operator[i] " "
  # Latin, Greek, Cyrillic, Japanese, an emoji, an arrow: two to four bytes a character.
  foreigns = split("na\303\257ve M\303\274ller caf\303\251 \316\251 \316\261\316\262\316\263 \320\274\320\270\321\200 \346\227\245\346\234\254\350\252\236 \360\237\230\200 \342\206\222 \342\202\254", foreign, " ")
  marks = split("400 650 1000 1500 2000 2500 3100 4000 5500 7500 16000", size_mark, " ")
  words = 1500
  for (i = 0; i < words; ++i) word[i] = made_word()
  own_words = 12
  for (document = 0; document < 160; ++document) {
    for (i = 0; i < own_words; ++i) own[i] = draw(3) ? word[draw(words)] : made_word()
    file = sprintf("%s/%03d.txt", folder, document)
    kind = draw(2)
    text = kind == 0 ? "// " sentence() "\n" : "# " capital(noun()) "\n\n"
    for (wanted = size(); length(text) < wanted; ) text = text piece(kind)
    printf "%s", text >file
    close(file)
  }
}
