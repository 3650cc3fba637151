/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_LIB_ERROR_H
#define KTRXER_LIB_ERROR_H

#include <ktrxer.h>

#include <stdarg.h>
#include <stdbool.h>

/*
 * Fills `err` (may be NULL) with `code` (a negative errno) and the text, and returns `code`:
 *     return ktrxer_fail(err, -ENODEV, "device '%s': no such device; `ip link` lists them", name);
 * %m in the format is the C library's text for `code`; errno stays as it was.
 * A text that is too long loses its middle (ktrxer_text_va()). Control characters (names come from users) are replaced
 * by '?'.
 */
int ktrxer_fail(struct ktrxer_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * vsnprintf() for messages: of a text that does not fit, " ... " takes the place of a part of the middle, because the
 * end says what to do.
 */
void ktrxer_text_va(char *to, size_t size, const char *format, va_list args) __attribute__((format(printf, 3, 0)));
void ktrxer_text(char *to, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Control characters, which a terminal would execute, become '?': text from packets, hosts and names of files may have
 * them. `lines`: line feeds and tabs stay.
 */
void ktrxer_text_clean(char *text, bool lines);

/* Why this host sends no ICMP echo request for an ordinary user: one text for the engine and for `ktrxer doctor`. */
#define KTRXER_PING_CLOSED                                                                                             \
	"ping sockets are closed to this group and raw sockets need CAP_NET_RAW: `echo \"0 2147483647\" | sudo tee "   \
	"/proc/sys/net/ipv4/ping_group_range` opens them to all until the next boot"

/* The C library's word for a negative errno; thread safe, into a caller's buffer. */
const char *ktrxer_strerror(int code, char *text, size_t size);

#endif
