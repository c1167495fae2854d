// Which sanitizer this build uses, so that generated code can be instrumented in the same way.
#pragma once

namespace hone {

#if defined(__SANITIZE_ADDRESS__)
#define HONE_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define HONE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HONE_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define HONE_THREAD_SANITIZER 1
#endif
#endif

#ifdef HONE_ADDRESS_SANITIZER
inline constexpr bool with_address_sanitizer = true;
#else
inline constexpr bool with_address_sanitizer = false;
#endif
#ifdef HONE_THREAD_SANITIZER
inline constexpr bool with_thread_sanitizer = true;
#else
inline constexpr bool with_thread_sanitizer = false;
#endif

}  // namespace hone
