/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Errors, time, addresses, for all other headers. The conventions are in <ktrxer.h>, which includes this. */
#ifndef KTRXER_BASE_H
#define KTRXER_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KTRXER_API __attribute__((visibility("default")))
#else
#define KTRXER_API
#endif

/*
 * The version of this interface. An addition after 1.0 raises MINOR and comes with a macro KTRXER_HAS_NAME, so that a
 * program can be compiled with older headers (#ifdef). A change that breaks programs raises MAJOR, and the version of
 * the library's symbols.
 */
#define KTRXER_INTERFACE_MAJOR 1
#define KTRXER_INTERFACE_MINOR 0

#define KTRXER_ERROR_TEXT 256

struct ktrxer_error {
	int code;                     /* negative errno, 0 when nothing went wrong */
	char text[KTRXER_ERROR_TEXT]; /* one line, no newline at its end */
};

/* The version of the library, for example "0.1.0": a constant string. */
KTRXER_API const char *ktrxer_version(void);

#define KTRXER_NS_PER_US 1000LL
#define KTRXER_NS_PER_MS 1000000LL
#define KTRXER_NS_PER_S 1000000000LL
#define KTRXER_NEVER UINT64_MAX

/* CLOCK_MONOTONIC. */
KTRXER_API uint64_t ktrxer_now_ns(void);

/* CLOCK_REALTIME and CLOCK_MONOTONIC at one instant. */
struct ktrxer_clock_pair {
	uint64_t mono_ns;  /* the instant */
	int64_t real_ns;   /* CLOCK_REALTIME at that instant */
	uint32_t bound_ns; /* largest error of real_ns, in both directions */
};

/* Reads both clocks. Takes some hundred nanoseconds. */
KTRXER_API void ktrxer_clock_pair_read_sized(struct ktrxer_clock_pair *pair, size_t size);
static inline void ktrxer_clock_pair_read(struct ktrxer_clock_pair *pair)
{
	ktrxer_clock_pair_read_sized(pair, sizeof *pair);
}

struct ktrxer_addr {
	uint8_t family;    /* AF_INET, AF_INET6, or 0: none */
	uint8_t bytes[16]; /* network order; the first 4 for AF_INET */
	uint32_t scope_id; /* of a link-local IPv6 address, else 0 */
};

#define KTRXER_ADDR_TEXT 64

/*
 * "192.0.2.1", "2001:db8::1", "fe80::1%eth0"; no host names. 0; -EINVAL: not an address; -ENODEV: no device of the name
 * behind %.
 */
KTRXER_API int ktrxer_addr_parse(struct ktrxer_addr *addr, const char *text);
/* The same with an optional port: "192.0.2.1:7", "[2001:db8::1]:7"; *port keeps its value where there is none. */
KTRXER_API int ktrxer_addr_port_parse(struct ktrxer_addr *addr, uint16_t *port, const char *text);
/* Writes the address without a port, and returns `text`. */
KTRXER_API const char *ktrxer_addr_format(const struct ktrxer_addr *addr, char text[KTRXER_ADDR_TEXT]);
/* Of one family, with the same bytes and scope. */
KTRXER_API bool ktrxer_addr_equal(const struct ktrxer_addr *a, const struct ktrxer_addr *b);
/* Private, link-local, loopback or documentation space: no other network receives probes to it, at whatever rate. */
KTRXER_API bool ktrxer_addr_is_local_use(const struct ktrxer_addr *addr);

#ifdef __cplusplus
}
#endif
#endif
