// A handwritten plan of two entries over two states; its kernels are functions of the test program.
#pragma once

#include <cstring>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "test/runtime/plans.h"

namespace hone::test {

inline constexpr std::int64_t counter_length = 512;

inline std::stop_source* counter_stops = nullptr;  // stopped by the kernel `increment`

// y = x + 1
inline void increment(void* const* buffers, const std::int64_t*, std::int64_t, std::int64_t,
                      void*) {
  const auto* x = static_cast<const std::int64_t*>(buffers[0]);
  auto* y = static_cast<std::int64_t*>(buffers[1]);
  for (std::int64_t i = 0; i < counter_length; ++i) y[i] = x[i] + 1;
  if (counter_stops) counter_stops->request_stop();
}

// y = x
inline void copy_counter(void* const* buffers, const std::int64_t*, std::int64_t, std::int64_t,
                         void*) {
  std::memcpy(buffers[1], buffers[0], counter_length * sizeof(std::int64_t));
}

inline const Type row_type(DType::i64, {counter_length}), flag_type(DType::i64, {});

inline PlanEntry entry_of(std::string name, std::vector<PlanParam> params,
                          std::vector<PlanParam> results) {
  PlanEntry e = plan_of(std::move(params), std::move(results)).main();
  e.name = std::move(name);
  return e;
}

// States "first" and "second", equal after every whole update. Entry `update` adds one to the
// first, requires that its input is 0, and adds one to the second; `read` returns both.
inline Plan counters() {
  Plan p;
  p.name = "counters";
  p.states = {{"first", "model", row_type, 0}, {"second", "model", row_type, counter_length * 8}};
  add_kernels(p, {{"increment", increment}, {"copy", copy_counter}});
  const Dim bytes = counter_length * 8;
  const auto at = [](std::uint32_t buffer) { return dense(buffer, DType::i64, {counter_length}); };
  PlanEntry update = entry_of(
      "update", {{"first", row_type, true}, {"second", row_type, true}, {"fails", flag_type}},
      {{"next first", row_type}, {"next second", row_type}});
  update.result_alias = {0, 1};
  update.states = {0, 1, PlanEntry::no_state};
  using Kind = PlanBuffer::Kind;
  Variant& u = update.variants[0];
  u.buffers = {{Kind::param, 0, 0, bytes},
               {Kind::result, 0, 0, bytes},
               {Kind::param, 1, 0, bytes},
               {Kind::result, 1, 0, bytes},
               {Kind::param, 2, 0, 8}};
  Step requirement{.kind = Step::Kind::require, .name = "update: input 'fails'"};
  requirement.operands = {dense(4, DType::i64, {})};
  requirement.written = {false};
  requirement.scalars = {0, 0};
  u.steps = {launch_of(0, {at(0), at(1)}, {false, true}, {}), requirement,
             launch_of(0, {at(2), at(3)}, {false, true}, {})};
  PlanEntry read = entry_of("read", {{"first", row_type}, {"second", row_type}},
                            {{"a", row_type}, {"b", row_type}});
  read.states = {0, 1};
  Variant& r = read.variants[0];
  r.buffers = {{Kind::param, 0, 0, bytes},
               {Kind::result, 0, 0, bytes},
               {Kind::param, 1, 0, bytes},
               {Kind::result, 1, 0, bytes}};
  r.steps = {launch_of(1, {at(0), at(1)}, {false, true}, {}),
             launch_of(1, {at(2), at(3)}, {false, true}, {})};
  p.entries = {update, read};
  return p;
}

}  // namespace hone::test
