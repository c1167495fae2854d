#include "verify/kernel/trial.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <unordered_set>

#include "base/fault.h"
#include "base/large_memory.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "runtime/prepare.h"
#include "schedule/plan_builder.h"
#include "verify/kernel/edges.h"
#include "verify/masks.h"
#include "verify/sizes.h"

namespace hone {

namespace {

// Number of elements from the first to the last of a strided window.
std::int64_t extent(const std::vector<std::int64_t>& dims,
                    const std::vector<std::int64_t>& strides) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    last += (dims[i] - 1) * strides[i];
  }
  return last + 1;
}

std::vector<std::int64_t> numbers(const Dims& dims, const Sizing& sizes) {
  std::vector<std::int64_t> out;
  for (const Dim& d : dims) out.push_back(size_of(d, sizes));
  return out;
}

// Calls f(dense element, strided element) for every element. If neighbors in one are not neighbors
// in the other, goes by square tiles of both axes, so that each cache line is used once.
template <class F>
void for_each_place(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides,
                    F f) {
  if (dims.empty()) return f(0, 0);
  constexpr std::int64_t side = 16;
  const std::size_t last = dims.size() - 1;
  const auto near = static_cast<std::size_t>(std::ranges::min_element(strides) - strides.begin());
  std::vector<std::int64_t> dense(dims.size(), 1);
  for (std::size_t k = last; k > 0; --k) dense[k - 1] = dense[k] * dims[k];
  const std::int64_t row = dims[last], beside = dims[near];
  std::int64_t outer = 1;
  for (std::size_t k = 0; k < last; ++k) outer *= k == near ? 1 : dims[k];
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t from = 0, at = 0, rest = o;
    for (std::size_t k = last; k-- > 0;) {
      if (k == near) continue;
      from += rest % dims[k] * dense[k];
      at += rest % dims[k] * strides[k];
      rest /= dims[k];
    }
    if (near == last) {
      for (std::int64_t i = 0; i < row; ++i) f(from + i, at + i * strides[last]);
      continue;
    }
    for (std::int64_t first = 0; first < beside; first += side)
      for (std::int64_t i = 0; i < row; ++i)
        for (std::int64_t b = first; b < std::min(first + side, beside); ++b)
          f(from + b * dense[near] + i, at + b * strides[near] + i * strides[last]);
  }
}

// Calls f with an unsigned integer of the element's size.
template <class F>
void with_element(DType t, F f) {
  switch (byte_size(t)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      HONE_ASSERT(byte_size(t) == 8, t, " has ", byte_size(t), " bytes");
      return f(std::uint64_t{});
  }
}

}  // namespace

// The layout of one operand in its memory.
struct Trial::Place {
  DType dtype;
  std::vector<std::int64_t> dims, strides;

  std::int64_t count() const {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t bytes() const { return extent(dims, strides) * byte_size(dtype); }
  // Elements in front of it, such that it ends at a multiple of the alignment.
  std::int64_t before(std::int64_t alignment) const {
    return (alignment - bytes() % alignment) % alignment / byte_size(dtype);
  }
};

namespace {

using Place = Trial::Place;

Place place_of(const Type& t, const Dims& strides, const Sizing& sizes) {
  return {t.dtype, numbers(t.shape.dims, sizes), numbers(strides, sizes)};
}

bool is_dense(const Place& p) {
  std::int64_t step = 1;
  for (std::size_t i = p.dims.size(); i-- > 0;) {
    if (p.dims[i] != 1 && p.strides[i] != step) return false;
    step *= p.dims[i];
  }
  return true;
}

// The axes from slowest to fastest, if the elements are dense in another order of axes than their
// own.
std::vector<int> memory_order(const Place& p) {
  std::vector<int> order(p.dims.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [](auto& list, int axis) { return list[static_cast<std::size_t>(axis)]; };
  std::ranges::stable_sort(order, [&](int a, int b) {
    return std::pair(at(p.strides, a), at(p.dims, a)) > std::pair(at(p.strides, b), at(p.dims, b));
  });
  Place sorted{p.dtype, {}, {}};
  for (int axis : order) {
    sorted.dims.push_back(at(p.dims, axis));
    sorted.strides.push_back(at(p.strides, axis));
  }
  return is_dense(p) || !is_dense(sorted) ? std::vector<int>() : order;
}

template <class List>
List permuted(const List& list, const std::vector<int>& order) {
  List out;
  for (int axis : order) out.push_back(list[static_cast<std::size_t>(axis)]);
  return order.empty() ? list : out;
}

void spread(const Array& dense, const Place& p, std::byte* to) {
  const std::byte* from = dense.bytes().data();
  if (is_dense(p)) {
    std::copy(from, from + dense.bytes().size(), to);
    return;
  }
  with_element(p.dtype, [&]<class E>(E) {
    for_each_place(p.dims, p.strides, [&](std::int64_t i, std::int64_t at) {
      reinterpret_cast<E*>(to)[at] = reinterpret_cast<const E*>(from)[i];
    });
  });
}

Array gather(const Place& p, const std::byte* from) {
  Array out = Array::zeros(p.dtype, p.dims);
  std::byte* to = out.writable_bytes().data();
  with_element(p.dtype, [&]<class E>(E) {
    for_each_place(p.dims, p.strides, [&](std::int64_t i, std::int64_t at) {
      reinterpret_cast<E*>(to)[i] = reinterpret_cast<const E*>(from)[at];
    });
  });
  return out;
}

// A schedule of this one group whose operands are flat inputs and outputs of the plan. Parameters
// are views that end at a multiple of the alignment.
class TrialPlan {
 public:
  TrialPlan(const GroupSpec& spec, const Sizing& sizes, std::int64_t alignment)
      : spec_(spec), sizes_(sizes), alignment_(alignment) {}

  Plan build(const Candidate& candidate, KernelCode& compile, const std::vector<Array>& weights) {
    Plan plan;
    plan.name = "trial";
    schedule_.specs.emplace_back().spec = spec_;
    for (std::size_t i = 0; i < spec_.function.params().size(); ++i) add_param(plan, i, weights[i]);
    for (std::size_t i = 0; i < spec_.function.results().size(); ++i) add_result(plan, i);
    for (auto [result, param] : spec_.updates)
      update_in_place(static_cast<std::size_t>(result), static_cast<std::size_t>(param));
    Item item;
    item.group = 0;
    schedule_.items.push_back(item);
    schedule_.groups.push_back(group_);
    PlanBuilder builder(plan);
    plan.main().variants.push_back(builder.add(schedule_, std::span(&candidate, 1)));
    plan.main().variants[0].devices[0].target = compile.target().info().name;
    std::vector<const Kernel*> kernels;
    for (const Kernel& k : builder.kernels()) kernels.push_back(&k);
    std::vector<KernelCode::Compiled> code = compile(kernels);
    for (std::size_t i = 0; i < code.size(); ++i) {
      plan.kernels[i] = {static_cast<std::uint32_t>(plan.binaries.size()), code[i].entry,
                         code[i].key};
      plan.binaries.push_back(*code[i].binary);
    }
    return plan;
  }

 private:
  View view(const Type& t, const Dims& strides, std::int64_t before) {
    return {static_cast<std::uint32_t>(schedule_.slots.size()), before * byte_size(t.dtype),
            t.dtype, t.shape.dims, strides};
  }
  static Type flat(const Place& p, std::int64_t before) {
    return {p.dtype, Shape{Dim(before + extent(p.dims, p.strides))}};
  }

  void add_param(Plan& plan, std::size_t i, const Array& weight) {
    const Type t = spec_.function.param(i).type();
    const Place p = place_of(t, spec_.param_strides[i], sizes_);
    ++group_.param_count;
    if (spec_.param_is_weight[i]) {
      const std::int64_t before = weight.count() - extent(p.dims, p.strides);
      group_.views.push_back(view(t, spec_.param_strides[i], before));
      schedule_.slots.push_back({PlanBuffer::Kind::weight,
                                 static_cast<std::uint32_t>(schedule_.weights.size()),
                                 static_cast<std::int64_t>(weight.bytes().size()), 0});
      schedule_.weights.push_back({cat("weight", i), weight});
      return;
    }
    const std::int64_t before = p.before(alignment_);
    group_.views.push_back(view(t, spec_.param_strides[i], before));
    schedule_.slots.push_back({PlanBuffer::Kind::param,
                               static_cast<std::uint32_t>(plan.main().params.size()),
                               before * byte_size(p.dtype) + p.bytes(), 0});
    plan.main().params.push_back({cat("param", i), flat(p, before), false});
  }

  // Aligned, because stores that bypass the caches need that.
  void add_result(Plan& plan, std::size_t i) {
    const Type t = spec_.function.result(i).type();
    const Place p = place_of(t, spec_.result_strides[i], sizes_);
    group_.views.push_back(view(t, spec_.result_strides[i], 0));
    schedule_.slots.push_back({PlanBuffer::Kind::result,
                               static_cast<std::uint32_t>(plan.main().results.size()), p.bytes(),
                               0});
    plan.main().results.push_back({cat("result", i), flat(p, 0), false});
    plan.main().result_alias.push_back(-1);
    schedule_.results.push_back(flat(p, 0));
  }

  // The data that the result updates is there when the group begins.
  void update_in_place(std::size_t result, std::size_t param) {
    View &from = group_.views[param], &to = group_.views[group_.param_count + result];
    Item item;
    item.kind = Item::Kind::copy;
    item.reads = {from};
    item.writes = {to};
    schedule_.items.push_back(item);
    from = to;
  }

  const GroupSpec& spec_;
  const Sizing& sizes_;
  std::int64_t alignment_;
  Schedule schedule_;
  ScheduledGroup group_;
};

// Symbols cannot be bound by flat inputs: kernels of a trial get numbers.
Dims fixed(const Dims& dims, const Sizing& sizes) {
  Dims out;
  for (const Dim& d : dims) out.push_back(size_of(d, sizes));
  return out;
}

void fix_sizes(std::vector<Step>& steps, const Sizing& sizes) {
  for (Step& s : steps) {
    for (View& v : s.operands) {
      v.offset = size_of(v.offset, sizes);
      v.dims = fixed(v.dims, sizes);
      v.strides = fixed(v.strides, sizes);
    }
    s.scalars = fixed(s.scalars, sizes);
    s.chunks = size_of(s.chunks, sizes);
    s.scratch_bytes = size_of(s.scratch_bytes, sizes);
    fix_sizes(s.body, sizes);
    fix_sizes(s.otherwise, sizes);
  }
}

void fix_sizes(Plan& plan, const Sizing& sizes) {
  for (Variant& v : plan.main().variants) {
    for (PlanBuffer& b : v.buffers) {
      b.bytes = size_of(b.bytes, sizes);
      b.offset = size_of(b.offset, sizes);
    }
    fix_sizes(v.steps, sizes);
    fix_sizes(v.prepare, sizes);
    for (GroupRecord& g : v.groups) g.bytes = g.flops = 0;
    for (PlanDevice& d : v.devices) {
      d.arena_bytes = size_of(d.arena_bytes, sizes);
      d.arena_lower_bound = size_of(d.arena_lower_bound, sizes);
    }
  }
  for (PreparedBuffer& p : plan.prepared) p.type.shape.dims = fixed(p.type.shape.dims, sizes);
}

// Of bools in all contents, of other masks in those of Fill::hiding.
bool hides_rows(DType t, bool is_mask, Fill fill) {
  return t == DType::b1 || (is_mask && fill == Fill::hiding);
}

// Elements that a kernel fails to write must not look like a result.
constexpr std::byte unwritten{0xa5};

bool all_unwritten(const std::byte* from, std::size_t bytes) {
  return bytes == 0 || (*from == unwritten && std::memcmp(from, from + 1, bytes - 1) == 0);
}

}  // namespace

// Memory with a fence at both ends, for operands, arena and scratch. If requested and the memory is
// accessible to the host, the fence after it is an unreadable page.
class Trial::Fenced final : public Allocator {
 public:
  // Initial contents of new memory between the fences.
  enum class Content : std::uint8_t { unwritten, whatever };

  // Addresses are multiples of `alignment`. Without a device, uses host memory.
  Fenced(std::shared_ptr<TrialMemory> from, std::shared_ptr<Device> device, Use use,
         std::size_t alignment, Content content)
      : from_(std::move(from)),
        device_(std::move(device)),
        alignment_(alignment),
        content_(content) {
    if (device_ && !device_->shares_host_memory()) stream_ = device_->open_stream();
    ends_at_page_ = !stream_ && use == Use::check;
    if (stream_ && use == Use::check) beside_ = static_cast<std::int64_t>(alignment_);
  }

  DeviceMemory alloc(std::size_t bytes) override {
    if (ends_at_page_) return alloc_before_page(bytes);
    const std::size_t size = bytes + extra();
    const DeviceMemory all = from_->alloc(size);
    if (stream_) {
      stream_->fill(all, unwritten, size);
      stream_->synchronize();
      const DeviceMemory at = all + (fence + beside_);
      live_.push_back({at, bytes, all});
      return at;
    }
    unwrite(address(all), fence);
    unwrite(address(all) + fence + bytes, fence);
    if (content_ == Content::unwritten) unwrite(address(all) + fence, bytes);
    live_.push_back({all + fence, bytes, all});
    return all + fence;
  }
  void free(DeviceMemory at, std::size_t bytes) noexcept override {
    const auto m = std::ranges::find(live_, at, &Live::at);
    const DeviceMemory all = m->all;
    live_.erase(m);
    from_->free(all, bytes + extra());
  }

  // Without a stream.
  std::byte* address(DeviceMemory m) const {
    return device_ ? device_->host_address(m) : HostMemory::address(m);
  }

  bool is_intact() const {
    return std::ranges::all_of(live_, [&](const Live& m) {
      return is_fence(m.at + -fence, fence) &&
             is_fence(m.at + static_cast<std::int64_t>(m.bytes), m.behind);
    });
  }

 private:
  struct Live {
    DeviceMemory at;
    std::size_t bytes;
    DeviceMemory all;
    std::int64_t behind = fence;  // readable bytes of the fence
  };

  // Places the memory before the page as closely as the alignment allows; bytes in between are a
  // fence too.
  DeviceMemory alloc_before_page(std::size_t bytes) {
    const std::size_t padded = (bytes + alignment_ - 1) / alignment_ * alignment_;
    const TrialMemory::BeforePage all = from_->alloc_before_page(fence + padded);
    std::byte* content = all.page - padded;
    unwrite(content - fence, fence);
    unwrite(content + bytes, padded - bytes);
    if (content_ == Content::unwritten) unwrite(content, bytes);
    const DeviceMemory at = all.at + (content - all.begin);
    live_.push_back({at, bytes, all.at, static_cast<std::int64_t>(padded - bytes)});
    return at;
  }
  static void unwrite(std::byte* from, std::size_t bytes) {
    std::memset(from, static_cast<int>(unwritten), bytes);
  }
  bool is_fence(DeviceMemory at, std::int64_t size) const {
    if (!stream_) return all_unwritten(address(at), static_cast<std::size_t>(size));
    std::vector<std::byte> bytes(fence);
    stream_->download(bytes, at);
    stream_->synchronize();
    return all_unwritten(bytes.data(), fence);
  }

  std::size_t extra() const { return static_cast<std::size_t>(2 * fence + beside_); }

  static constexpr std::int64_t fence = 16 << 10;
  // For checks on a device with its own memory: no address is a multiple of twice the alignment.
  std::int64_t beside_ = 0;
  std::shared_ptr<TrialMemory> from_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::size_t alignment_;
  Content content_;
  bool ends_at_page_ = false;
  std::vector<Live> live_;
};

struct Trial::Operand {
  Place place;
  bool is_result = false;
  bool is_filter = false;  // always finite
  bool is_mask = false;
  std::vector<double> edges;
  std::vector<std::int64_t> flat_dims;  // with the elements in front
  OwnedMemory memory;
  bool repeats = false;                 // large: its numbers repeat in less memory, which is then
  std::shared_ptr<std::byte> repeated;  // read-only and ends at an unreadable page
  std::byte* address = nullptr;
  std::size_t bytes_before = 0;   // in front of its own
  std::optional<Hash128> before;  // digest of a parameter's memory

  std::byte* data() const { return address + bytes_before; }
  TensorRef ref() const { return {place.dtype, flat_dims, {address, bytes_before + bytes()}}; }
  std::size_t bytes() const { return static_cast<std::size_t>(place.bytes()); }
  std::optional<Hash128> digest() const {
    const std::span<const std::byte> all(data(), bytes());
    const auto known = is_dense(place) ? sample_digest(all, place.dtype) : std::nullopt;
    return known ? known : hash128(all);
  }

  // Returns the numbers as a dense array; for a dense parameter, that array itself.
  Array fill(Fill fill, std::uint64_t seed, std::int64_t draw = 0) {
    Array content = is_dense(place) ? dense() : Array::zeros(place.dtype, place.dims);
    const std::span<std::byte> to =
        is_dense(place) ? std::span(data(), bytes()) : content.writable_bytes();
    const std::int64_t count = place.count();
    sample(to, place.dtype, fill, seed_of_draw(seed, draw, count, place.dtype), edges);
    if (hides_rows(place.dtype, is_mask, fill)) hide_rows(to, place.dtype, place.dims, seed);
    if (!is_dense(place)) spread(content, place, data());
    before = digest();
    return content;
  }
  void forget() { std::memset(data(), static_cast<int>(unwritten), bytes()); }
  Array dense() const {
    if (!is_dense(place)) return gather(place, data());
    return {place.dtype, place.dims, Storage(nullptr, {data(), bytes()})};
  }

  bool is_untouched() const {
    if (repeats) return true;
    if (!all_unwritten(address, bytes_before)) return false;
    return is_result ? is_dense(place) || has_no_writes_between() : digest() == before;
  }
  bool has_no_writes_between() const {
    std::vector<std::byte> now(data(), data() + bytes());
    with_element(place.dtype, [&]<class E>(E mark) {
      std::memset(&mark, static_cast<int>(unwritten), sizeof mark);
      for_each_place(place.dims, place.strides, [&](std::int64_t, std::int64_t at) {
        reinterpret_cast<E*>(now.data())[at] = mark;
      });
    });
    return all_unwritten(now.data(), now.size());
  }
};

namespace {

// A large weight repeats its numbers, so it does not need memory for all of them. Not for timing:
// it would stay in the processor's cache.
std::optional<Array> sampled_large(DType t, const std::vector<std::int64_t>& dims,
                                   std::uint64_t seed) {
  const auto count =
      std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  const auto bytes = static_cast<std::size_t>(count * byte_size(t));
  // For smaller weights the system calls take longer than writing the numbers.
  constexpr std::size_t least_bytes = 4 << 20;
  if (bytes < least_bytes) return std::nullopt;
  std::vector<std::byte> content(sample_period_bytes);
  sample(content, t, Fill::random, seed);
  std::shared_ptr<std::byte> memory = repeated_memory(content, bytes);
  if (!memory) return std::nullopt;
  const std::span<const std::byte> all(memory.get(), bytes);
  return Array(t, dims, Storage(std::move(memory), all));
}

// 0 * inf in padding is unspecified, so filters are finite.
std::unordered_set<NodeId> made_into_filters(const Function& f) {
  Values filters;
  for (NodeId n : live_nodes(f))
    if (&f.graph().op(n) == &ops::conv) filters.push_back(f.graph().operands(n)[1]);
  const std::vector<NodeId> nodes = nodes_below(filters);
  return {nodes.begin(), nodes.end()};
}

}  // namespace

Trial::Trial(const GroupSpec& spec, const Candidate& candidate, KernelCode& compile,
             const std::shared_ptr<TrialMemory>& memory, const std::shared_ptr<ThreadPool>& pool,
             const Sizing& sizes, Fill fill, std::uint64_t seed, Use use)
    : spec_(spec),
      sizes_(sizes),
      use_(use),
      device_(memory->device()),
      alignment_(use == Use::check && device_->shares_host_memory() ? device_->limits().alignment
                                                                    : 1),
      pool_(pool),
      memory_(std::make_shared<Fenced>(memory, memory->device(), use,
                                       memory->device()->limits().alignment,
                                       Fenced::Content::unwritten)),
      // Aligned: a session copies other operands in each run, and where a kernel does not write,
      // the copy of a result holds the result of an earlier run.
      host_(memory->host() ? std::make_shared<Fenced>(memory->host(), nullptr, use, alignment_,
                                                      Fenced::Content::whatever)
                           : std::make_shared<Fenced>(memory, memory->device(), use, alignment_,
                                                      Fenced::Content::whatever)) {
  // A kernel may rely on the checks, as a reshape does on equal element counts.
  if (!checks_hold(spec.function.graph().checks(), sizes))
    throw UserError("no sizes were found that satisfy what the group requires of them");
  std::vector<Array> weights(spec.function.params().size());
  const std::unordered_set<NodeId> filters = made_into_filters(spec.function);
  std::vector<std::vector<double>> edges(spec.function.params().size());
  std::vector<bool> masks(spec.function.params().size());
  if (use == Use::check) {
    edges = edges_of_params(spec.function);
    masks = masks_of_params(spec.function);
  }
  for (std::size_t i = 0; i < spec.function.params().size(); ++i) {
    const Value param = spec.function.param(i);
    const Type t = param.type();
    if (spec.param_is_weight[i]) {
      weights[i] = add_weight(place_of(t, spec.param_strides[i], sizes), seed + i);
    } else {
      Operand& o = add_operand(t, spec.param_strides[i], false);
      o.is_filter = filters.contains(param.node());
      o.edges = std::move(edges[i]);
      o.is_mask = masks[i];
      has_mask_ = has_mask_ || o.is_mask;
      inputs_.push_back(fill_operand(o, o.is_filter ? Fill::random : fill, seed + i, 0));
    }
  }
  for (std::size_t i = 0; i < spec.function.results().size(); ++i)
    add_operand(spec.function.result(i).type(), spec.result_strides[i], true);
  plan_ = TrialPlan(spec, sizes, static_cast<std::int64_t>(alignment_))
              .build(candidate, compile, weights);
  fix_sizes(plan_, sizes);
  plan_.main().variants[0].devices[0].name = device_->name();
  prepare();
}

Trial::~Trial() = default;

std::vector<Array> Trial::sample_inputs(const GroupSpec& spec, const Sizing& sizes, Fill fill,
                                        std::uint64_t seed) {
  const std::unordered_set<NodeId> filters = made_into_filters(spec.function);
  const std::vector<std::vector<double>> edges = edges_of_params(spec.function);
  const std::vector<bool> masks = masks_of_params(spec.function);
  std::vector<Array> out;
  for (std::size_t i = 0; i < spec.function.params().size(); ++i) {
    const Value param = spec.function.param(i);
    const bool is_finite = spec.param_is_weight[i] || filters.contains(param.node());
    const Fill of_param = is_finite ? Fill::random : fill;
    Array& a = out.emplace_back(sample_array(param.type(), sizes, of_param, seed + i, edges[i]));
    if (a.dtype() != DType::b1 && hides_rows(a.dtype(), masks[i], of_param))
      hide_rows(a.writable_bytes(), a.dtype(), a.dims(), seed + i);
  }
  return out;
}

void Trial::allocate(Operand& o) const {
  o.memory = OwnedMemory(host_, std::max<std::size_t>(o.bytes_before + o.bytes(), 1));
  o.address = host_->address(o.memory.at());
  std::memset(o.address, static_cast<int>(unwritten), o.bytes_before);
}

Array Trial::fill_operand(Operand& o, Fill fill, std::uint64_t seed, std::int64_t draw) const {
  if (o.repeats) {
    std::vector<std::byte> period(sample_period_bytes);
    sample(period, o.place.dtype, fill, seed, o.edges);
    const std::size_t alignment = device_->limits().alignment, all = o.bytes_before + o.bytes(),
                      bytes = (all + alignment - 1) / alignment * alignment;
    o.repeated = repeated_memory(period, bytes);
    o.address = o.repeated.get();
    if (o.repeated) return o.dense();
    o.repeats = false;
    allocate(o);
  }
  return o.fill(fill, seed, draw);
}

void Trial::prepare() {
  session_.reset();
  auto plan = std::make_shared<Plan>(plan_);
  run_prepare(*plan, device_, pool_);
  SessionOptions options;
  options.pool = pool_;
  options.allocator = memory_;
  session_ = std::make_unique<Session>(Executable::load(plan, device_), options);
  std::size_t inputs = 0, outputs = 0;
  for (const auto& o : operands_)
    o->is_result ? session_->bind_output(outputs++, o->ref())
                 : session_->bind_input(inputs++, o->ref());
}

void Trial::run() {
  if (use_ == Use::time) return session_->compute();
  FaultScope faults;
  session_->run();
  if (!faults.what().empty()) throw UserError(faults.what());
}

std::int64_t Trial::extreme_draws() const {
  std::int64_t most = 1;
  for (const auto& o : operands_)
    if (!o->is_result && !o->is_filter)
      most = std::max(most, hone::extreme_draws(o->place.count(), o->place.dtype, o->edges.size()));
  return most;
}

void Trial::refill(Fill fill, std::uint64_t seed, std::int64_t draw) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (spec_.param_is_weight[i]) continue;
    Operand& o = *operands_[next++];
    if (o.is_filter) continue;
    inputs_[i] = fill_operand(o, fill, seed + i, draw);
    if (o.repeats) session_->bind_input(next - 1, o.ref());
  }
  for (; next < operands_.size(); ++next) operands_[next]->forget();
}

// Weights are finite, because 0 * inf in padding is unspecified. Returns them with the elements in
// front.
Array Trial::add_weight(const Place& p, std::uint64_t seed) {
  Array all;
  const auto made = [&](const std::vector<std::int64_t>& dims) {
    const auto count =
        std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
    const std::int64_t size = byte_size(p.dtype),
                       before = Place{p.dtype, {count}, {1}}.before(
                           static_cast<std::int64_t>(alignment_)),
                       bytes = count * size;
    const auto all_bytes = static_cast<std::size_t>(before * size + bytes);
    const auto memory = std::make_shared<OwnedMemory>(host_, std::max<std::size_t>(all_bytes, 1));
    std::byte* data = host_->address(memory->at());
    all = Array(p.dtype, {before + count}, Storage(memory, {data, all_bytes}));
    return Array(p.dtype, dims,
                 Storage(memory, {data + before * size, static_cast<std::size_t>(bytes)}));
  };
  const auto bytes_of = [](const Array& a) {
    return std::span(const_cast<std::byte*>(a.bytes().data()), a.bytes().size());
  };
  const std::vector<int> order = memory_order(p);
  const auto sampled = [&](const std::vector<std::int64_t>& dims) {
    if (use_ == Use::check)
      if (std::optional<Array> large = sampled_large(p.dtype, dims, seed)) {
        all = Array(p.dtype, {large->count()}, large->storage());
        return *large;
      }
    Array a = made(dims);
    sample(bytes_of(a), p.dtype, Fill::random, seed);
    return a;
  };
  const Array& dense = inputs_.emplace_back(sampled(permuted(p.dims, order)));
  if (is_dense(p) || !order.empty()) return all;
  Array spaced = made({extent(p.dims, p.strides)});
  if (spaced.count() > dense.count()) std::ranges::fill(bytes_of(spaced), std::byte{});
  spread(dense, p, bytes_of(spaced).data());
  return all;
}

Function Trial::of_inputs(const Function& f) const {
  Function out;
  Values arguments;
  for (std::size_t i = 0; i < f.params().size(); ++i) {
    Type t = f.param(i).type();
    const std::vector<int> order = spec_.param_is_weight[i]
                                       ? memory_order(place_of(t, spec_.param_strides[i], sizes_))
                                       : std::vector<int>();
    std::vector<int> back(order.size());
    for (std::size_t k = 0; k < order.size(); ++k)
      back[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
    t.shape.dims = permuted(t.shape.dims, order);
    const Value param = out.add_param(t, f.params()[i].name);
    arguments.push_back(order.empty() ? param : transpose_by(param, back));
  }
  for (const Value v : inline_call(out.graph(), f, arguments)) out.add_result(v);
  return out;
}

Trial::Operand& Trial::add_operand(const Type& t, const Dims& strides, bool is_result) {
  auto made = std::make_unique<Operand>();
  made->place = place_of(t, strides, sizes_);
  made->is_result = is_result;
  const std::int64_t before =
      is_result ? 0 : made->place.before(static_cast<std::int64_t>(alignment_));
  made->flat_dims = {before + extent(made->place.dims, made->place.strides)};
  made->bytes_before = static_cast<std::size_t>(before * byte_size(made->place.dtype));
  // For smaller ones the largest number of Fill::wide, which is last, is to be a single one.
  constexpr std::size_t least_repeated = 64 << 20;
  made->repeats = use_ == Use::check && !is_result && is_dense(made->place) &&
                  made->bytes() >= least_repeated && device_->shares_host_memory();
  if (!made->repeats) allocate(*made);
  if (is_result || !is_dense(made->place)) made->forget();
  return *operands_.emplace_back(std::move(made));
}

std::vector<Array> Trial::results() const {
  std::vector<Array> out;
  for (const auto& o : operands_)
    if (o->is_result) out.push_back(o->dense());
  return out;
}

bool Trial::is_unwritten(const Array& a, std::int64_t element) {
  const auto size = static_cast<std::size_t>(byte_size(a.dtype()));
  return all_unwritten(a.bytes().data() + static_cast<std::size_t>(element) * size, size);
}

void Trial::check_untouched() const {
  bool is_clean = memory_->is_intact() && host_->is_intact();
  for (const auto& o : operands_) is_clean = is_clean && o->is_untouched();
  if (!is_clean) throw UserError("it writes to memory that is not its result's");
}

}  // namespace hone
