// Files that are not ONNX, or are damaged ONNX: truncated, bits flipped, nested, with wrong types
// and lengths.
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

// `inner` wrapped in `levels` nested messages.
std::string nested(std::string inner, std::uint32_t field, int levels) {
  for (int i = 0; i < levels; ++i) inner = bytes_field(field, inner);
  return inner;
}

// If inside If inside If: each level nests a node, an attribute and a graph.
std::string nested_ifs(int levels) {
  std::string graph = bytes_field(12, bytes_field(1, "x"));
  for (int i = 0; i < levels; ++i) {
    const auto branch = [&](const std::string& name) {
      return bytes_field(5, bytes_field(1, name) + bytes_field(6, graph) + number_field(20, 5));
    };
    const std::string node = bytes_field(1, "c") + bytes_field(2, "y") + bytes_field(4, "If") +
                             branch("then_branch") + branch("else_branch");
    graph = bytes_field(1, node) + bytes_field(12, bytes_field(1, "y"));
    if (graph.size() > 20'000'000) break;
  }
  return number_field(1, 10) + bytes_field(8, bytes_field(1, "") + number_field(2, 21)) +
         bytes_field(7, graph);
}

// Reads `count` damaged copies of a good model. The message does not matter, as long as every error
// is a UserError.
template <class Spoil>
std::string swept(const fs::path& file, std::size_t count, Spoil spoil) {
  const std::string whole = read_text(file);
  std::size_t refused = 0, read = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const fs::path broken = file.parent_path() / "broken.onnx";
    std::ofstream(broken, std::ios::binary) << spoil(whole, i);
    try {
      imported(broken);
      ++read;
    } catch (const UserError&) {
      ++refused;
    }
  }
  return cat("swept: ", refused > 0 ? "some refused" : "none refused", ", ",
             refused + read == count ? "all answered" : "");
}

std::string all_cuts(const fs::path& file) {
  return swept(file, fs::file_size(file),
               [](const std::string& s, std::size_t i) { return s.substr(0, i); });
}
std::string all_flips(const fs::path& file) {
  return swept(file, fs::file_size(file) * 8, [](std::string s, std::size_t i) {
    s[i / 8] = static_cast<char>(s[i / 8] ^ (1 << i % 8));
    return s;
  });
}
// Each byte is set to 0, 127, 128 and 255, removed, and duplicated.
std::string all_bytes(const fs::path& file) {
  return swept(file, fs::file_size(file) * 6, [](std::string s, std::size_t i) {
    const std::size_t at = i / 6;
    if (i % 6 == 4) return s.erase(at, 1);
    if (i % 6 == 5) return s.insert(at, 1, s[at]);
    s[at] = "\0\x7f\x80\xff"[i % 6];
    return s;
  });
}

std::string opset21() { return bytes_field(8, bytes_field(1, "") + number_field(2, 21)); }

}  // namespace

Cases byte_cases() {
  const std::string good = good_model();
  return {
      {"empty_file", bytes(""), imported, "refused: "},
      {"one_byte", bytes("\x08"), imported, "byte 1 of 1: a number is truncated"},
      {"zeros", bytes(std::string(4096, '\0')), imported, "field number 0 is invalid"},
      {"ones", bytes(std::string(4096, '\xff')), imported, "a number has more than 10 bytes"},
      {"text", bytes("this is no model\n"), imported, "refused: "},
      {"html", bytes("<!DOCTYPE html><html><body>404 Not Found</body></html>"), imported,
       "refused: "},
      {"byte_order_mark", bytes("\xef\xbb\xbf" + good), imported, "refused: "},
      {"gzip", bytes(std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + good), imported,
       "refused: "},
      {"zip", bytes("PK\x03\x04" + std::string(26, '\0') + good), imported, "refused: "},
      {"pickle",
       bytes("\x80\x02"
             "cos\nsystem\nq\0X\x04\0\0\0true."),
       imported, "refused: "},
      {"git_lfs_pointer",
       bytes("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n"), imported,
       "refused: "},
      {"all_cuts", bytes(good), all_cuts, "swept: some refused, all answered"},
      {"all_flips", bytes(good), all_flips, "swept: some refused, all answered"},
      {"all_bytes", bytes(good), all_bytes, "swept: some refused, all answered"},
      {"good_model", bytes(good), imported, "read: 1 variants"},
      {"good_model_twice", bytes(good + good), imported, "refused: "},
      {"length_2_gib", bytes("\x3a" + varint(std::uint64_t{1} << 31)), imported,
       "a field has 2147483648 bytes, but its message has only 0 left"},
      {"length_2_63", bytes("\x3a" + varint(std::uint64_t{1} << 63)), imported,
       "a field has 9223372036854775808 bytes"},
      {"length_most", bytes("\x3a" + varint(~std::uint64_t{0}) + "abc"), imported,
       "a field has 18446744073709551615 bytes, but its message has only 3 left"},
      {"length_of_inner_message",
       bytes(bytes_field(7,
                         "\x0a\x7f"
                         "ab")),
       imported, "a field has 127 bytes, but its message has only 2 left"},
      {"varint_of_11_bytes", bytes("\x08" + std::string(10, '\x80') + "\x01"), imported,
       "a number has more than 10 bytes"},
      {"wire_type_6", bytes("\x0e"), imported, "field 1 has wire type 6"},
      {"wire_type_7", bytes("\x0f"), imported, "field 1 has wire type 7"},
      {"graph_is_a_number", bytes(number_field(7, 5) + opset21()), imported, "contains no graph"},
      {"version_is_bytes", bytes(bytes_field(1, "abc") + good), imported, "read: 1 variants"},
      {"group_without_end", bytes("\x0b"), imported, "group 1 is not closed"},
      {"groups_5000", bytes(std::string(5000, '\x0b')), imported,
       "groups are nested more than 64 levels deep"},
      {"end_of_no_group", bytes("\x0c"), imported, "field 1 has wire type 4"},
      // Types nested 5,000 deep.
      {"types_5000", bytes([] {
         const std::string type = nested("", 1, 0);
         std::string inner = type;
         for (int i = 0; i < 5000; ++i) inner = bytes_field(4, bytes_field(1, inner));
         return number_field(1, 10) + opset21() +
                bytes_field(7, bytes_field(11, bytes_field(1, "x") + bytes_field(2, inner)));
       }),
       imported, "messages are nested more than 64 levels deep"},
      {"messages_5000", bytes([] {
         std::string inner;
         for (int i = 0; i < 1700; ++i)
           inner = bytes_field(1, bytes_field(5, bytes_field(6, inner)));
         return bytes_field(7, inner);
       }),
       imported, "messages are nested more than 64 levels deep"},
      // The number of graphs doubles with each level, so only a few levels.
      {"ifs_in_ifs_12", bytes([] { return nested_ifs(12); }), imported, "refused: "},
      {"empty_nodes_2000000", bytes([] {
         return number_field(1, 10) + opset21() +
                bytes_field(7, repeated(bytes_field(1, ""), 2'000'000));
       }),
       imported, "far more small messages than an ONNX model"},
      {"empty_attributes_2000000", bytes([] {
         return number_field(1, 10) + opset21() +
                bytes_field(7, bytes_field(1, repeated(bytes_field(5, ""), 2'000'000)));
       }),
       imported, "far more small messages than an ONNX model"},
      {"empty_tensors_1000000", bytes([] {
         return number_field(1, 10) + opset21() +
                bytes_field(7, repeated(bytes_field(5, ""), 1'000'000));
       }),
       imported, "far more small messages than an ONNX model"},
      {"empty_opsets_1000000", bytes([] {
         return number_field(1, 10) + repeated(bytes_field(8, ""), 1'000'000) +
                bytes_field(7, bytes_field(2, "g"));
       }),
       imported, "imports 1000000 opsets, expected at most 1000"},
      {"empty_functions_1000000", bytes([] {
         return number_field(1, 10) + opset21() + repeated(bytes_field(25, ""), 1'000'000) +
                bytes_field(7, bytes_field(2, "g"));
       }),
       imported, "far more small messages than an ONNX model"},
      {"empty_names_4000000", bytes([] {
         return number_field(1, 10) + opset21() +
                bytes_field(7, bytes_field(1, repeated(bytes_field(1, ""), 4'000'000)));
       }),
       imported, "refused: "},
      {"graphs_merged_100000", bytes([] {
         return number_field(1, 10) + opset21() + repeated(bytes_field(7, ""), 100'000);
       }),
       imported, "the graph has no outputs, so the model computes nothing"},
  };
}

}  // namespace hone::hostile
