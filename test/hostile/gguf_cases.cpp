// GGUF files with wrong counts, sizes and offsets.
#include "import/gguf/gguf.h"
#include "test/hostile/hostile.h"
#include "test/import/gguf_file.h"

namespace hone::hostile {

namespace {

constexpr std::uint64_t huge = ~std::uint64_t{0};
constexpr std::uint32_t f32_type = 0, q4_0_type = 2, q6_k_type = 14, text_type = 8, array_type = 9;

Case file(const char* name, std::function<GgufFile()> make, const char* expected) {
  return {name, bytes([make = std::move(make)] { return make().bytes; }), read_as_gguf, expected,
          "x.gguf"};
}

GgufFile one_tensor(std::vector<std::uint64_t> sizes, std::uint32_t type, std::uint64_t offset,
                    std::size_t data) {
  return GgufFile().head(1, 0).tensor("t", std::move(sizes), type, offset).data(data);
}

// Arrays nested `depth` levels deep.
GgufFile nested(int depth) {
  GgufFile f;
  f.head(0, 1).text("k").put(array_type);
  for (int i = 0; i < depth; ++i) f.put(array_type).put<std::uint64_t>(1);
  return f.put<std::uint32_t>(4).put<std::uint64_t>(0);
}

GgufFile many_tensors(int count, bool one_name) {
  GgufFile f;
  f.head(static_cast<std::uint64_t>(count), 0);
  for (int i = 0; i < count; ++i)
    f.tensor(cat("t", one_name ? 0 : i), {1}, f32_type, static_cast<std::uint64_t>(i) * 32);
  return f.data(static_cast<std::size_t>(count) * 32);
}

Cases heads() {
  return {
      file(
          "gguf_no_bytes", [] { return GgufFile(); }, "is truncated"),
      file(
          "gguf_three_bytes", [] { return GgufFile{"GGU"}; }, "is truncated"),
      file(
          "gguf_name_only", [] { return GgufFile{"GGUF"}; }, "is truncated"),
      file(
          "gguf_zip", [] { return GgufFile{"PK\x03\x04" + std::string(100, '\0')}; },
          "is not a GGUF file"),
      file(
          "gguf_ggml", [] { return GgufFile{"lmgg" + std::string(100, '\0')}; },
          "is not a GGUF file"),
      file(
          "gguf_version_0", [] { return GgufFile().head(0, 0, 0); }, "version is 0"),
      file(
          "gguf_version_1", [] { return GgufFile().head(0, 0, 1); }, "version is 1"),
      file(
          "gguf_version_most", [] { return GgufFile().head(0, 0, ~0U); }, "version is 4294967295"),
      file(
          "gguf_big_endian", [] { return GgufFile().head(0, 0, 0x03000000); }, "big-endian"),
      file(
          "gguf_good", [] { return one_tensor({4}, f32_type, 0, 16); }, "read: 1 tensors"),
      file(
          "gguf_nothing", [] { return GgufFile().head(0, 0); }, "read: 0 tensors"),
      file(
          "gguf_all_tensors", [] { return GgufFile().head(huge, 0); }, "do not fit"),
      file(
          "gguf_all_metadata", [] { return GgufFile().head(0, huge); }, "do not fit"),
      // As many entries as would fit at 13 bytes each, but the file contains none.
      file(
          "gguf_counts_of_a_large_file",
          [] { return GgufFile().head(0, 1'000'000).data(13'000'000); }, "refused: "),
  };
}

Cases metadata() {
  const auto key = [] { return GgufFile().head(0, 1).text("k"); };
  return {
      file(
          "gguf_key_too_long", [] { return GgufFile().head(0, 1).put(huge).data(40); },
          "a metadata key"),
      file(
          "gguf_key_of_2_63_bytes",
          [] { return GgufFile().head(0, 1).put(std::uint64_t{1} << 63).data(40); },
          "a metadata key"),
      file(
          "gguf_text_too_long", [=] { return key().put(text_type).put(huge - 7).data(40); },
          "metadata"),
      file(
          "gguf_type_unknown", [=] { return key().put<std::uint32_t>(13).data(40); },
          "metadata type is 13"),
      file(
          "gguf_array_of_unknown",
          [=] { return key().put(array_type).put<std::uint32_t>(99).data(40); },
          "metadata type is 99"),
      file(
          "gguf_array_too_long",
          [=] { return key().put(array_type).put<std::uint32_t>(10).put(huge / 8).data(40); },
          "do not fit"),
      file(
          "gguf_array_of_many_texts",
          [=] { return key().put(array_type).put(text_type).put<std::uint64_t>(1 << 20).data(64); },
          "do not fit"),
      file(
          "gguf_nested_9", [] { return nested(9); }, "nested more than 8"),
      file(
          "gguf_nested_200000", [] { return nested(200'000); }, "nested more than 8"),
      file(
          "gguf_key_twice", [] { return GgufFile().head(0, 2).alignment(32).alignment(64); },
          "appears twice"),
      file(
          "gguf_alignment_0", [] { return GgufFile().head(0, 1).alignment(0); }, "multiple of 8"),
      file(
          "gguf_alignment_odd", [] { return GgufFile().head(0, 1).alignment(33); },
          "multiple of 8"),
      file(
          "gguf_alignment_is_text",
          [] { return GgufFile().head(0, 1).text("general.alignment").put(text_type).text("32"); },
          "expected 4 (u32)"),
      file(
          "gguf_alignment_most",
          [] {
            return GgufFile()
                .head(1, 1)
                .alignment(0xfffffff8)
                .tensor("t", {1}, f32_type, 0)
                .data(4);
          },
          "are outside the"),
      file(
          "gguf_text_of_10_mb",
          [=] { return key().put(text_type).text(std::string(10'000'000, 'x')); },
          "read: 0 tensors"),
      file(
          "gguf_100000_keys",
          [] {
            GgufFile f;
            f.head(0, 100'000);
            for (int i = 0; i < 100'000; ++i)
              f.text(cat("k", i)).put<std::uint32_t>(0).put<std::uint8_t>(1);
            return f;
          },
          "read: 0 tensors"),
  };
}

Cases tensors() {
  constexpr std::uint64_t half = std::uint64_t{1} << 32;
  return {
      file(
          "gguf_tensor_name_too_long", [] { return GgufFile().head(1, 0).put(huge).data(40); },
          "a tensor's name"),
      file(
          "gguf_5_axes", [] { return one_tensor({1, 1, 1, 1, 1}, f32_type, 0, 4); }, "5 axes"),
      file(
          "gguf_all_axes", [] { return GgufFile().head(1, 0).text("t").put(~0U).data(64); },
          "4294967295 axes"),
      file(
          "gguf_size_negative", [] { return one_tensor({huge}, f32_type, 0, 4); }, "63 bits"),
      file(
          "gguf_sizes_overflow", [=] { return one_tensor({half, half}, f32_type, 0, 4); },
          "64 bits"),
      file(
          "gguf_bytes_overflow", [] { return one_tensor({huge / 2}, f32_type, 0, 4); }, "64 bits"),
      file(
          "gguf_sizes_overflow_to_0", [=] { return one_tensor({half, half, 0}, f32_type, 0, 4); },
          "64 bits"),
      file(
          "gguf_0_before_an_overflow", [=] { return one_tensor({0, half, half}, f32_type, 0, 4); },
          "64 bits"),
      file(
          "gguf_empty", [=] { return one_tensor({0, half}, f32_type, 0, 4); }, "read: 1 tensors"),
      file(
          "gguf_half_a_block", [] { return one_tensor({33}, q4_0_type, 0, 64); },
          "the size of a Q4_0 block"),
      file(
          "gguf_scalar_in_blocks", [] { return one_tensor({}, q4_0_type, 0, 64); },
          "the size of a Q4_0 block"),
      file(
          "gguf_blocks_cut_off", [] { return one_tensor({256}, q6_k_type, 0, 209); },
          "are outside the"),
      file(
          "gguf_removed_type", [] { return one_tensor({32}, 4, 0, 64); }, "type is 4"),
      file(
          "gguf_type_most", [] { return one_tensor({32}, ~0U, 0, 64); }, "type is 4294967295"),
      file(
          "gguf_not_aligned", [] { return one_tensor({4}, f32_type, 4, 64); }, "multiple of 32"),
      file(
          "gguf_offset_most", [] { return one_tensor({4}, f32_type, huge - 31, 64); },
          "are outside the"),
      file(
          "gguf_offset_wraps", [] { return one_tensor({8}, f32_type, huge - 31, 64); },
          "are outside the"),
      file(
          "gguf_data_cut_off", [] { return one_tensor({4}, f32_type, 0, 15); }, "are outside the"),
      file(
          "gguf_4_gb_that_are_not_there",
          [] { return one_tensor({std::uint64_t{1} << 30}, f32_type, 0, 64); }, "are outside the"),
      file(
          "gguf_overlap",
          [] {
            return GgufFile()
                .head(2, 0)
                .tensor("a", {16}, f32_type, 0)
                .tensor("b", {4}, f32_type, 32)
                .data(64);
          },
          "overlaps 'a'"),
      file(
          "gguf_same_bytes",
          [] {
            return GgufFile()
                .head(2, 0)
                .tensor("a", {4}, f32_type, 0)
                .tensor("b", {4}, f32_type, 0)
                .data(64);
          },
          "overlaps"),
      file(
          "gguf_100000_tensors", [] { return many_tensors(100'000, false); },
          "read: 100000 tensors"),
      file(
          "gguf_100000_of_one_name", [] { return many_tensors(100'000, true); }, "appears twice"),
  };
}

std::string swept_gguf(const fs::path& path) { return sweep(path, read_as_gguf); }

}  // namespace

Cases gguf_cases() {
  Cases out;
  for (const Cases& part : {heads(), metadata(), tensors()})
    out.insert(out.end(), part.begin(), part.end());
  GgufFile small;
  small.head(2, 2).alignment(32).text("k").put(array_type).put(text_type).put<std::uint64_t>(1);
  small.text("word").tensor("a", {32}, q4_0_type, 0).tensor("b", {2}, f32_type, 32).data(40);
  out.push_back({"gguf_all_cuts_and_flips", bytes(small.bytes), swept_gguf, "swept", "x.gguf"});
  return out;
}

}  // namespace hone::hostile
