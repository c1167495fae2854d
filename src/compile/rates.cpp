#include "compile/rates.h"

#include "base/error.h"
#include "base/json.h"
#include "base/machine.h"

namespace hone {

namespace {

Hash128 key_of(const Backend& b) {
  return hash128(cat("rates ", b.name, " ", this_machine().processor, " ",
                     open_device(b.name)->description()));
}

}  // namespace

std::optional<MachineRates> known_rates(Store& store, const Backend& b) {
  if (!b.measure) return std::nullopt;
  const std::optional<std::vector<std::byte>> entry = store.find(key_of(b));
  if (!entry) return std::nullopt;
  try {
    const Json j =
        Json::parse({reinterpret_cast<const char*>(entry->data()), entry->size()}, "rates");
    MachineRates out{.threads = 1, .fma_gflops = j.at("fma_gflops").real()};
    for (const Json& c : j.at("copies").array())
      out.copies.push_back({c.at("bytes").integer(), c.at("gbytes").real()});
    return out;
  } catch (const UserError&) {
    return std::nullopt;  // not written by measured_rates(): measure again and overwrite
  }
}

std::optional<MachineRates> measured_rates(Store& store, const Backend& b) {
  if (!b.measure) return std::nullopt;
  const MachineRates rates = b.measure(1);
  Json copies = Json::Array{};
  for (const MachineRates::Copy& c : rates.copies)
    copies.push(Json::Object{{"bytes", c.bytes}, {"gbytes", c.gbytes}});
  const std::string text =
      Json(Json::Object{{"fma_gflops", rates.fma_gflops}, {"copies", copies}}).text();
  store.store(key_of(b), std::as_bytes(std::span(text)));
  return rates;
}

}  // namespace hone
