#include "base/json.h"

#include <gtest/gtest.h>

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
  for (std::string_view text :
       {std::string_view("{"), std::string_view("{\"a\":1,\"a\":2}"), std::string_view("[1,]"),
        std::string_view("01"), std::string_view("18446744073709551615"), std::string_view("1 2"),
        std::string_view("\"\xff\""), std::string_view(deep)})
    EXPECT_THROW(Json::parse(text, "test"), UserError) << text;
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
