// Files here are built field by field from the GGUF specification (github.com/ggml-org/ggml, docs/gguf.md).
#include "gguf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>

#include "gguf_bytes.h"

namespace opledger::gguf {
namespace {

using test::Bytes;
using test::TempDir;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Value type ids of the specification.
constexpr uint32_t kU8 = 0, kI8 = 1, kU16 = 2, kI16 = 3, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kText = 8,
                   kArray = 9, kU64 = 10, kI64 = 11, kF64 = 12;
// ggml type ids.
constexpr uint32_t kTypeF32 = 0, kTypeQ8 = 8, kTypeIq4Ks = 144;

Bytes preamble(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
  Bytes b;
  b.raw("GGUF").u32(version).u64(tensors).u64(entries);
  return b;
}

void add_tensor(Bytes& b, std::string_view name, std::initializer_list<uint64_t> ne, uint32_t type,
                uint64_t offset) {
  b.text(name).u32(static_cast<uint32_t>(ne.size()));
  for (const uint64_t n : ne) b.u64(n);
  b.u32(type).u64(offset);
}

/// One key of every type and three tensors: 96 bytes of f32, 68 of q8_0 (2 rows), 8 + 2 * 136 of iq4_ks.
Bytes whole_file(uint32_t version = 3) {
  Bytes b = preamble(3, 14, version);
  b.text("general.architecture").u32(kText).text("llama");
  b.text("a.u8").u32(kU8).value<uint8_t>(200);
  b.text("a.i8").u32(kI8).value<int8_t>(-5);
  b.text("a.u16").u32(kU16).value<uint16_t>(60000);
  b.text("a.i16").u32(kI16).value<int16_t>(-300);
  b.text("a.u32").u32(kU32).u32(4000000000U);
  b.text("a.i32").u32(kI32).value<int32_t>(-7);
  b.text("a.f32").u32(kF32).value<float>(0.5F);
  b.text("a.bool").u32(kBool).value<uint8_t>(1);
  b.text("a.u64").u32(kU64).u64(18000000000000000000ULL);
  b.text("a.i64").u32(kI64).value<int64_t>(-9);
  b.text("a.f64").u32(kF64).value<double>(0.25);
  b.text("a.words").u32(kArray).u32(kText).u64(3).text("one").text("").text("three");
  b.text("a.sections").u32(kArray).u32(kI32).u64(4);
  for (const int32_t v : {11, 11, 10, 0}) b.value<int32_t>(v);
  add_tensor(b, "token_embd.weight", {8, 3}, kTypeF32, 0);
  add_tensor(b, "blk.0.attn_q.weight", {32, 2}, kTypeQ8, 96);
  add_tensor(b, "blk.0.ffn_up.weight", {256, 2}, kTypeIq4Ks, 192);
  b.pad_to(32).zeros(192 + 2 * (4 + 136));
  return b;
}

class GgufReader : public ::testing::Test {
 protected:
  Result<GgufFile> read(std::string_view bytes) {
    write_file(path(), bytes);
    return read_gguf(path());
  }
  std::string error_of(std::string_view bytes) {
    const Result<GgufFile> r = read(bytes);
    if (r) return "no error";
    EXPECT_EQ(r.error().kind, Error::Kind::kBadInput);
    EXPECT_THAT(r.error().message, Not(HasSubstr("\n")));
    return r.error().message;
  }
  [[nodiscard]] std::filesystem::path path() const { return dir_.file("m.gguf"); }
  TempDir dir_;
};

TEST_F(GgufReader, ReadsEveryScalarType) {
  const Result<GgufFile> r = read(whole_file().str());
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->version, 3U);
  EXPECT_EQ(r->text("general.architecture"), "llama");
  EXPECT_EQ(r->integer("a.u8"), 200);
  EXPECT_EQ(r->integer("a.i8"), -5);
  EXPECT_EQ(r->integer("a.u16"), 60000);
  EXPECT_EQ(r->integer("a.i16"), -300);
  EXPECT_EQ(r->integer("a.u32"), 4000000000);
  EXPECT_EQ(r->integer("a.i32"), -7);
  EXPECT_EQ(r->number("a.f32"), 0.5);
  EXPECT_EQ(std::get<bool>(r->metadata.at("a.bool")), true);
  EXPECT_EQ(std::get<uint64_t>(r->metadata.at("a.u64")), 18000000000000000000ULL);
  EXPECT_EQ(r->integer("a.i64"), -9);
  EXPECT_EQ(r->number("a.f64"), 0.25);
}

TEST_F(GgufReader, AnswersNothingForAKeyThatIsAbsentOrOfAnotherKind) {
  const Result<GgufFile> r = read(whole_file().str());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->integer("nope"), std::nullopt);
  EXPECT_EQ(r->integer("a.f32"), std::nullopt);
  EXPECT_EQ(r->integer("a.u64"), std::nullopt) << "does not fit a signed number";
  EXPECT_EQ(r->text("a.u8"), std::nullopt);
  EXPECT_EQ(r->number("general.architecture"), std::nullopt);
}

TEST_F(GgufReader, CountsTextsOfAnArrayAndKeepsSmallNumbers) {
  const Result<GgufFile> r = read(whole_file().str());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->arrays.at("a.words").count, 3U);
  EXPECT_EQ(r->arrays.at("a.words").type, "text");
  EXPECT_TRUE(r->arrays.at("a.words").values.empty());
  const std::vector<Scalar> expected{int64_t{11}, int64_t{11}, int64_t{10}, int64_t{0}};
  EXPECT_EQ(r->arrays.at("a.sections").values, expected);
}

TEST_F(GgufReader, GivesTensorsTheirPlaceInTheFile) {
  const Bytes b = whole_file();
  const Result<GgufFile> r = read(b.str());
  ASSERT_TRUE(r);
  ASSERT_EQ(r->tensors.size(), 3U);
  const uint64_t data = b.size() - (192 + 2 * 140);
  EXPECT_EQ(r->data_offset, data);
  EXPECT_EQ(r->tensors[0].type, "f32");
  EXPECT_EQ(r->tensors[0].bytes, 96U);
  EXPECT_EQ(r->tensors[1].type, "q8_0");
  EXPECT_EQ(r->tensors[1].offset, data + 96);
  EXPECT_EQ(r->tensors[1].bytes, 68U);
  // ik_llama.cpp's iq4_ks keeps 4 bytes of scale before the blocks of each row.
  EXPECT_EQ(r->tensors[2].type, "iq4_ks");
  EXPECT_EQ(r->tensors[2].bytes, 2U * (4 + 136));
  EXPECT_EQ(r->tensors[2].ne, (std::array<int64_t, 4>{256, 2, 1, 1}));
}

TEST_F(GgufReader, ReadsVersionTwo) {
  const Result<GgufFile> r = read(whole_file(2).str());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->version, 2U);
}

TEST_F(GgufReader, HonoursTheFilesAlignment) {
  Bytes b = preamble(1, 1);
  b.text("general.alignment").u32(kU32).u32(128);
  add_tensor(b, "t", {32}, kTypeF32, 0);
  b.pad_to(128).zeros(128);
  const Result<GgufFile> r = read(b.str());
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->alignment_bytes, 128U);
  EXPECT_EQ(r->data_offset, 128U);
}

TEST_F(GgufReader, RefusesWhatIsNoFile) {
  const auto message = [](const std::filesystem::path& p) { return read_gguf(p).error().message; };
  EXPECT_THAT(message(dir_.file("nope.gguf")), HasSubstr("does not exist"));
  EXPECT_THAT(message(dir_.path()), HasSubstr("is a directory"));
  ASSERT_EQ(::mkfifo(dir_.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message(dir_.file("pipe")), HasSubstr("not a regular file"));
  EXPECT_EQ(read_gguf(dir_.path()).error().kind, Error::Kind::kBadInput);
}

TEST_F(GgufReader, RefusesWhatIsNoGguf) {
  EXPECT_THAT(error_of(""), HasSubstr("is empty"));
  EXPECT_THAT(error_of("GG"), HasSubstr("is not a GGUF file"));
  EXPECT_THAT(error_of("PK\x03\x04 and so on"), HasSubstr("is not a GGUF file"));
  EXPECT_THAT(error_of(preamble(0, 0, 1).str()), HasSubstr("version 1"));
  EXPECT_THAT(error_of(preamble(0, 0, 4).str()), HasSubstr("version 4"));
  EXPECT_THAT(error_of(preamble(0, 0, 0x03000000).str()), HasSubstr("big-endian"));
}

TEST_F(GgufReader, RefusesAFileCutAtAnyByte) {
  const std::string whole = whole_file().str();
  for (size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    EXPECT_THAT(error_of(std::string_view(whole).substr(0, length)), Not(HasSubstr("no error")));
  }
}

TEST_F(GgufReader, NamesTheTensorAndTheByteWhenWeightsAreCutOff) {
  const std::string whole = whole_file().str();
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 1)),
              AllOf(HasSubstr("m.gguf is cut short: tensor blk.0.ffn_up.weight ends at byte "),
                    HasSubstr(std::to_string(whole.size()) + " of " + std::to_string(whole.size() - 1)),
                    HasSubstr("download it again")));
}

TEST_F(GgufReader, RefusesCountsThatTheFileCannotHold) {
  // 2^61 times 8 bytes is 2^64: a product that wraps to nothing.
  for (const uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 60, uint64_t{1} << 61, ~uint64_t{0}}) {
    EXPECT_THAT(error_of(preamble(count, 0).zeros(64).str()), HasSubstr("tensors, more than"));
    EXPECT_THAT(error_of(preamble(0, count).zeros(64).str()), HasSubstr("metadata entries, more than"));
    EXPECT_THAT(error_of(preamble(0, 1).u64(count).zeros(64).str()), HasSubstr("name of metadata entry 0"));
    EXPECT_THAT(error_of(preamble(0, 1).text("k").u32(kText).u64(count).zeros(64).str()),
                HasSubstr("value of key k"));
    for (const uint32_t type : {kU8, kText, kF64}) {
      EXPECT_THAT(error_of(preamble(0, 1).text("k").u32(kArray).u32(type).u64(count).zeros(64).str()),
                  HasSubstr("array of key k"));
    }
  }
}

TEST_F(GgufReader, RefusesNamesThatAreNoText) {
  EXPECT_THAT(error_of(preamble(0, 1).text("a\nb").u32(kU8).zeros(9).str()), HasSubstr("\"a?b\""));
  EXPECT_THAT(error_of(preamble(0, 1).text("\xFF\xFE").u32(kU8).zeros(9).str()), HasSubstr("is no text"));
  EXPECT_THAT(error_of(preamble(0, 1).text("").u32(kU8).zeros(9).str()), HasSubstr("is no text"));
  Bytes b = preamble(1, 0);
  add_tensor(b, "a\tb", {1}, kTypeF32, 0);
  EXPECT_THAT(error_of(b.pad_to(32).zeros(32).str()), HasSubstr("\"a?b\""));
  Bytes c = preamble(1, 0);
  add_tensor(c, std::string(64, 'n'), {1}, kTypeF32, 0);
  EXPECT_THAT(error_of(c.pad_to(32).zeros(32).str()), HasSubstr("at most 63"));
}

TEST_F(GgufReader, RefusesWhatOccursTwice) {
  Bytes keys = preamble(0, 2);
  keys.text("k").u32(kU8).value<uint8_t>(1).text("k").u32(kArray).u32(kU8).u64(0).zeros(16);
  EXPECT_THAT(error_of(keys.str()), HasSubstr("key k occurs twice"));
  Bytes arrays = preamble(0, 2);
  arrays.text("k").u32(kArray).u32(kU8).u64(0).text("k").u32(kU8).value<uint8_t>(1).zeros(16);
  EXPECT_THAT(error_of(arrays.str()), HasSubstr("key k occurs twice"));
  Bytes tensors = preamble(2, 0);
  add_tensor(tensors, "t", {8}, kTypeF32, 0);
  add_tensor(tensors, "t", {8}, kTypeF32, 32);
  EXPECT_THAT(error_of(tensors.pad_to(32).zeros(64).str()), HasSubstr("tensor t occurs twice"));
}

TEST_F(GgufReader, RefusesTypesThatDoNotExist) {
  EXPECT_THAT(error_of(preamble(0, 1).text("k").u32(13).zeros(16).str()),
              HasSubstr("key k has unknown value type 13"));
  EXPECT_THAT(error_of(preamble(0, 1).text("k").u32(kArray).u32(kArray).u64(0).zeros(16).str()),
              HasSubstr("array of type 9"));
  EXPECT_THAT(error_of(preamble(0, 1).text("k").u32(kBool).value<uint8_t>(2).zeros(16).str()),
              HasSubstr("neither true nor false"));
  Bytes b = preamble(1, 0);
  add_tensor(b, "t", {8}, 77, 0);
  EXPECT_THAT(error_of(b.pad_to(32).zeros(32).str()), AllOf(HasSubstr("tensor t"), HasSubstr("77")));
}

TEST_F(GgufReader, RefusesImpossibleShapes) {
  const auto shape = [&](std::initializer_list<uint64_t> ne, uint32_t type) {
    Bytes b = preamble(1, 0);
    add_tensor(b, "t", ne, type, 0);
    return error_of(b.pad_to(32).zeros(4096).str());
  };
  EXPECT_THAT(shape({1, 1, 1, 1, 1}, kTypeF32), HasSubstr("5 dimensions"));
  EXPECT_THAT(shape({8, 0}, kTypeF32), HasSubstr("impossible shape 8x0"));
  EXPECT_THAT(shape({~uint64_t{0}}, kTypeF32), HasSubstr("impossible shape -1"));
  EXPECT_THAT(shape({33}, kTypeQ8), HasSubstr("for type q8_0"));
  const uint64_t two32 = uint64_t{1} << 32;
  EXPECT_THAT(shape({two32, two32}, kTypeF32), HasSubstr("impossible shape"));
  EXPECT_THAT(shape({two32, two32 / 16}, kTypeF32), HasSubstr("cut short"))
      << "2^62 bytes: possible, but not here";
}

TEST_F(GgufReader, RefusesOffsetsOutsideTheFileOrIntoEachOther) {
  const auto at = [&](uint64_t offset) {
    Bytes b = preamble(2, 0);
    add_tensor(b, "first", {16}, kTypeF32, 0);
    add_tensor(b, "second", {16}, kTypeF32, offset);
    return error_of(b.pad_to(32).zeros(128).str());
  };
  EXPECT_EQ(at(64), "no error");
  EXPECT_THAT(at(65), HasSubstr("no multiple of the alignment 32"));
  EXPECT_THAT(at(32), HasSubstr("first and second overlap"));
  EXPECT_THAT(at(96), HasSubstr("cut short: tensor second"));
  EXPECT_THAT(at(~uint64_t{31}), HasSubstr("cut short: tensor second"));
}

TEST_F(GgufReader, RefusesAlignmentsThatAreNoPowerOfTwo) {
  for (const uint32_t alignment : {0U, 4U, 24U, 0xFFFFFFFFU}) {
    EXPECT_THAT(error_of(preamble(0, 1).text("general.alignment").u32(kU32).u32(alignment).zeros(64).str()),
                HasSubstr("general.alignment"));
  }
  EXPECT_THAT(error_of(preamble(0, 1).text("general.alignment").u32(kText).text("32").zeros(64).str()),
              HasSubstr("general.alignment"));
}

// Damage anywhere must end in a value or one line, never in a crash; the sanitizers decide.
TEST_F(GgufReader, SurvivesFlippedBytes) {
  const std::string whole = whole_file().str();
  std::mt19937 rng(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (int flips = 1 + static_cast<int>(rng() % 4); flips > 0; --flips)
      bytes[rng() % 620] = static_cast<char>(rng());
    const Result<GgufFile> r = read(bytes);
    if (!r) {
      EXPECT_THAT(r.error().message, Not(HasSubstr("\n")));
      continue;
    }
    for (const TensorInfo& t : r->tensors) EXPECT_LE(t.offset + t.bytes, bytes.size());
  }
}

TEST_F(GgufReader, StepsOverALargeVocabularyWithoutKeepingIt) {
  Bytes b = preamble(0, 2);
  b.text("tokenizer.ggml.tokens").u32(kArray).u32(kText).u64(50000);
  for (int i = 0; i < 50000; ++i) b.text("token" + std::to_string(i));
  b.text("tokenizer.ggml.scores").u32(kArray).u32(kF32).u64(50000).zeros(200000);
  const Result<GgufFile> r = read(b.str());
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->arrays.at("tokenizer.ggml.tokens").count, 50000U);
  EXPECT_EQ(r->arrays.at("tokenizer.ggml.scores").count, 50000U);
  EXPECT_TRUE(r->arrays.at("tokenizer.ggml.scores").values.empty());
}

}  // namespace
}  // namespace opledger::gguf
