#include "codegen/c/weights.h"

#include <cstring>

#include "base/checked.h"
#include "codegen/c/text.h"

namespace hone::c {

namespace {

constexpr char magic[] = "HONEAOT1";

std::uint64_t checksum(const std::byte* p, std::size_t bytes) {
  std::uint64_t h = 0x9e3779b97f4a7c15u;
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p + i, sizeof word);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}

std::int64_t append(std::vector<std::byte>& to, std::span<const std::byte> from) {
  const auto at = static_cast<std::int64_t>(to.size());
  to.insert(to.end(), from.begin(), from.end());
  to.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(to.size()), 64)));
  return at;
}

}  // namespace

WeightsFile weights_file(const Plan& plan) {
  WeightsFile out;
  out.bytes.resize(WeightsFile::header_bytes);
  for (const PlanWeight& w : plan.weights) out.weights.push_back(append(out.bytes, w.data.bytes()));
  for (const PreparedBuffer& p : plan.prepared)
    out.prepared.push_back(append(out.bytes, p.data.bytes()));
  const std::uint64_t payload = out.bytes.size() - WeightsFile::header_bytes;
  out.checksum = checksum(out.bytes.data() + WeightsFile::header_bytes, payload);
  std::memcpy(out.bytes.data(), magic, 8);
  std::memcpy(out.bytes.data() + 8, &payload, 8);
  std::memcpy(out.bytes.data() + 16, &out.checksum, 8);
  return out;
}

std::string checksum_text() {
  return R"(static uint64_t hone_checksum(const unsigned char *p, size_t bytes) {
  uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, p + i, sizeof word);
    h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 32;
  }
  return h;
}
)";
}

std::string array_text(const std::string& name, const std::vector<std::byte>& bytes) {
  std::string out = cat("#if defined(__GNUC__)\n__attribute__((aligned(64)))\n#endif\n",
                        "const unsigned char ", name, "[", bytes.size(), "] = {\n");
  out.reserve(out.size() + bytes.size() * 4);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    out += std::to_string(std::to_integer<int>(bytes[i]));
    out += (i + 1) % 32 == 0 ? ",\n" : ",";
  }
  return out + "};\n";
}

}  // namespace hone::c
