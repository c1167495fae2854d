// Strings in models: too many, too long, not UTF-8, or passed to operators that could run forever.
#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

using Texts = std::vector<std::string>;

void add_texts(ModelBuilder& b, const std::string& name, const Texts& texts) {
  onnx_pb::Tensor* t = b.model.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(8);
  t->add_dims(std::ssize(texts));
  for (const std::string& s : texts) t->add_string_data(s);
}

// One node with constant strings as operand.
Make node(const std::string& op, std::function<Texts()> texts,
          std::function<void(onnx_pb::Node&)> set = nullptr) {
  return model([=](ModelBuilder& b) {
    add_texts(b, "x", texts());
    onnx_pb::Node& n = b.node(op, {"x"}, {"y"});
    if (set) set(n);
    b.output("y");
  });
}

std::function<Texts()> one(char c, std::size_t size) {
  return [=] { return Texts{std::string(size, c)}; };
}

std::function<Texts()> different(int count, const std::string& end = "") {
  return [=] {
    Texts out;
    for (int i = 0; i < count; ++i) out.push_back(cat(i, end));
    return out;
  };
}

Make match(std::string pattern, std::function<Texts()> texts) {
  return node("RegexFullMatch", std::move(texts),
              [=](onnx_pb::Node& n) { set_text(n, "pattern", pattern); });
}

Make split(std::function<Texts()> texts, std::int64_t most) {
  return node("StringSplit", std::move(texts), [=](onnx_pb::Node& n) {
    set_text(n, "delimiter", ",");
    set_int(n, "maxsplit", most);
  });
}

// Each node doubles the string.
Make doubled(int times) {
  return model([=](ModelBuilder& b) {
    add_texts(b, "t0", {"ab"});
    for (int i = 0; i < times; ++i)
      b.node("StringConcat", {cat("t", i), cat("t", i)}, {cat("t", i + 1)});
    b.output(cat("t", times));
  });
}

Make of_texts(std::int64_t size, std::function<void(onnx_pb::Tensor&)> more = nullptr) {
  return model([=](ModelBuilder& b) {
    add_texts(b, "x", {"a", "b"});
    onnx_pb::Tensor* t = b.model.mutable_graph()->mutable_initializer(0);
    t->set_dims(0, size);
    if (more) more(*t);
    b.node("Identity", {"x"}, {"y"});
    b.output("y");
  });
}

Make broadcast(const char* rows, const char* columns) {
  return model([=](ModelBuilder& b) {
    b.input("x", DType::text, {rows, "1"});
    b.input("z", DType::text, {"1", columns});
    b.node("StringConcat", {"x", "z"}, {"y"});
    b.output("y");
  });
}

}  // namespace

Cases string_cases() {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::string nested = "((a{1000}){1000}){1000}";
  Cases out = {
      {"string_dims_huge", of_texts(most), imported, "it has 2 strings, expected 9223372"},
      {"string_dims_negative", of_texts(-2), imported, "is negative"},
      {"string_dims_few", of_texts(1), imported, "it has 2 strings, expected 1"},
      {"string_raw", of_texts(2, [](auto& t) { t.set_raw_data(std::string(16, 'x')); }), imported,
       "expected string_data only"},
      {"string_integers", of_texts(2, [](auto& t) { t.add_int64_data(5); }), imported,
       "expected string_data only"},
      {"string_too_long", node("Identity", one('a', (16 << 20) + 1)), imported, "split it"},
      {"string_1000000_empty", node("Identity", [] { return Texts(1'000'000); }), imported,
       "read: "},
      {"string_1100000_different", node("Identity", different(1'100'000)), imported,
       "exceeds the limit"},
      {"string_no_utf8",
       node(
           "StringNormalizer",
           [] { return Texts{"\xff\xc3", "\xed\xa0\x80", std::string("\0a", 2)}; },
           [](onnx_pb::Node& n) { set_text(n, "case_change_action", "UPPER"); }),
       ran, "ran: text[3]"},
      {"string_split_of_commas", split(one(',', 1'000'000), most), ran, "refused: "},
      {"string_split_of_commas_by_reference", split(one(',', 1'000'000), most), interpreted,
       "refused: "},
      {"string_split_negative", split(one(',', 10), -2), imported, "attribute 'maxsplit' is -2"},
      {"string_split_lowest", split(one(',', 10), std::numeric_limits<std::int64_t>::min()),
       imported, "attribute 'maxsplit' is -"},
      {"string_split_many", split(different(2'000, ",,"), most), interpreted, "ran: text[2000,3]"},
      {"string_doubled_64_times_by_reference", doubled(64), interpreted, "split it"},
      {"string_broadcast_huge", broadcast("1048576", "1048576"), ran, "refused: "},
      {"regex_nested_repeats", match(nested, one('a', 10)), imported, "states"},
      {"regex_many_repeats", match(repeated("(a{999}){0}", 5000), one('a', 10)), imported,
       "states"},
      {"regex_long", match(std::string(1 << 20, 'a'), one('a', 10)), imported,
       "expected at most 65536"},
      {"regex_deep", match(std::string(60'000, '('), one('a', 10)), imported, "groups are nested"},
      {"regex_deep_classes", match(repeated("[[:alpha:]", 5000), one('a', 10)), imported,
       "without ']'"},
      {"regex_backreference", match("(a)\\1", one('a', 10)), imported, "unknown escape \\1"},
      {"regex_lookahead", match("(?=a)", one('a', 10)), imported, "lookaround"},
      {"regex_no_utf8", match("\xff[\x80-\xfe]*", one('\x90', 10)), imported, "read: "},
      {"regex_stars_of_stars", match("(((a*)*)*)*b", one('a', 10'000)), ran, "ran: bool[1] = 0"},
      {"regex_catastrophe", match("(a+)+b", one('a', 100'000)), ran, "ran: bool[1] = 0"},
      {"regex_catastrophe_by_reference", match("(a|a)*b", one('a', 300'000)), interpreted,
       "ran: bool[1] = 0"},
      {"regex_states_alive", match("(.*a){900}b", one('a', 50'000)), interpreted, "takes too long"},
      {"regex_states_alive_in_many", match("(.*a){900}b", different(5'000, std::string(100, 'a'))),
       interpreted, "takes too long"},
  };
  return out;
}

}  // namespace hone::hostile
