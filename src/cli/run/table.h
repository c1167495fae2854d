// Text tables: columns as wide as their cells, numbers aligned right.
#pragma once

#include <string>
#include <vector>

namespace hone::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string milliseconds(double ms);   // "1.23 ms", "45.6 us"; "-" if negative
std::string bytes_text(std::int64_t);  // "1.2 MB" (10^6)
std::string small_number(double);      // "1.2e-06"; "-" if negative

}  // namespace hone::cli
