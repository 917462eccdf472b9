/* Whether this is built with a sanitizer: tests that only repeat something at a larger size then do less. */
#ifndef PSLD_TESTS_SANITIZED_H
#define PSLD_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PSLD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PSLD_SANITIZED 1
#endif
#endif

#ifndef PSLD_SANITIZED
#define PSLD_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define PSLD_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PSLD_THREAD_SANITIZED 1
#endif
#endif

#ifndef PSLD_THREAD_SANITIZED
#define PSLD_THREAD_SANITIZED 0
#endif

#endif
