// Which sanitizer this is compiled for, in one word for all compilers: GCC defines a macro for it,
// and Clang 14 answers __has_feature().
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define LEV_UNDER_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define LEV_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEV_UNDER_ASAN 1
#elif __has_feature(thread_sanitizer)
#define LEV_UNDER_TSAN 1
#endif
#endif
