/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The one parser of what people type as numbers, and the formatters for what they read.
 *
 * Strict: the whole text, or nothing. No sign, no blanks around, no exponent, no inf, no nan; a decimal fraction is
 * taken only where it comes out exact ("1.5us" is 1500 ns, "1.5ns" is refused). One blank may stand between number and
 * unit, so that whatever a formatter below has written can be read again.
 *
 * All return 0, -EINVAL (no such number) or -ERANGE (it does not fit 64 bits), and then one line that quotes the text
 * and names the remedy; the result is left alone.
 */
#ifndef KTRXER_LIB_UNITS_H
#define KTRXER_LIB_UNITS_H

#include <ktrxer.h>

int ktrxer_parse_u64(uint64_t *value, const char *text, struct ktrxer_error *err); /* 10, 10k, 1.5M, 2G, 0x10 */
int ktrxer_parse_i64(int64_t *value, const char *text, struct ktrxer_error *err);  /* the same with an optional '-' */
int ktrxer_parse_duration(uint64_t *ns, const char *text,
			  struct ktrxer_error *err); /* 250us, 1.5s, 2m, 1h; bare: seconds */
int ktrxer_parse_bitrate(uint64_t *bit_s, const char *text,
			 struct ktrxer_error *err); /* 10M, 9.5Mbit, 1Gbit/s; bare: bit/s */
int ktrxer_parse_size(uint64_t *bytes, const char *text,
		      struct ktrxer_error *err); /* 64, 64k (1000), 64Ki (1024), 64KiB */
/*
 * 36k, 100/s, 6000/m, 0.5, 36kpps: num/den a second, in lowest terms, never zero, its gap within 64 bits
 * (ktrxer_rate_gap).
 */
int ktrxer_parse_rate(uint64_t *num, uint64_t *den, const char *text, struct ktrxer_error *err);
/* 28..1428/50, 28..1428 (step 1), 64 (from == to); each a size. Never empty, the step never 0. */
int ktrxer_parse_range(uint64_t *from, uint64_t *to, uint64_t *step, const char *text, struct ktrxer_error *err);

/* The gap of a rate, gap_num/gap_den ns in lowest terms. -ERANGE: the rate is zero, or the gap passes 64 bits. */
int ktrxer_rate_gap(uint64_t num, uint64_t den, uint64_t *gap_num, uint64_t *gap_den);

#define KTRXER_UNITS_TEXT 48

/* For people, three decimals: "17 ns", "1.234 ms", "-2.500 us", "83.000 s". */
const char *ktrxer_format_ns(char text[KTRXER_UNITS_TEXT], int64_t ns);
/* Exact, the shortest with one unit, reads back to the same: "10ms", "1500us", "2s", "0s". */
const char *ktrxer_format_duration(char text[KTRXER_UNITS_TEXT], uint64_t ns);
const char *ktrxer_format_bitrate(char text[KTRXER_UNITS_TEXT], uint64_t bit_s); /* "9.500 Mbit/s" */
const char *ktrxer_format_size(char text[KTRXER_UNITS_TEXT], uint64_t bytes);    /* "512 B", "1.500 MiB" */

#endif
