#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"

namespace hone {
namespace {

TEST(Json, PrintsWhatItParses) {
  for (std::string_view text :
       {R"({"a":[1,-2,3.5,1e+300,true,false,null],"b":{"c":"x\u0001\"\\"}})", R"([])", R"({})",
        R"("ü")", R"(9223372036854775807)", R"([1.0,0.1])"})
    EXPECT_EQ(Json::parse(text, "test").text(), text);
}

TEST(Json, KeepsTheOrderOfKeys) {
  const Json j = Json::parse(R"({"b":1,"a":2})", "test");
  EXPECT_EQ(j.object()[0].first, "b");
  EXPECT_EQ(j.at("a").integer(), 2);
  EXPECT_EQ(j.find("c"), nullptr);
  EXPECT_THROW(j.at("c"), UserError);
  EXPECT_THROW(j.at("a").text_value(), UserError);
}

TEST(Json, RefusesWhatIsNotStrict) {
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  for (std::string_view text : {std::string_view("{"),
                                std::string_view("{\"a\":1,\"a\":2}"),
                                std::string_view("[1,]"),
                                std::string_view("01"),
                                std::string_view("18446744073709551615"),
                                std::string_view("1 2"),
                                std::string_view("\"\xff\""),
                                std::string_view(deep),
                                std::string_view("-"),
                                std::string_view("1."),
                                std::string_view(".5"),
                                std::string_view("1e"),
                                std::string_view("1e999"),
                                std::string_view("\"\\ud800\""),
                                std::string_view("\"\\x\""),
                                std::string_view("\"\\u12"),
                                std::string_view("\"\n\""),
                                std::string_view("\"a"),
                                std::string_view(""),
                                std::string_view("nul"),
                                std::string_view("{\"a\" 1}"),
                                std::string_view("{a:1}"),
                                std::string_view("[1 2]"),
                                std::string_view("\0", 1)})
    EXPECT_THROW(Json::parse(text, "test"), UserError) << text;
}

TEST(Json, ReadsEscapesAndNumbers) {
  EXPECT_EQ(Json::parse(R"("\u00e9\u20ac\ud83d\ude00\/\b\f\n\r\t")", "test").text_value(),
            "\u00e9\u20ac\U0001f600/\b\f\n\r\t");
  EXPECT_EQ(Json::parse("1e-999", "test").real(), 0);
  EXPECT_EQ(Json::parse("-9223372036854775808", "test").integer(), INT64_MIN);
  EXPECT_EQ(Json::parse(" [ 1 , 2E+2 ]\n", "test").array()[1].real(), 200);
}

// Our parser is stricter in three points, identified by their messages.
TEST(Json, AgreesWithAnotherParserOnDamagedText) {
  std::mt19937 random(7);
  const std::string whole =
      R"({"a":[1,-2.5e3,true,null,"x\n\u00e9é"],"b":{"c":{},"d":[]},"e":0.125,"f":"\"q\""})";
  const std::string_view alphabet = "{}[]\",:0123456789.eE+-truefalsn\\u \xc3\xa9\n";
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole;
    for (unsigned n = random() % 4; n-- > 0;) {
      const std::size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), c);
          break;
        default:
          text.erase(at, 1);
      }
    }
    std::string refused;
    Json ours;
    try {
      ours = Json::parse(text, "test");
    } catch (const UserError& e) {
      refused = e.what();
    }
    const bool stricter =
        refused.find("appears twice") != refused.npos || refused.find("64 bits") != refused.npos;
    if (stricter) continue;
    ASSERT_EQ(refused.empty(), nlohmann::json::accept(text)) << text << "\n" << refused;
    if (!refused.empty()) continue;
    ++accepted;
    ASSERT_EQ(nlohmann::json::parse(ours.text()), nlohmann::json::parse(text)) << text;
  }
  EXPECT_GT(accepted, 2'000);
}

TEST(Json, WritesTextThatIsNoUtf8AsReplacement) {
  const std::string written = Json(
                                  "a\xff\xc3"
                                  "b\xed\xa0\x80")
                                  .text();
  EXPECT_EQ(written, R"("a\ufffd\ufffdb\ufffd\ufffd\ufffd")");
  EXPECT_NO_THROW(Json::parse(written, "test"));
}

TEST(Json, IndentsForPeople) {
  EXPECT_EQ(Json::parse(R"({"a":[1,2],"b":{}})", "test").text(1),
            "{\n \"a\": [\n  1,\n  2\n ],\n \"b\": {}\n}");
}

}  // namespace
}  // namespace hone
