// The record script's artifact: what is written reads back, and nothing but tables of tensors is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mulligan/half.hpp>

#include "framework/artifact/byte_layout.h"
#include "framework/artifact/compression.h"
#include "framework/core/philox.h"
#include "tests/support/sentence.h"
#include "tools/record_script/ptz.h"
#include "tools/record_script/torch_file.h"
#include "tools/record_script/zip_file.h"

namespace mulligan::record_script::record_script_test {
namespace {

std::vector<std::int8_t> some_codes(std::int64_t count, const std::string& purpose) {
  const PhiloxStream random(3, purpose);
  std::vector<std::int8_t> codes;
  for (std::int64_t i = 0; i < count; ++i)
    codes.push_back(static_cast<std::int8_t>(random.bits(static_cast<std::uint64_t>(i)) % 15) - 7);
  return codes;
}

std::vector<std::uint16_t> some_scales(std::int64_t count) {
  std::vector<std::uint16_t> scales;
  for (std::int64_t i = 0; i < count; ++i)
    scales.push_back(sdk::half_bits(0.01 + 0.001 * static_cast<double>(i)));
  return scales;
}

QuantizedTensor matrix(const std::string& name, std::int64_t rows, std::int64_t columns, int bits) {
  return {
      name, {rows, columns}, TensorFormat::integer, bits, some_codes(rows * columns, name), some_scales(rows),
      {}};
}

// Every form that the scripts have, in the order of names.
std::vector<QuantizedTensor> sample_tensors() {
  const std::vector<float> plain = {1.5F, -2.0F, 0.25F, 0.0F};
  QuantizedTensor fine = matrix("blocks.0.attn.c_q.weight", 6, 8, 6);
  fine.protected_columns = {{0, 4}, 2, 8, some_codes(6 * 4, "fine"), some_scales(6)};
  fine.codes.resize(6 * 4);
  QuantizedTensor corrected = matrix("blocks.0.mlp.fc.weight", 6, 8, 6);
  corrected.correction = {
      2, 12, 4, some_codes(12, "left"), some_codes(16, "right"), some_scales(1), some_scales(4)};
  QuantizedTensor by_rows = matrix("blocks.0.mlp.proj.weight", 6, 8, 7);
  by_rows.correction = {
      2, 2, 8, some_codes(12, "left"), some_codes(16, "right"), some_scales(6), some_scales(2)};
  return {quantize_int8_rows("blocks.0.attn.attn_gate_w", {2, 2}, plain),
          fine,
          corrected,
          by_rows,
          store_as(TensorFormat::fp16, "half", {4}, plain),
          store_as(TensorFormat::bf16, "lambdas", {1, 2, 2}, plain),
          store_as(TensorFormat::fp32, "scalar", {}, std::span(plain).first(1)),
          matrix("tok_emb.weight", 5, 3, 7)};
}

TEST(RecordScriptFile, WhatIsWrittenReadsBack) {
  const std::vector<QuantizedTensor> tensors = sample_tensors();
  EXPECT_EQ(parse_ptz(serialize_ptz(tensors), "x.ptz"), tensors);
}

TEST(RecordScriptFile, TheScriptsOfBothPullRequestsAreRead) {
  const auto half = [](std::vector<std::int64_t> shape, std::size_t count) {
    return TorchTensor{"Half", std::move(shape), std::string(2 * count, '\x20')};
  };
  const TorchTensor codes{"Char", {2, 2}, std::string("\x01\xFF\x02\xFE")};
  const TorchTables tables = {
      {"w",
       {{"gate.gq", codes},
        {"gate.gs", half({2}, 2)},
        {"old.q", codes},
        {"old.scale", half({2}, 2)},
        {"s", half({}, 1)}}},
      {"m", {{"gate", "gate_int8_row"}, {"old", "int8_per_row"}, {"s", "passthrough (float16)"}}}};
  const std::string file = write_torch_file(tables);
  // The earlier script shuffles its bytes before it compresses them.
  for (const std::string& raw : {file, shuffle_bytes(file, 2)}) {
    const auto tensors = parse_ptz(compress(Compression::brotli, raw), "x.ptz");
    ASSERT_EQ(tensors.size(), 3U);
    EXPECT_EQ(tensors[0].codes, (std::vector<std::int8_t>{1, -1, 2, -2}));
    EXPECT_EQ(tensors[0].format, TensorFormat::int8_row);
    EXPECT_EQ(tensors[1].codes, tensors[0].codes);
    EXPECT_TRUE(tensors[2].shape.empty());
  }
}

// A file with this program and a storage of six numbers.
std::string file_of(const std::string& program) {
  return zip_archive({{"a/data.pkl", program}, {"a/data/0", std::string_view("abcdef")}});
}

// torch.save's instructions for {"w": {"t": tensor}}, with what it remembers and recalls.
std::string program_of(const std::string& shape, const std::string& strides,
                       const std::string& offset = "K" + std::string(1, '\0')) {
  using namespace std::string_literals;
  return "\x80\x02}q\0X\1\0\0\0wq\1}q\2X\1\0\0\0tq\3"s + "ctorch._utils\n_rebuild_tensor_v2\nq\4(("s +
         "X\7\0\0\0storageq\5ctorch\nCharStorage\nq\6X\1\0\0\0"s + "0q\7X\3\0\0\0cpuq\x08K\6tq\tQ"s + offset +
         shape + strides + "\x89"s + "ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rss."s;
}

std::string pair_of(int first, int second) {
  return std::string("K") + static_cast<char>(first) + "K" + static_cast<char>(second) + "\x86";
}

TEST(RecordScriptFile, ViewsOfAStorageAreTensors) {
  TorchTables tables = read_torch_file(file_of(program_of(pair_of(2, 3), pair_of(3, 1))));
  EXPECT_EQ(std::get<TorchTensor>(tables["w"]["t"]), (TorchTensor{"Char", {2, 3}, "abcdef"}));
  tables = read_torch_file(file_of(program_of(pair_of(3, 2), pair_of(1, 3))));
  EXPECT_EQ(std::get<TorchTensor>(tables["w"]["t"]).bytes, "adbecf");
}

std::string reason(const std::string& file) {
  try {
    read_torch_file(file);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  ADD_FAILURE() << "the bytes were accepted";
  return "";
}

TEST(RecordScriptFile, NothingThatAFileNamesIsExecuted) {
  using namespace std::string_literals;
  EXPECT_EQ(reason(file_of("\x80\x02"
                           "cposix\nsystem\n(X\4\0\0\0touchtR."s)),
            "names 'posix.system', which is no part of a tensor: nothing that a file names is executed");
  // Made without a name of its own: an instance, a class by stack, a class by code, a build of a state.
  for (const std::string& instruction :
       {"(iposix\nsystem\n"s, "\x93"s, "\x81"s, "\x82\1"s, "}b"s, "(o"s, "\x80\4"s}) {
    EXPECT_NE(reason(file_of("\x80\x02"s + instruction + ".")).find("which no table of tensors needs"),
              std::string::npos);
  }
  EXPECT_EQ(reason(file_of("\x80\4}."s)), "has a pickle of another protocol than 2");
  // The names that are understood, called in another way or with other things.
  for (const std::string& program : {"ctorch\nCharStorage\n)R."s, "ccollections\nOrderedDict\n(}tR."s,
                                     "ctorch._utils\n_rebuild_tensor_v2\n)R."s, "X\1\0\0\0xQ."s, "h\1."s,
                                     "."s, "u."s, "}(X\1\0\0\0xu."s, "K"s, "}X\377\377\377\377."s}) {
    EXPECT_EQ(reason(file_of("\x80\x02"s + program)), "has a damaged pickle") << program;
  }
  EXPECT_EQ(reason(file_of("\x80\x02K\1."s)), "holds something else than tables of tensors");
}

TEST(RecordScriptFile, TensorsStayInsideOfTheirStorage) {
  for (const auto& [shape, strides] : {std::pair{pair_of(2, 4), pair_of(4, 1)},
                                       {pair_of(2, 3), pair_of(4, 1)},
                                       {pair_of(4, 2), pair_of(1, 0)},
                                       {pair_of(2, 3), std::string(")")}}) {
    EXPECT_EQ(reason(file_of(program_of(shape, strides))), "has a tensor that reaches beyond its storage");
  }
  EXPECT_EQ(reason(file_of(program_of(pair_of(2, 3), pair_of(3, 1), "K\1"))),
            "has a tensor that reaches beyond its storage");
  EXPECT_EQ(reason(zip_archive({{"a/data.pkl", program_of(pair_of(2, 3), pair_of(3, 1))}})),
            "has no storage '0' of 6 numbers");
}

TEST(RecordScriptFile, DamagedAndTruncatedFilesAreRefused) {
  const std::string bytes = serialize_ptz(sample_tensors()), file = decompress_brotli_within(bytes, 1 << 20);
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_FALSE(reason(file.substr(0, length)).empty());
  for (std::size_t length = 0; length < bytes.size(); length += 7) {
    EXPECT_TRUE(sentence_of([&] {
                  parse_ptz(bytes.substr(0, length), "x.ptz");
                }).starts_with("'x.ptz', as an artifact"));
  }
  // Each byte changed: tensors or a reason; contents and list of members are covered by checksums or by each other.
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    try {
      read_torch_file(changed);
    } catch (const std::runtime_error&) {
    }
  }
}

TEST(RecordScriptFile, TablesThatDoNotFitAreRefused) {
  const TorchTables good =
      read_torch_file(decompress_brotli_within(serialize_ptz(sample_tensors()), 1 << 20));
  const auto refusal = [&](const std::function<void(TorchTables&)>& change) {
    TorchTables tables = good;
    change(tables);
    const std::string bytes = compress(Compression::brotli, write_torch_file(tables));
    return sentence_of([&] { parse_ptz(bytes, "x.ptz"); });
  };
  const std::string q = "blocks.0.attn.c_q.weight", fc = "blocks.0.mlp.fc.weight";
  const auto expect = [&](const std::string& words, const std::function<void(TorchTables&)>& change) {
    EXPECT_NE(refusal(change).find(words), std::string::npos) << refusal(change);
  };
  expect("two tables 'w' and 'm'", [](TorchTables& t) { t["more"]["x"] = "y"; });
  expect("has no Char tensor 'tok_emb.weight.q'", [](TorchTables& t) { t["w"].erase("tok_emb.weight.q"); });
  expect("has no plain tensor 'half'", [](TorchTables& t) { t["w"]["half"] = "text"; });
  expect("holds 'more', which no tensor of it is made of",
         [](TorchTables& t) { t["w"]["more"] = t["w"]["half"]; });
  expect("says 'gptq (int9)'", [](TorchTables& t) { t["m"]["tok_emb.weight"] = "gptq (int9)"; });
  expect("has a tensor where 'm'", [](TorchTables& t) { t["m"]["half"] = t["w"]["half"]; });
  expect("has scales of 'tok_emb.weight'",
         [](TorchTables& t) { t["w"]["tok_emb.weight.scale"] = t["w"]["half"]; });
  expect("has protected columns", [&](TorchTables& t) {
    t["w"][q + ".awqg_start"] = TorchTensor{"Short", {2}, std::string("\0\0\7\0", 4)};
  });
  expect("has factors of a correction", [&](TorchTables& t) {
    t["w"][fc + ".lqA_a"] = TorchTensor{"Char", {5, 2}, std::string(10, '\1')};
  });
  expect("has scales of a correction", [&](TorchTables& t) {
    t["w"][fc + ".lqBs_a"] = TorchTensor{"Half", {3}, std::string(6, '\1')};
  });
  EXPECT_NE(sentence_of([] { parse_ptz("PGRP....", "x.ptz"); }).find("lrzip"), std::string::npos);
  EXPECT_NE(sentence_of([] {
              parse_ptz(
                  "\xFD"
                  "7zXZ..",
                  "x.ptz");
            }).find("xz"),
            std::string::npos);
}

TEST(RecordScriptFile, ACorrectionThatTheScriptsHaveNoFormForIsRefused) {
  QuantizedTensor tensor = matrix("w", 6, 8, 6);
  tensor.correction = {
      2, 5, 8, some_codes(12, "left"), some_codes(16, "right"), some_scales(3), some_scales(2)};
  EXPECT_NE(sentence_of([&] { serialize_ptz({tensor}); }).find("no form for"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::record_script::record_script_test
