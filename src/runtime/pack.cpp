#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "runtime/bound.h"
#include "runtime/prepare.h"

namespace hone {

namespace {

class ConstantPacker {
 public:
  ConstantPacker(Plan& plan, Device& device)
      : plan_(plan), device_(device), symbols_(input_symbols(plan)) {
    for (const Dim& s : symbols_) {
      least_.push_back(std::clamp<std::int64_t>(1, s.low(), s.high()));
      typical_.push_back(std::clamp<std::int64_t>(64, s.low(), s.high()));
    }
  }

  void run() {
    const int best = device_.rank(device_.description());
    for (Variant& v : plan_.variants) {
      if (device_.rank(v.target) != best && v.target != "any") continue;
      packed_.clear();
      pack(v, v.steps);
    }
  }

 private:
  void pack(Variant& v, std::vector<Step>& steps) {
    for (Step& s : steps) {
      if (s.kind == Step::Kind::library) pack(v, s);
      pack(v, s.body);
      pack(v, s.otherwise);
    }
  }

  void pack(Variant& v, Step& s) {
    const std::optional<Packing> packing = packing_of(s);
    if (!packing) return;
    View& constant = s.operands[packing->operand];
    const PlanBuffer::Kind kind = v.buffers[constant.buffer].kind;
    if (kind != PlanBuffer::Kind::weight && kind != PlanBuffer::Kind::prepared) return;
    constant = packed_view(v, constant, *packing);
    s.settings.insert(s.settings.end(), packing->settings.begin(), packing->settings.end());
  }

  // What the library wants, when it wants the same for small sizes and for larger ones.
  std::optional<Packing> packing_of(const Step& s) const {
    const std::optional<Packing> a = packing_for(s, least_);
    if (!a || symbols_.empty()) return a;
    const std::optional<Packing> b = packing_for(s, typical_);
    const bool agree =
        b && a->bytes == b->bytes && a->operand == b->operand && a->settings == b->settings;
    return agree ? b : std::nullopt;
  }

  std::optional<Packing> packing_for(const Step& s, const std::vector<std::int64_t>& sizes) const
      try {
    std::vector<CallOperand> operands;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      operands.push_back({s.operands[i].dtype, numbers(s.operands[i].dims, sizes),
                          numbers(s.operands[i].strides, sizes), s.written[i]});
    return device_.packing({s.name, operands, s.settings});
  } catch (const UserError&) {
    return std::nullopt;  // sizes that this step does not serve; it is refused when it is reached
  }

  std::vector<std::int64_t> numbers(const Dims& dims,
                                    const std::vector<std::int64_t>& sizes) const {
    std::vector<std::int64_t> out;
    for (const Dim& d : dims) {
      out.push_back(evaluate(d, symbols_, sizes));
      if (out.back() < 0) throw UserError("plan: size ", out.back(), " is negative");
    }
    return out;
  }

  // Calls that want the same of one constant share it.
  View packed_view(Variant& v, const View& constant, const Packing& packing) {
    std::string key = cat(constant.buffer, ' ', constant.offset, ' ', Shape(constant.strides));
    for (const auto& [name, value] : packing.settings) key += cat(' ', name, '=', value);
    const auto bytes = static_cast<std::int64_t>(packing.bytes);
    const auto [it, is_new] =
        packed_.try_emplace(key, static_cast<std::uint32_t>(v.buffers.size()));
    const View packed{it->second, 0, DType::u8, {bytes}, {1}};
    if (!is_new) return packed;
    v.buffers.push_back(
        {PlanBuffer::Kind::prepared, static_cast<std::uint32_t>(plan_.prepared.size()), 0, bytes});
    plan_.prepared.push_back({cat("packed", plan_.prepared.size()), Type(DType::u8, {bytes}), {}});
    Step fill{.kind = Step::Kind::library, .name = packing.pack_name};
    fill.operands = {constant, packed};
    fill.written = {false, true};
    fill.settings = packing.pack_settings;
    v.prepare.push_back(std::move(fill));
    return packed;
  }

  Plan& plan_;
  Device& device_;
  std::vector<Dim> symbols_;
  std::vector<std::int64_t> least_, typical_;
  std::map<std::string, std::uint32_t> packed_;  // buffers, by what they hold
};

}  // namespace

void pack_constants(Plan& plan, Device& device) { ConstantPacker(plan, device).run(); }

}  // namespace hone
