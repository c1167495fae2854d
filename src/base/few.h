// A small vector: up to `inside` elements are stored in the object itself, more on the heap.
// Otherwise like std::vector, except that moving it moves the inline elements.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

namespace hone {

template <class T, std::uint32_t inside>
class Few {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  Few() noexcept : data_(room()) {}
  explicit Few(std::size_t n) : Few() { resize(n); }
  Few(std::size_t n, const T& value) : Few() { resize(n, value); }
  Few(std::initializer_list<T> list) : Few(list.begin(), list.end()) {}
  template <std::input_iterator I>
  Few(I first, I last) : Few() {
    append(first, last);
  }
  Few(const Few& o) : Few() { append(o.begin(), o.end()); }
  Few(Few&& o) noexcept : Few() { take(o); }
  Few& operator=(const Few& o) {
    if (this != &o) assign(o.begin(), o.end());
    return *this;
  }
  Few& operator=(Few&& o) noexcept {
    if (this == &o) return *this;
    release();
    take(o);
    return *this;
  }
  Few& operator=(std::initializer_list<T> list) {
    assign(list.begin(), list.end());
    return *this;
  }
  ~Few() { release(); }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  // Whether all elements are stored inline.
  bool is_inside() const { return data_ == room(); }
  T* data() { return data_; }
  const T* data() const { return data_; }
  iterator begin() { return data_; }
  iterator end() { return data_ + size_; }
  const_iterator begin() const { return data_; }
  const_iterator end() const { return data_ + size_; }
  auto rbegin() { return std::reverse_iterator(end()); }
  auto rend() { return std::reverse_iterator(begin()); }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& at(std::size_t i) { return data_[checked(i)]; }
  const T& at(std::size_t i) const { return data_[checked(i)]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t n) {
    if (n > capacity_) grow(n);
  }
  void clear() { shrink(0); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<Args>(args)...);  // the arguments may refer to elements of this list
      grow(size_ + 1);
      return *std::construct_at(data_ + size_++, std::move(value));
    }
    return *std::construct_at(data_ + size_++, std::forward<Args>(args)...);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  void pop_back() { shrink(size_ - 1); }
  void resize(std::size_t n) {
    if (n < size_) return shrink(n);
    reserve(n);
    while (size_ < n) std::construct_at(data_ + size_++);
  }
  void resize(std::size_t n, const T& value) {
    if (n < size_) return shrink(n);
    const T copy = value;
    reserve(n);
    while (size_ < n) std::construct_at(data_ + size_++, copy);
  }
  void assign(std::size_t n, const T& value) {
    const T copy = value;
    clear();
    resize(n, copy);
  }
  // The range must not be part of this list.
  template <std::input_iterator I>
  void assign(I first, I last) {
    clear();
    append(first, last);
  }
  iterator insert(const_iterator at, T value) {
    const std::ptrdiff_t i = at - begin();
    emplace_back(std::move(value));
    std::rotate(begin() + i, end() - 1, end());
    return begin() + i;
  }
  iterator insert(const_iterator at, std::size_t n, const T& value) {
    const std::ptrdiff_t i = at - begin();
    resize(size_ + n, value);
    std::rotate(begin() + i, end() - n, end());
    return begin() + i;
  }
  // The range must not be part of this list.
  template <std::input_iterator I>
  iterator insert(const_iterator at, I first, I last) {
    const std::ptrdiff_t i = at - begin(), old = end() - begin();
    append(first, last);
    std::rotate(begin() + i, begin() + old, end());
    return begin() + i;
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    iterator to = begin() + (first - begin());
    if (first == last) return to;  // avoids self-moves
    shrink(static_cast<std::size_t>(std::move(begin() + (last - begin()), end(), to) - begin()));
    return to;
  }

  friend bool operator==(const Few& a, const Few& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend auto operator<=>(const Few& a, const Few& b)
    requires std::three_way_comparable<T>
  {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* room() { return reinterpret_cast<T*>(room_); }
  const T* room() const { return reinterpret_cast<const T*>(room_); }
  std::size_t checked(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("Few::at");
    return i;
  }

  template <class I>
  void append(I first, I last) {
    if constexpr (std::forward_iterator<I>)
      reserve(size_ + static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) emplace_back(*first);
  }
  void shrink(std::size_t n) {
    std::destroy(data_ + n, data_ + size_);
    size_ = static_cast<std::uint32_t>(n);
  }
  void grow(std::size_t least) {
    const std::size_t n = std::max<std::size_t>(least, 2 * std::size_t{capacity_});
    T* to = std::allocator<T>().allocate(n);
    std::uninitialized_move(begin(), end(), to);
    std::destroy(begin(), end());
    free_heap();
    data_ = to;
    capacity_ = static_cast<std::uint32_t>(n);
  }
  void free_heap() {
    if (!is_inside()) std::allocator<T>().deallocate(data_, capacity_);
  }
  // Leaves the list empty, with inline storage.
  void release() {
    std::destroy(begin(), end());
    free_heap();
    data_ = room();
    size_ = 0;
    capacity_ = inside;
  }
  // This list must be empty and have no heap storage.
  void take(Few& o) {
    if (!o.is_inside()) {
      data_ = std::exchange(o.data_, o.room());
      size_ = std::exchange(o.size_, 0);
      capacity_ = std::exchange(o.capacity_, inside);
      return;
    }
    std::uninitialized_move(o.begin(), o.end(), data_);
    size_ = o.size_;
    o.clear();
  }

  T* data_;
  std::uint32_t size_ = 0, capacity_ = inside;
  alignas(T) std::byte room_[inside * sizeof(T)];
};

template <class T, std::uint32_t inside, class P>
std::size_t erase_if(Few<T, inside>& list, P unwanted) {
  auto first = std::remove_if(list.begin(), list.end(), unwanted);
  const auto n = static_cast<std::size_t>(list.end() - first);
  list.erase(first, list.end());
  return n;
}

}  // namespace hone
