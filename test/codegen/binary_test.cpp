// Machine code as data: round trip, and refusal of damaged or forged bytes.
#include "plan/binary.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/error.h"

namespace hone {

namespace {

Binary sample() {
  Binary b;
  b.target = "x86-64-v3";
  for (int i = 0; i < 64; ++i) b.code.push_back(static_cast<std::byte>(i * 3));
  b.entries = {{"first", 0}, {"second kernel", 17}};
  b.helpers = {{40, 0}, {48, *helper_number("fmodf")}};
  return b;
}

// The bytes with a matching hash, as a forger would write them.
std::vector<std::byte> signed_again(std::vector<std::byte> bytes) {
  std::uint64_t hash = hash_bytes(bytes.data() + 16, bytes.size() - 16);
  std::memcpy(bytes.data() + 8, &hash, sizeof hash);
  return bytes;
}

}  // namespace

TEST(Binary, RoundTrip) {
  for (const Binary& b : {sample(), Binary{}}) EXPECT_EQ(deserialize(serialize(b), "test"), b);
}

TEST(Binary, HashCoversEverything) {
  const Binary b = sample();
  auto differs = [&](auto change) {
    Binary c = b;
    change(c);
    return content_hash(c) != content_hash(b);
  };
  EXPECT_TRUE(differs([](Binary& c) { c.target = "x86-64-v4"; }));
  EXPECT_TRUE(differs([](Binary& c) { c.code[5] ^= std::byte{1}; }));
  EXPECT_TRUE(differs([](Binary& c) { c.entries[1].name = "other"; }));
  EXPECT_TRUE(differs([](Binary& c) { c.entries[1].offset = 3; }));
  EXPECT_TRUE(differs([](Binary& c) { c.helpers[0].helper = 2; }));
}

TEST(Binary, EveryFlippedByteIsRefused) {
  const std::vector<std::byte> bytes = serialize(sample());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> bad = bytes;
    bad[i] ^= std::byte{0x10};
    EXPECT_THROW(deserialize(bad, "test"), UserError) << i;
  }
}

TEST(Binary, EveryCutIsRefused) {
  const std::vector<std::byte> bytes = serialize(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(deserialize(cut, "test"), UserError) << size;
    if (size < 16) continue;
    EXPECT_THROW(deserialize(signed_again(cut), "test"), UserError) << size;
  }
}

TEST(Binary, ForgedContentIsRefusedOrWithinItsBounds) {
  const std::vector<std::byte> bytes = serialize(sample());
  std::mt19937 rng(3);
  int refused = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    std::vector<std::byte> bad = bytes;
    for (int n = 0; n < 3; ++n) {
      std::size_t at = 16 + rng() % (bad.size() - 16);
      bad[at] = static_cast<std::byte>(rng() % 2 ? 0xff : rng());
    }
    try {
      Binary b = deserialize(signed_again(bad), "test");
      for (const auto& e : b.entries) ASSERT_LT(e.offset, b.code.size());
      for (const auto& h : b.helpers) ASSERT_LE(h.offset + 8, b.code.size());
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
}

TEST(Binary, OffsetsOutsideAreNamed) {
  auto why = [](auto change) {
    Binary b = sample();
    change(b);
    try {
      deserialize(serialize(b), "x.hone");
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("(nothing was thrown)");
  };
  auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds(why([](Binary& b) { b.entries[1].offset = 64; }), "'second kernel'"));
  EXPECT_TRUE(holds(why([](Binary& b) { b.helpers[0].offset = 60; }), "slot at byte 60"));
  EXPECT_TRUE(holds(why([](Binary& b) { b.helpers[0].offset = 64; }), "slot at byte 64"));
  EXPECT_TRUE(holds(why([](Binary& b) { b.helpers[0].offset = ~0ull - 7; }), "slot at byte"));
  EXPECT_TRUE(holds(why([](Binary& b) { b.helpers[0].helper = 9999; }), "helper 9999"));
  EXPECT_TRUE(holds(why([](Binary& b) { b.helpers[0].offset = 48; }), "share a slot"));
}

}  // namespace hone
