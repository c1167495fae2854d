#include "cli/run/table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace hone::cli {

namespace {

// "12", "-3", "4.5 ms" and "-", which stands for no number; not "-x. Integers wrap."
bool is_numeric(const std::string& cell) {
  if (cell == "-") return true;
  const std::size_t digit = cell.starts_with('-');
  return cell.size() > digit && std::isdigit(static_cast<unsigned char>(cell[digit])) &&
         std::ranges::count(cell, ' ') <= 1;
}

// Code points, so that a name in UTF-8 does not shift its column.
std::size_t width(const std::string& s) {
  return static_cast<std::size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string& cell = rows_[r][i];
      std::string gap(widths[i] - width(cell), ' ');
      const bool right = r > 0 && is_numeric(cell);
      line += (i ? "  " : "") + (right ? gap + cell : cell + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string milliseconds(double ms) {
  if (ms < 0) return "-";
  char text[40];
  if (ms < 1)
    std::snprintf(text, sizeof text, "%.1f us", ms * 1000);
  else
    std::snprintf(text, sizeof text, ms < 100 ? "%.2f ms" : "%.0f ms", ms);
  return text;
}

std::string bytes_text(std::int64_t n) {
  char text[40];
  if (n < 0) return "-";
  if (n < 10'000)
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(n));
  else if (n < 10'000'000)
    std::snprintf(text, sizeof text, "%.1f kB", static_cast<double>(n) / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(n) / 1e6);
  return text;
}

std::string small_number(double x) {
  if (x < 0) return "-";
  char text[40];
  std::snprintf(text, sizeof text, "%.1e", x);
  return text;
}

}  // namespace hone::cli
