// The tables of a plan that is made of several: kernels, binaries, weights and prepared buffers,
// each copied at its first use, equal ones once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "plan/plan.h"

namespace hone {

class JoinedTables {
 public:
  explicit JoinedTables(Plan& out) : out_(out) {}

  // The place in the joined plan of entry `i` of a plan's table. The plan must outlive this object.
  std::uint32_t kernel(const Plan& p, std::uint32_t i) {
    const PlanKernel& k = p.kernels[i];
    const std::size_t known = out_.kernels.size();
    const std::uint32_t out = take(out_.kernels, k, cat("kernel ", k.entry, " ", to_hex(k.hash)));
    if (out == known) {
      const Binary& b = p.binaries[k.binary];
      const std::uint32_t binary = take(out_.binaries, b, cat("binary ", to_hex(content_hash(b))));
      out_.kernels[out].binary = binary;
    }
    return out;
  }
  std::uint32_t weight(const Plan& p, std::uint32_t i) {
    const PlanWeight& w = p.weights[i];
    return take(out_.weights, w, cat("weight ", w.data.type(), " ", place_of(w.data.bytes())));
  }
  std::uint32_t prepared(const Plan& p, std::uint32_t i) {
    const PreparedBuffer& b = p.prepared[i];
    const std::string content = b.data.size() > 0 ? to_hex(hash128(b.data.bytes()))
                                                  : place_of(std::as_bytes(std::span(&b, 1)));
    return take(out_.prepared, b, cat("prepared ", b.type, " ", content));
  }

 private:
  static std::string place_of(std::span<const std::byte> bytes) {
    return cat(static_cast<const void*>(bytes.data()), " ", bytes.size());
  }

  template <class T>
  std::uint32_t take(std::vector<T>& table, const T& entry, const std::string& key) {
    const auto by_address = places_.find(&entry);
    if (by_address != places_.end()) return by_address->second;
    const auto [it, is_new] =
        by_content_.try_emplace(key, static_cast<std::uint32_t>(table.size()));
    if (is_new) table.push_back(entry);
    places_.emplace(&entry, it->second);
    return it->second;
  }

  Plan& out_;
  std::map<const void*, std::uint32_t> places_;
  std::map<std::string, std::uint32_t> by_content_;
};

}  // namespace hone
