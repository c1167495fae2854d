#include "backend/vulkan/target/matrices.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "backend/vulkan/target/glsl.h"
#include "backend/vulkan/target/spirv.h"
#include "base/error.h"

namespace hone::vulkan {

namespace {

// The words of one instruction, without the first.
using Operands = std::span<const std::uint32_t>;

constexpr std::string_view extension_nv = "SPV_NV_cooperative_matrix",
                           extension_khr = "SPV_KHR_cooperative_matrix";

std::string_view text_of(Operands words) {
  const std::string_view all(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  return all.substr(0, all.find('\0'));
}

class Rewriting {
  using Words = std::vector<std::uint32_t>;

  // Opcodes of SPIR-V and of the two extensions.
  enum : std::uint32_t {
    op_extension = 10,
    op_capability = 17,
    op_constant_true = 41,
    op_constant_false = 42,
    op_constant = 43,
    op_spec_constant = 50,
    op_decorate = 71,
    decoration_spec_id = 1,
    capability_nv = 5357,
    capability_khr = 6022,
    type_nv = 5358,
    load_nv,
    store_nv,
    multiply_nv,
    length_nv,
    type_khr = 4456,
    load_khr,
    store_khr,
    multiply_khr,
    length_khr
  };

 public:
  explicit Rewriting(const std::vector<std::uint32_t>& from) : from_(from) {}

  static bool has_matrices(const Words& spirv) {
    bool has_any = false;
    for_each_instruction(spirv, [&](std::uint32_t op, std::size_t at) {
      has_any = has_any || (op == op_capability && spirv[at + 1] == capability_nv);
    });
    return has_any;
  }

  Words run() {
    find();
    out_.assign(from_.begin(), from_.begin() + first_instruction);
    first_number_ = out_[bound];
    out_[bound] += 3;
    for_each_instruction(from_, [&](std::uint32_t op, std::size_t at) {
      rewrite(op, Operands(from_).subspan(at + 1, (from_[at] >> 16) - 1));
    });
    return std::move(out_);
  }

 private:
  static constexpr std::size_t bound = 3;  // index of the id bound in the header

  void find() {
    for_each_instruction(from_, [&](std::uint32_t op, std::size_t at) {
      const std::uint32_t* words = &from_[at + 1];
      if (op == op_decorate && words[1] == decoration_spec_id) {
        const auto* use = std::ranges::find(c::matrix_rows, static_cast<int>(words[2]));
        if (use != std::end(c::matrix_rows))
          uses_[words[0]] = static_cast<std::uint32_t>(use - std::begin(c::matrix_rows));
      }
      if (op == op_spec_constant && uses_.contains(words[1])) number_type_ = words[0];
      if (op == op_constant_true || op == op_constant_false)
        truths_[words[1]] = op == op_constant_true;
    });
  }

  void put(std::uint32_t op, Operands words) {
    out_.push_back(static_cast<std::uint32_t>(words.size() + 1) << 16 | op);
    out_.insert(out_.end(), words.begin(), words.end());
  }
  void put(std::uint32_t op, std::initializer_list<std::uint32_t> words, Operands rest = {}) {
    Words all(words);
    all.insert(all.end(), rest.begin(), rest.end());
    put(op, all);
  }

  // The constant 0, 1 or 2.
  std::uint32_t number(std::uint32_t n) {
    if (!std::exchange(has_numbers_, true))
      for (std::uint32_t i = 0; i < 3; ++i) put(op_constant, {number_type_, first_number_ + i, i});
    return first_number_ + n;
  }
  // Row-major is 0, column-major 1.
  std::uint32_t layout(std::uint32_t is_by_columns) { return number(truths_.at(is_by_columns)); }

  void rewrite(std::uint32_t op, Operands w) {
    switch (op) {
      case op_capability:
        return put(op, {w[0] == capability_nv ? std::uint32_t{capability_khr} : w[0]});
      case op_extension: {
        if (text_of(w) != extension_nv) break;
        Words name(extension_khr.size() / 4 + 1);
        std::ranges::copy(extension_khr, reinterpret_cast<char*>(name.data()));
        return put(op, name);
      }
      case op_decorate:
        if (uses_.contains(w[0])) return;
        break;
      case op_spec_constant:
        if (uses_.contains(w[1])) return put(op_constant, w);
        break;
      case type_nv: {
        const std::uint32_t use = number(uses_.at(w[3]));
        return put(type_khr, {w[0], w[1], w[2], w[3], w[4], use});
      }
      case load_nv:
        return put(load_khr, {w[0], w[1], w[2], layout(w[4]), w[3]}, w.subspan(5));
      case store_nv:
        return put(store_khr, {w[0], w[1], layout(w[3]), w[2]}, w.subspan(4));
      case multiply_nv:
        return put(multiply_khr, w);
      case length_nv:
        return put(length_khr, w);
      default:
        break;
    }
    put(op, w);
  }

  const Words& from_;
  Words out_;
  std::map<std::uint32_t, std::uint32_t> uses_;  // use of matrices, by the constant of their rows
  std::map<std::uint32_t, bool> truths_;
  std::uint32_t number_type_ = 0, first_number_ = 0;
  bool has_numbers_ = false;
};

}  // namespace

std::vector<std::uint32_t> with_khronos_matrices(std::vector<std::uint32_t> spirv) {
  return Rewriting::has_matrices(spirv) ? Rewriting(spirv).run() : std::move(spirv);
}

}  // namespace hone::vulkan
