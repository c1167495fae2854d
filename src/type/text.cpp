#include "type/text.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "base/error.h"

namespace hone {

namespace {

// Approximate overhead of the table per string.
constexpr std::size_t entry_bytes = 128;

class Table {
 public:
  std::uint64_t number(std::string_view text) {
    {
      std::shared_lock lock(mutex_);
      if (auto it = numbers_.find(text); it != numbers_.end()) return it->second;
    }
    std::unique_lock lock(mutex_);
    if (auto it = numbers_.find(text); it != numbers_.end()) return it->second;
    expect_room(text.size());
    const std::string& kept = texts_.emplace_back(text);
    const std::uint64_t number = first_ + texts_.size() - 1;
    numbers_.emplace(kept, number);
    bytes_ += text.size() + entry_bytes;
    return number;
  }

  const std::string* find(std::uint64_t number) {
    std::shared_lock lock(mutex_);
    if (number < first_ || number - first_ >= texts_.size()) return nullptr;
    return &texts_[static_cast<std::size_t>(number - first_)];
  }

  void forget() {
    std::unique_lock lock(mutex_);
    first_ += texts_.size();
    numbers_.clear();
    texts_.clear();
    bytes_ = 0;
  }

 private:
  void expect_room(std::size_t bytes) const {
    if (bytes > most_text_bytes / 8)
      throw UserError("strings: a string has ", bytes, " bytes, expected at most ",
                      most_text_bytes / 8, "; split it");
    if (bytes_ + bytes + entry_bytes > most_text_bytes)
      throw UserError("strings: ", texts_.size(), " strings use ", bytes_,
                      " bytes, and another of ", bytes, " exceeds the limit of ", most_text_bytes,
                      "; call forget_texts between runs");
  }

  std::shared_mutex mutex_;
  std::deque<std::string> texts_;  // deque elements never move
  std::unordered_map<std::string_view, std::uint64_t> numbers_;
  std::uint64_t first_ = 1;
  std::size_t bytes_ = 0;
};

Table& table() {
  static Table* it = new Table;  // never freed: must outlive readers during process exit
  return *it;
}

}  // namespace

std::uint64_t text_number(std::string_view text) { return text.empty() ? 0 : table().number(text); }

std::string_view text_of(std::uint64_t number) {
  if (number == 0) return {};
  if (const std::string* text = table().find(number)) return *text;
  throw UserError("strings: number ", number,
                  " is not a string of this process; make strings with text_number");
}

void forget_texts() { table().forget(); }

Array text_array(std::vector<std::int64_t> dims, std::span<const std::string_view> texts) {
  Array a = Array::zeros(DType::text, std::move(dims));
  HONE_ASSERT(a.count() == static_cast<std::int64_t>(texts.size()), "one text an element");
  const std::span<std::uint64_t> to = a.writable<std::uint64_t>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = text_number(texts[i]);
  return a;
}

}  // namespace hone
