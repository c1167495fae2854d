#include "backend/cpu/device/helpers.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/sanitizer.h"
#include "plan/binary.h"

// clang-format off
#define HONE_ADDRESS_HOOKS(HOOK)                                                            \
  HOOK(report_load1) HOOK(report_load2) HOOK(report_load4) HOOK(report_load8)               \
  HOOK(report_load16) HOOK(report_load_n) HOOK(report_store1) HOOK(report_store2)           \
  HOOK(report_store4) HOOK(report_store8) HOOK(report_store16) HOOK(report_store_n)         \
  HOOK(memcpy) HOOK(memmove) HOOK(memset) HOOK(handle_no_return)                            \
  HOOK(set_shadow_00) HOOK(set_shadow_f1) HOOK(set_shadow_f2) HOOK(set_shadow_f3)           \
  HOOK(set_shadow_f5) HOOK(set_shadow_f8)
#define HONE_THREAD_HOOKS(HOOK)                                                             \
  HOOK(func_entry) HOOK(func_exit) HOOK(read1) HOOK(read2) HOOK(read4) HOOK(read8)          \
  HOOK(read16) HOOK(write1) HOOK(write2) HOOK(write4) HOOK(write8) HOOK(write16)            \
  HOOK(unaligned_read2) HOOK(unaligned_read4) HOOK(unaligned_read8) HOOK(unaligned_read16)  \
  HOOK(unaligned_write2) HOOK(unaligned_write4) HOOK(unaligned_write8)                      \
  HOOK(unaligned_write16) HOOK(memcpy) HOOK(memmove) HOOK(memset)
// clang-format on

// Only addresses are taken, so the parameters do not matter.
#define HONE_DECLARE_ASAN(name) extern "C" void __asan_##name();
#define HONE_DECLARE_TSAN(name) extern "C" void __tsan_##name();
#ifdef HONE_ADDRESS_SANITIZER
HONE_ADDRESS_HOOKS(HONE_DECLARE_ASAN)
#endif
#ifdef HONE_THREAD_SANITIZER
HONE_THREAD_HOOKS(HONE_DECLARE_TSAN)
#endif

namespace hone {

namespace {

struct Named {
  std::string_view name;
  const void* address;
};

template <class Result, class... Parameters>
const void* address(Result (*f)(Parameters...)) {
  return reinterpret_cast<const void*>(f);
}

// The C functions write the sign to a global.
double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
float log_gamma_f(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}

// C++ overloads these names; the types pick the C function.
#define HONE_ONE(name)                                           \
  {#name, address(static_cast<double (*)(double)>(::name))}, {   \
    #name "f", address(static_cast<float (*)(float)>(::name##f)) \
  }
#define HONE_TWO(name)                                                  \
  {#name, address(static_cast<double (*)(double, double)>(::name))}, {  \
    #name "f", address(static_cast<float (*)(float, float)>(::name##f)) \
  }
#define HONE_ASAN(name) {"__asan_" #name, address(__asan_##name)},
#define HONE_TSAN(name) {"__tsan_" #name, address(__tsan_##name)},

const Named table[] = {
    {"memcpy", address(static_cast<void* (*)(void*, const void*, size_t)>(::memcpy))},
    {"memmove", address(static_cast<void* (*)(void*, const void*, size_t)>(::memmove))},
    {"memset", address(static_cast<void* (*)(void*, int, size_t)>(::memset))},
    HONE_TWO(fmod),
    HONE_TWO(pow),
    HONE_TWO(atan2),
    HONE_ONE(exp),
    HONE_ONE(expm1),
    HONE_ONE(log),
    HONE_ONE(log1p),
    HONE_ONE(sin),
    HONE_ONE(cos),
    HONE_ONE(tan),
    HONE_ONE(asin),
    HONE_ONE(acos),
    HONE_ONE(atan),
    HONE_ONE(sinh),
    HONE_ONE(cosh),
    HONE_ONE(tanh),
    HONE_ONE(asinh),
    HONE_ONE(acosh),
    HONE_ONE(atanh),
    HONE_ONE(erf),
    HONE_ONE(erfc),
    HONE_ONE(tgamma),
    {"lgamma", address(log_gamma)},
    {"lgammaf", address(log_gamma_f)},
#ifdef HONE_ADDRESS_SANITIZER
    HONE_ADDRESS_HOOKS(HONE_ASAN)
#endif
#ifdef HONE_THREAD_SANITIZER
        HONE_THREAD_HOOKS(HONE_TSAN)
#endif
};

std::vector<const void*> by_number() {
  std::vector<const void*> out;
  for (std::string_view name : helper_names()) {
    auto it = std::find_if(std::begin(table), std::end(table),
                           [&](const Named& n) { return n.name == name; });
    out.push_back(it == std::end(table) ? nullptr : it->address);
  }
  return out;
}

}  // namespace

const void* helper_address(std::uint32_t helper) {
  static const std::vector<const void*> addresses = by_number();
  return addresses.at(helper);
}

}  // namespace hone
