// Safetensors files with wrong headers.
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

std::string with_header(const std::string& header, std::size_t data,
                        std::uint64_t length = ~std::uint64_t{0}) {
  if (length == ~std::uint64_t{0}) length = header.size();
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(length >> 8 * i);
  return out + header + std::string(data, '\0');
}

std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "F32") {
  return cat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
             ",\"data_offsets\":", offsets, "}");
}

Case header(const char* name, const std::string& tensors, std::size_t data, const char* expected) {
  return {name, bytes(with_header("{" + tensors + "}", data)), read_as_safetensors, expected,
          "x.safetensors"};
}
Case raw(const char* name, std::function<std::string()> content, const char* expected) {
  return {name, bytes(std::move(content)), read_as_safetensors, expected, "x.safetensors"};
}

std::string swept_safetensors(const fs::path& file) { return sweep(file, read_as_safetensors); }

}  // namespace

Cases safetensors_cases() {
  Cases out = {
      raw(
          "st_empty", [] { return ""; }, "is not a safetensors file: it has 0 bytes"),
      raw(
          "st_seven_bytes", [] { return std::string(7, '\0'); }, "it has 7 bytes"),
      raw(
          "st_length_0", [] { return std::string(8, '\0'); }, "refused: "),
      raw(
          "st_length_most", [] { return std::string(64, '\xff'); }, "the length of a header"),
      raw(
          "st_length_2_63", [] { return with_header("{}", 0, std::uint64_t{1} << 63); },
          "the length of a header"),
      raw(
          "st_header_past_end", [] { return with_header("{}", 0, 1000); }, "is truncated"),
      raw(
          "st_zip", [] { return "PK\x03\x04" + std::string(100, '\0'); }, "refused: "),
      raw(
          "st_pickle", [] { return "\x80\x02}q\0." + std::string(100, '\0'); }, "refused: "),
      raw(
          "st_html", [] { return "<!DOCTYPE html><html></html>"; }, "refused: "),
      header("st_good", tensor("a", "[1]", "[0,4]"), 4, "read: 1 tensors"),
      header("st_overlap", tensor("a", "[2]", "[0,8]") + "," + tensor("b", "[2]", "[4,12]"), 12,
             "overlap"),
      header("st_same_bytes", tensor("a", "[2]", "[0,8]") + "," + tensor("b", "[2]", "[0,8]"), 8,
             "overlap"),
      header("st_hole", tensor("a", "[1]", "[0,4]") + "," + tensor("b", "[1]", "[8,12]"), 12,
             "gaps"),
      header("st_trailing", tensor("a", "[1]", "[0,4]"), 5, "after its last tensor"),
      header("st_backwards", tensor("a", "[1]", "[4,0]"), 4, "are outside the"),
      header("st_negative", tensor("a", "[1]", "[-4,0]"), 4, "are outside the"),
      header("st_offsets_huge", tensor("a", "[1]", "[9223372036854775803,9223372036854775807]"), 4,
             "are outside the"),
      header("st_offsets_too_long", tensor("a", "[1]", "[0,99999999999999999999]"), 4, "refused: "),
      header("st_shape_negative", tensor("a", "[-1,-1]", "[0,4]"), 4, "negative"),
      header("st_shape_overflow", tensor("a", "[4294967296,4294967296]", "[0,0]"), 0,
             "does not fit in 64 bits"),
      header("st_shape_lies", tensor("a", "[3]", "[0,4]"), 4, "expected 12 for its type"),
      header("st_shape_text", tensor("a", "\"1\"", "[0,4]"), 4, "refused: "),
      header("st_shape_real", tensor("a", "[1e0]", "[0,4]"), 4, "refused: "),
      header("st_dtype_unknown", tensor("a", "[1]", "[0,4]", "F99"), 4, "not supported"),
      header("st_name_twice", tensor("a", "[1]", "[0,4]") + "," + tensor("a", "[1]", "[4,8]"), 8,
             "refused: "),
      header("st_key_twice",
             "\"a\":{\"dtype\":\"F32\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,4]}", 4,
             "refused: "),
      header("st_field_missing", "\"a\":{\"dtype\":\"F32\",\"shape\":[1]}", 4, "missing"),
      header("st_null", "\"a\":null", 0, "refused: "),
      header("st_metadata_is_list", "\"__metadata__\":[]", 0, "refused: "),
      header("st_metadata_nested", "\"__metadata__\":{\"k\":{\"l\":1}}", 0, "refused: "),
      header("st_name_not_utf8", tensor("\xff\xfe", "[1]", "[0,4]"), 4, "refused: "),
      header("st_name_surrogate", tensor("\\ud800", "[1]", "[0,4]"), 4, "refused: "),
      header("st_name_control", tensor("a\nb", "[1]", "[0,4]"), 4, "refused: "),
      raw(
          "st_two_headers", [] { return with_header("{}{}", 0); }, "refused: "),
      raw(
          "st_comment", [] { return with_header("{/**/}", 0); }, "refused: "),
      raw(
          "st_deep_lists",
          [] {
            return with_header("{\"a\":" + repeated("[", 100'000) + repeated("]", 100'000) + "}",
                               0);
          },
          "nested"),
      raw(
          "st_deep_objects",
          [] {
            return with_header(repeated("{\"a\":", 100'000) + "1" + repeated("}", 100'000), 0);
          },
          "nested"),
      raw(
          "st_long_number",
          [] { return with_header("{\"a\":" + std::string(1'000'000, '9') + "}", 0); },
          "refused: "),
      raw(
          "st_long_exponent", [] { return with_header("{\"a\":1e999999999}", 0); }, "refused: "),
      raw(
          "st_long_name",
          [] {
            return with_header("{" + tensor(std::string(5'000'000, 'n'), "[1]", "[0,4]") + "}", 4);
          },
          "read: 1 tensors"),
      raw(
          "st_100000_names",
          [] {
            std::string all = "{";
            for (int i = 0; i < 100'000; ++i)
              all +=
                  cat(i ? "," : "", tensor(cat("t", i), "[1]", cat("[", i, ",", i + 1, "]"), "U8"));
            return with_header(all + "}", 100'000);
          },
          "read: 100000 tensors"),
      raw(
          "st_100000_equal_keys",
          [] { return with_header("{" + repeated("\"a\":1,", 100'000) + "\"a\":1}", 0); },
          "refused: "),
      raw(
          "st_200000_dims",
          [] {
            return with_header(
                "{" + tensor("a", "[" + repeated("1,", 200'000) + "1]", "[0,4]") + "}", 4);
          },
          "read: 1 tensors"),
      raw(
          "st_3000000_zeros",
          [] { return with_header("{\"a\":[" + repeated("0,", 3'000'000) + "0]}", 0); },
          "more values than a real file of this size has"),
  };
  out.push_back({"st_all_cuts_and_flips",
                 bytes(with_header(
                     "{\"__metadata__\":{\"k\":\"v\"}," + tensor("a", "[1,2]", "[0,8]") + "}", 8)),
                 swept_safetensors, "swept", "x.safetensors"});
  return out;
}

}  // namespace hone::hostile
