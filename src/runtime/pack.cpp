#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "runtime/bound.h"
#include "runtime/prepare.h"
#include "runtime/sizes.h"

namespace hone {

namespace {

class ConstantPacker {
 public:
  ConstantPacker(Plan& plan, Device& device) : plan_(plan), device_(device) {}

  void run() {
    const int best = device_.rank(device_.description());
    for (PlanEntry& e : plan_.entries) {
      symbols_ = all_symbols(e);
      for (Variant& v : e.variants)
        for (std::size_t i = 0; i < v.devices.size(); ++i) {
          const PlanDevice& d = v.devices[i];
          const bool is_ours = d.name.empty() || d.name == device_.name();
          if (!is_ours || (device_.rank(d.target) != best && d.target != "any")) continue;
          packed_.clear();
          at_ = static_cast<std::uint16_t>(i);
          if (choose_sizes(v)) pack(v, v.steps);
        }
    }
  }

 private:
  void pack(Variant& v, std::vector<Step>& steps) {
    for (Step& s : steps) {
      if (s.kind == Step::Kind::library && s.device == at_) pack(v, s);
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

  // Small and larger sizes that the variant serves.
  bool choose_sizes(const Variant& v) {
    std::vector<std::vector<std::int64_t>> served;
    std::vector<std::int64_t> at;
    tried_ = 0;
    collect_sizes(v, at, served);
    if (served.empty()) return false;
    least_ = served.front();
    larger_ = served[served.size() / 2];
    return true;
  }

  // Tries for each symbol the size that a guard demands, or powers of two.
  void collect_sizes(const Variant& v, std::vector<std::int64_t>& at,
                     std::vector<std::vector<std::int64_t>>& served) {
    if (served.size() >= most_served || tried_ >= most_tried) return;
    if (at.size() == symbols_.size()) {
      ++tried_;
      if (serves(v, at)) served.push_back(at);
      return;
    }
    const Dim& symbol = symbols_[at.size()];
    const std::optional<std::int64_t> demanded = demanded_size(v, symbol);
    const std::int64_t first =
        demanded.value_or(std::clamp<std::int64_t>(1, symbol.low(), symbol.high()));
    for (std::int64_t n = first; n <= symbol.high() && n <= most_size; n *= 2) {
      at.push_back(n);
      collect_sizes(v, at, served);
      at.pop_back();
      if (n == 0 || demanded) break;
    }
  }

  static std::optional<std::int64_t> demanded_size(const Variant& v, const Dim& symbol) {
    for (const Guard& g : v.guards) {
      if (g.kind != Guard::Kind::equal) continue;
      if (g.a == symbol && g.b.is_number()) return g.b.number();
      if (g.b == symbol && g.a.is_number()) return g.a.number();
    }
    return std::nullopt;
  }

  bool serves(const Variant& v, const std::vector<std::int64_t>& sizes) const try {
    return std::all_of(v.guards.begin(), v.guards.end(), [&](const Guard& g) {
      return holds(g, evaluate(g.a, symbols_, sizes), evaluate(g.b, symbols_, sizes));
    });
  } catch (const UserError&) {
    return false;
  }

  // The packing for the library, if both sizes need the same one.
  std::optional<Packing> packing_of(const Step& s) const {
    const std::optional<Packing> a = packing_for(s, least_);
    if (symbols_.empty()) return a;
    const std::optional<Packing> b = packing_for(s, larger_);
    if (!a || !b) return a ? a : b;  // one of the sizes does not reach this branch
    const bool agree = a->bytes == b->bytes && a->operand == b->operand && a->form == b->form;
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

  // Calls that need the same packing of one constant share it.
  View packed_view(Variant& v, const View& constant, const Packing& packing) {
    std::string key = cat(constant.buffer, ' ', constant.offset, ' ', Shape(constant.strides));
    key += cat(' ', packing.pack_name, ' ', packing.form, ' ', packing.bytes);
    const auto bytes = static_cast<std::int64_t>(packing.bytes);
    const auto [it, is_new] =
        packed_.try_emplace(key, static_cast<std::uint32_t>(v.buffers.size()));
    const View packed{it->second, 0, DType::u8, {bytes}, {1}};
    if (!is_new) return packed;
    v.buffers.push_back({PlanBuffer::Kind::prepared,
                         static_cast<std::uint32_t>(plan_.prepared.size()), 0, bytes, at_});
    plan_.prepared.push_back({cat("packed", plan_.prepared.size()), Type(DType::u8, {bytes}), {}});
    Step fill{.kind = Step::Kind::library, .device = at_, .name = packing.pack_name};
    fill.operands = {constant, packed};
    fill.written = {false, true};
    fill.settings = packing.pack_settings;
    v.prepare.push_back(std::move(fill));
    return packed;
  }

  // Variants of many symbols may serve none of the sizes that are tried.
  static constexpr std::size_t most_served = 1000, most_tried = 20'000;
  static constexpr std::int64_t most_size = 1 << 14;
  Plan& plan_;
  Device& device_;
  std::uint16_t at_ = 0;  // the device's index in the current variant
  Dims symbols_;
  std::size_t tried_ = 0;
  std::vector<std::int64_t> least_, larger_;
  std::map<std::string, std::uint32_t> packed_;  // buffers by content
};

}  // namespace

void pack_constants(Plan& plan, Device& device) { ConstantPacker(plan, device).run(); }

}  // namespace hone
