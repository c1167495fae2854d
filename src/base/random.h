// Random choices that are the same on every machine and with every standard library, unlike those
// of <random>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace hone {

// Any seed is good, consecutive numbers too. The stream must never change: plan files hold seeds.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 protected:
  std::uint64_t state_;
};

class Random : public SplitMix64 {
 public:
  // Hashed, so that neighbouring seeds do not give shifted copies of one stream.
  explicit Random(std::uint64_t seed) : SplitMix64(seed) { state_ = next() ^ (seed << 32); }

  // In [0, n).
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  // In [low, high].
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  double real(double low, double high) { return low + (high - low) * unit(); }

  template <class List>
  const typename List::value_type& of(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }
};

}  // namespace hone
