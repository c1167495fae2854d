// Damaged files in the text form of Functions.
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

const std::string param = "%0: f32[2] = param index=0 \"x\"\n";

std::string all_cuts_of_text(const fs::path& file) {
  const std::string whole = read_text(file);
  std::size_t answered = 0;
  const auto open = [&](const std::string& text) {
    try {
      verify(parse(text, find_op));
    } catch (const UserError&) {
    }
    ++answered;
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    open(whole.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string s = whole;
      s[i] = static_cast<char>(s[i] ^ (1 << bit));
      open(s);
    }
  }
  return answered == 9 * whole.size() ? "swept" : "";
}

}  // namespace

Cases text_cases() {
  Cases out;
  const auto add = [&out](const char* name, std::string text, const char* expected) {
    out.push_back({name, bytes(std::move(text)), parsed_text, expected, "f.txt"});
  };
  add("text_good", param + "%1: f32[2] = relu %0\nreturn %1 \"y\"\n", "read: 2 nodes");
  add("text_empty", "", "refused: ");
  add("text_binary", std::string("\0\xff\x80%", 4), "refused: ");
  add("text_unknown_op", param + "%1: f32[2] = system %0\nreturn %1 \"y\"\n",
      "unknown operation 'system'");
  add("text_wrong_type", param + "%1: i32[2] = relu %0\nreturn %1 \"y\"\n",
      "relu is i32[2], expected f32[2]");
  add("text_wrong_count", param + "%1: f32[2] = relu %0 %0 %0\nreturn %1 \"y\"\n", "refused: ");
  add("text_no_operand", param + "%1: f32[2] = add\nreturn %1 \"y\"\n", "refused: ");
  add("text_constant_of_nothing", "%0: f32[2] = constant\nreturn %0 \"y\"\n",
      "attribute 'value' is missing");
  add("text_constant_is_number", "%0: f32[] = constant value=1\nreturn %0 \"y\"\n",
      "attribute 'value' is of the wrong kind");
  add("text_constant_of_operand",
      param + "%1: f32[] = constant %0 value=f32[]#0000803f;\nreturn %1 \"y\"\n", "no operands");
  add("text_dims_of_nothing", "%0: i64[1] = dims dtype=i64 shape=[1]\nreturn %0 \"y\"\n",
      "attribute 'dims' is missing");
  add("text_dims_too_few", "%0: i64[2] = dims dims=[1] dtype=i64 shape=[2]\nreturn %0 \"y\"\n",
      "expected integers with 1 elements");
  add("text_index_is_text", "%0: f32[2] = param index=\"0\" \"x\"\nreturn %0 \"y\"\n",
      "numbered in order");
  add("text_undefined", param + "%1: f32[2] = relu %9\nreturn %1 \"y\"\n", "%9 is not defined");
  add("text_itself", param + "%1: f32[2] = relu %1\nreturn %1 \"y\"\n", "%1 is not defined");
  add("text_number_too_long", param + "%99999999999999999999: f32[2] = relu %0\nreturn\n",
      "is not an integer");
  add("text_size_huge",
      "%0: f32[9223372036854775807,9223372036854775807] = param index=0 \"x\"\n"
      "return %0 \"y\"\n",
      "read: ");
  add("text_size_negative", "%0: f32[-4] = param index=0 \"x\"\nreturn %0 \"y\"\n",
      "size -4 is negative");
  add("text_size_unknown", "%0: f32[n] = param index=0 \"x\"\nreturn %0 \"y\"\n",
      "unknown symbol 'n'");
  add("text_symbol_backwards", "symbol n 9 3\n%0: f32[n] = param index=0 \"x\"\nreturn %0 \"y\"\n",
      "refused: ");
  add("text_size_nested",
      "symbol n 1 9\n%0: f32[" + repeated("(", 100'000) + "n" + repeated(")", 100'000) +
          "] = param index=0 \"x\"\nreturn %0 \"y\"\n",
      "refused: ");
  add("text_size_minuses",
      "symbol n 1 9\n%0: f32[" + repeated("-", 100'000) + "n] = param index=0 \"x\"\nreturn\n",
      "refused: ");
  add("text_size_functions",
      "symbol n 1 9\n%0: f32[" + repeated("max(n,", 50'000) + "1" + repeated(")", 50'000) +
          "] = param index=0 \"x\"\nreturn %0 \"y\"\n",
      "refused: ");
  add("text_size_divides_by_zero",
      "symbol n 1 9\n%0: f32[floordiv(n,0)] = param index=0 \"x\"\nreturn %0 \"y\"\n", "refused: ");
  add("text_axes_100000",
      "%0: f32[" + repeated("1,", 100'000) + "1] = param index=0 \"x\"\nreturn %0 \"y\"\n",
      "read: ");
  add("text_bodies_nested", repeated("%0: f32[2] = if_else then={ ", 10'000),
      "nested more than 64");
  add("text_bytes_short", "%0: f32[2] = constant value=f32[2]#0000;\nreturn %0 \"y\"\n",
      "refused: ");
  add("text_bytes_huge",
      "%0: f32[1099511627776] = constant value=f32[1099511627776]#00;\nreturn %0 \"y\"\n",
      "refused: ");
  add("text_array_elsewhere", "%0: f32[2] = constant value=@7\nreturn %0 \"y\"\n",
      "array @7 is not in the file");
  add("text_string_open", "%0: f32[2] = param index=0 \"x", "refused: ");
  add("text_axis_wrong", param + "%1: f32[2] = softmax axis=99 %0\nreturn %1 \"y\"\n", "refused: ");
  add("text_axis_huge",
      param + "%1: f32[2] = softmax %0 axis=9223372036854775807\nreturn %1 \"y\"\n", "refused: ");
  add("text_attribute_missing", param + "%1: f32[2] = transpose %0\nreturn %1 \"y\"\n",
      "refused: ");
  add("text_attribute_of_other_type",
      param + "%1: f32[2] = transpose %0 perm=\"0\"\nreturn %1 \"y\"\n", "refused: ");
  add("text_attribute_unknown", param + "%1: f32[2] = relu %0 axle=1\nreturn %1 \"y\"\n",
      "unknown attribute 'axle'");
  out.push_back({"text_chain_50000", bytes([] {
                   std::string text = param;
                   for (int i = 1; i <= 50'000; ++i)
                     text += cat("%", i, ": f32[2] = relu %", i - 1, "\n");
                   return text + "return %50000 \"y\"\n";
                 }),
                 parsed_text, "read: ", "f.txt"});
  out.push_back({"text_lines_2000000", bytes([] { return param + std::string(2'000'000, '\n'); }),
                 parsed_text, "refused: ", "f.txt"});
  out.push_back({"text_swept",
                 bytes("symbol n 1 9\n%0: f32[n,2] = param index=0 \"x\"\n"
                       "%1: f32[n,2] = relu %0\n%2: f32[2,n] = transpose %1 perm=[1,0]\n"
                       "return %2 \"y\"\n"),
                 all_cuts_of_text, "swept", "f.txt"});
  return out;
}

}  // namespace hone::hostile
