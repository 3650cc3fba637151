/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "units.h"

#include "error.h"
#include "wide.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A decimal number as written: mantissa / 10^scale, without zeros at the end of the fraction. */
struct decimal {
	uint64_t mantissa;
	unsigned int scale;
};

struct unit {
	const char *name;
	uint64_t factor;
};

/* The kind of a value, for messages: "is not a duration", "write 10ms, ...". */
struct kind {
	const char *noun;
	const char *forms;
	const char *finer; /* the smallest unit, as a sentence ends with it */
	const struct unit *units;
};

#define NS_PER_MINUTE (60 * KTRXER_NS_PER_S)
#define NS_PER_HOUR (60 * NS_PER_MINUTE)

static const struct unit count_units[] = { { "", 1 }, { "k", 1000 }, { "M", 1000000 }, { "G", 1000000000 }, { NULL } };
static const struct unit duration_units[] = {
	{ "", KTRXER_NS_PER_S },
	{ "ns", 1 },
	{ "us", KTRXER_NS_PER_US },
	{ "\xc2\xb5s", KTRXER_NS_PER_US }, /* micro sign */
	{ "\xce\xbcs", KTRXER_NS_PER_US }, /* Greek mu, which looks the same */
	{ "ms", KTRXER_NS_PER_MS },
	{ "s", KTRXER_NS_PER_S },
	{ "m", NS_PER_MINUTE },
	{ "min", NS_PER_MINUTE },
	{ "h", NS_PER_HOUR },
	{ "d", 24 * NS_PER_HOUR },
	{ NULL },
};
static const struct unit bitrate_units[] = {
	{ "", 1 }, { "k", 1000 }, { "M", 1000000 }, { "G", 1000000000 }, { "T", 1000000000000 }, { NULL },
};
static const struct unit size_units[] = {
	{ "", 1 },      { "k", 1000 },     { "M", 1000000 },  { "G", 1000000000 },  { "T", 1000000000000 },
	{ "Ki", 1024 }, { "Mi", 1 << 20 }, { "Gi", 1 << 30 }, { "Ti", 1ULL << 40 }, { NULL },
};
/* Per how long, in seconds; the number before it is a count. */
static const struct unit per_units[] = {
	{ "", 1 }, { "/s", 1 }, { "/m", 60 }, { "/min", 60 }, { "/h", 3600 }, { NULL }
};

static const struct kind a_count = { "number", "10, 10k, 1.5M or 0x10", "1", count_units };
static const struct kind a_duration = { "duration", "10ms, 1.5s, 250us, 2m or 1h", "a nanosecond", duration_units };
static const struct kind a_bitrate = { "bit rate", "10M, 1G, 9.5Mbit or 500kbit/s", "a bit per second", bitrate_units };
static const struct kind a_size = { "size", "64, 64k (1000) or 64Ki (1024)", "a byte", size_units };
static const struct kind a_rate = { "rate", "36k, 100/s, 6000/m or 0.5 (probes a second)", NULL, count_units };
static const struct kind a_range = { "range", "28..1428/50, 28..1428 or 64", "a byte", size_units };

/* Enough of what was typed to find it again; a message holds no more. */
#define QUOTE "'%.48s%s'"
#define QUOTED(text) (text), (strlen(text) > 48 ? "..." : "")

static int refuse(struct ktrxer_error *err, const char *text, const struct kind *kind, const char *why)
{
	return ktrxer_fail(err, -EINVAL, QUOTE " is not a %s: %s; write for example %s", QUOTED(text), kind->noun, why,
			   kind->forms);
}

static int refuse_large(struct ktrxer_error *err, const char *text, const struct kind *kind)
{
	return ktrxer_fail(err, -ERANGE, QUOTE " is too large for a %s: it does not fit 64 bits", QUOTED(text),
			   kind->noun);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Reads digits[.digits]; returns where it stopped, NULL (and *why) when there is no number or it has more digits than
 * 64 bits hold.
 */
static const char *decimal_read(struct decimal *number, const char *at, const char **why)
{
	bool any = false;
	unsigned int zeros = 0; /* of the fraction, held back until another digit follows: "1.500" is "1.5" */

	*number = (struct decimal){ 0 };
	*why = NULL;
	for (; is_digit(*at); at++, any = true)
		if (__builtin_mul_overflow(number->mantissa, 10, &number->mantissa) ||
		    __builtin_add_overflow(number->mantissa, (uint64_t)(*at - '0'), &number->mantissa))
			return NULL;
	if (!any) {
		*why = *at == '-' ? "it is negative" : "no digits at its beginning";
		return NULL;
	}
	if (*at != '.' || at[1] == '.') /* "28..1428" is a range */
		return at;
	at++;
	if (!is_digit(*at)) {
		*why = "no digits after the point";
		return NULL;
	}
	for (; is_digit(*at); at++) {
		if (*at == '0') {
			zeros++;
			continue;
		}
		for (zeros++; zeros; zeros--) {
			if (__builtin_mul_overflow(number->mantissa, 10, &number->mantissa) || number->scale >= 19) {
				*why = "its fraction has too many digits";
				return NULL;
			}
			number->scale++;
		}
		if (__builtin_add_overflow(number->mantissa, (uint64_t)(*at - '0'), &number->mantissa)) {
			*why = "its fraction has too many digits";
			return NULL;
		}
	}
	return at;
}

static uint64_t power_of_ten(unsigned int exponent)
{
	uint64_t value = 1;

	while (exponent--)
		value *= 10;
	return value; /* 10^19 still fits */
}

/* number * factor as num/den in lowest terms. False: num passes 64 bits. */
static bool decimal_scale(const struct decimal *number, uint64_t factor, uint64_t *num, uint64_t *den)
{
	uint64_t below = power_of_ten(number->scale), above = number->mantissa, common = common_divisor(above, below);

	above /= common;
	below /= common;
	common = common_divisor(factor, below);
	*den = below / common;
	return !__builtin_mul_overflow(above, factor / common, num);
}

static const char *unit_hint(const struct kind *kind, const char *unit, char *text, size_t size)
{
	const char *hint = "";

	if (*unit == 'e' || *unit == 'E')
		hint = " (exponents are not read)";
	else if (kind->units != duration_units && (!strcmp(unit, "K") || !strcmp(unit, "KB")))
		hint = kind->units == size_units ? " (k is 1000, Ki is 1024)" : " (a small k is 1000)";
	else if (kind->units != duration_units && *unit == 'm')
		hint = " (a capital M is a million)";
	else if (kind->units == duration_units && (*unit == 'M' || *unit == 'S' || *unit == 'H'))
		hint = " (units are small letters)";
	else if (kind->units == duration_units && is_digit(unit[1]))
		hint = " (one unit only)";
	snprintf(text, size, "unknown unit '%.16s'%s", unit, hint);
	return text;
}

/* The unit from `at` to the end of the text, `tail` (e.g. "bit/s") allowed after it. NULL when there is none such. */
static const struct unit *unit_find(const struct unit *units, const char *at, const char *const *tails)
{
	for (const struct unit *unit = units; unit->name; unit++) {
		size_t length = strlen(unit->name);

		if (strncmp(at, unit->name, length) != 0)
			continue;
		for (int i = 0; tails[i]; i++)
			if (!strcmp(at + length, tails[i]))
				return unit;
	}
	return NULL;
}

/* Reads `number[ ]unit[tail]` to num/den of the smallest unit. */
static int fraction_read(const struct kind *kind, const char *const *tails, const char *text, uint64_t *num,
			 uint64_t *den, struct ktrxer_error *err)
{
	struct decimal number;
	const struct unit *unit;
	const char *at, *why;
	char hint[80];

	if (!*text)
		return refuse(err, text, kind, "it is empty");
	at = decimal_read(&number, text, &why);
	if (!at)
		return why ? refuse(err, text, kind, why) : refuse_large(err, text, kind);
	if (*at == ' ' && at[1])
		at++;
	unit = unit_find(kind->units, at, tails);
	if (!unit)
		return refuse(err, text, kind, unit_hint(kind, at, hint, sizeof hint));
	if (!decimal_scale(&number, unit->factor, num, den))
		return refuse_large(err, text, kind);
	return 0;
}

static const char *const no_tail[] = { "", NULL };

static int whole_read(const struct kind *kind, const char *const *tails, uint64_t *value, const char *text,
		      struct ktrxer_error *err)
{
	uint64_t num, den;
	int ret = fraction_read(kind, tails, text, &num, &den, err);

	if (ret)
		return ret;
	if (den != 1)
		return ktrxer_fail(err, -EINVAL, QUOTE " is not a whole %s: it is finer than %s", QUOTED(text),
				   kind->noun, kind->finer);
	*value = num;
	return 0;
}

static int hex_read(uint64_t *value, const char *text, struct ktrxer_error *err)
{
	uint64_t sum = 0;

	if (!text[2])
		return refuse(err, text, &a_count, "no digits after 0x");
	for (const char *at = text + 2; *at; at++) {
		unsigned int digit;

		if (is_digit(*at))
			digit = (unsigned int)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			digit = (unsigned int)(*at - 'a') + 10;
		else if (*at >= 'A' && *at <= 'F')
			digit = (unsigned int)(*at - 'A') + 10;
		else
			return refuse(err, text, &a_count, "after 0x stand hexadecimal digits only");
		if (sum >> 60)
			return refuse_large(err, text, &a_count);
		sum = sum << 4 | digit;
	}
	*value = sum;
	return 0;
}

int ktrxer_parse_u64(uint64_t *value, const char *text, struct ktrxer_error *err)
{
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return hex_read(value, text, err);
	return whole_read(&a_count, no_tail, value, text, err);
}

int ktrxer_parse_i64(int64_t *value, const char *text, struct ktrxer_error *err)
{
	bool negative = text[0] == '-';
	uint64_t size;
	int ret = ktrxer_parse_u64(&size, text + negative, err);

	if (ret)
		return ret;
	if (size > (uint64_t)INT64_MAX + negative)
		return refuse_large(err, text, &a_count);
	/* Negated while unsigned: -2^63 has no positive twin. */
	*value = negative ? (int64_t)(0 - size) : (int64_t)size;
	return 0;
}

int ktrxer_parse_duration(uint64_t *ns, const char *text, struct ktrxer_error *err)
{
	return whole_read(&a_duration, no_tail, ns, text, err);
}

int ktrxer_parse_bitrate(uint64_t *bit_s, const char *text, struct ktrxer_error *err)
{
	static const char *const tails[] = { "", "bit", "bit/s", "bps", "b/s", NULL };

	return whole_read(&a_bitrate, tails, bit_s, text, err);
}

int ktrxer_parse_size(uint64_t *bytes, const char *text, struct ktrxer_error *err)
{
	static const char *const tails[] = { "", "B", NULL };

	return whole_read(&a_size, tails, bytes, text, err);
}

int ktrxer_rate_gap(uint64_t num, uint64_t den, uint64_t *gap_num, uint64_t *gap_den)
{
	uint64_t common, second = KTRXER_NS_PER_S;

	if (!num || !den)
		return -ERANGE;
	common = common_divisor(num, den);
	num /= common;
	den /= common;
	common = common_divisor(num, second);
	if (__builtin_mul_overflow(den, second / common, gap_num))
		return -ERANGE;
	*gap_den = num / common;
	return 0;
}

int ktrxer_parse_rate(uint64_t *num, uint64_t *den, const char *text, struct ktrxer_error *err)
{
	static const char *const tails[] = { "", "pps", NULL };
	const struct unit *per = per_units;
	const char *slash = strchr(text, '/');
	char count[64];
	uint64_t above, below, common, gap_num, gap_den;
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	int ret;

	if (length >= sizeof count)
		return refuse(err, text, &a_rate, "it is too long");
	memcpy(count, text, length);
	count[length] = '\0';
	if (slash) {
		per = unit_find(per_units + 1, slash, no_tail);
		if (!per)
			return refuse(err, text, &a_rate, "after the number stands /s, /m or /h");
		if (length >= 3 && !strcmp(count + length - 3, "pps"))
			return refuse(err, text, &a_rate, "pps is already per second");
	}
	ret = fraction_read(&a_rate, tails, count, &above, &below, err);
	if (ret)
		return ret;
	if (!above)
		return refuse(err, text, &a_rate, "at a rate of 0 nothing is ever sent");
	common = common_divisor(above, per->factor);
	above /= common;
	if (__builtin_mul_overflow(below, per->factor / common, &below) ||
	    ktrxer_rate_gap(above, below, &gap_num, &gap_den))
		return ktrxer_fail(err, -ERANGE,
				   QUOTE " is too slow a rate: the gap does not fit 64 bits of nanoseconds",
				   QUOTED(text));
	if (above / below >= (uint64_t)KTRXER_NS_PER_S && (above / below > (uint64_t)KTRXER_NS_PER_S || above % below))
		return ktrxer_fail(err, -ERANGE, QUOTE " is too high a rate: at most 1G a second, one each nanosecond",
				   QUOTED(text));
	*num = above;
	*den = below;
	return 0;
}

/* One part of a range: text[0..length). The whole is what the message quotes. */
static int range_part(uint64_t *value, const char *part, size_t length, const char *what, const char *text,
		      struct ktrxer_error *err)
{
	char copy[64];

	if (!length || length >= sizeof copy)
		return ktrxer_fail(err, -EINVAL, QUOTE " is not a range: its %s %s; write for example %s", QUOTED(text),
				   what, length ? "is too long" : "is missing", a_range.forms);
	memcpy(copy, part, length);
	copy[length] = '\0';
	return ktrxer_parse_size(value, copy, err);
}

int ktrxer_parse_range(uint64_t *from, uint64_t *to, uint64_t *step, const char *text, struct ktrxer_error *err)
{
	const char *dots = strstr(text, ".."), *slash = strchr(text, '/'), *end = text + strlen(text);
	uint64_t first, last, each = 1;
	int ret;

	if (slash && (!dots || slash < dots))
		return refuse(err, text, &a_range, "a step (/) stands after FROM..TO");
	if (!dots) {
		ret = range_part(&first, text, (size_t)(end - text), "number", text, err);
		if (ret)
			return ret;
		*from = *to = first;
		*step = 1;
		return 0;
	}
	ret = range_part(&first, text, (size_t)(dots - text), "beginning", text, err);
	if (!ret)
		ret = range_part(&last, dots + 2, (size_t)((slash ? slash : end) - (dots + 2)), "end", text, err);
	if (!ret && slash)
		ret = range_part(&each, slash + 1, (size_t)(end - (slash + 1)), "step", text, err);
	if (ret)
		return ret;
	if (last < first)
		return refuse(err, text, &a_range, "it ends before it begins");
	if (!each)
		return refuse(err, text, &a_range, "a step of 0 never ends");
	*from = first;
	*to = last;
	*step = each;
	return 0;
}

/*
 * `value` in the largest of `units` (ascending, {name, factor}) that leaves at least 1, to three decimals, rounded half
 * up.
 */
static void scale_format(char text[KTRXER_UNITS_TEXT], const char *sign, uint64_t value, const struct unit *units)
{
	const struct unit *unit = units;
	uint64_t whole, thousandths;

	while (unit[1].name && value >= unit[1].factor)
		unit++;
	if (unit->factor == 1) {
		snprintf(text, KTRXER_UNITS_TEXT, "%s%llu %s", sign, (unsigned long long)value, unit->name);
		return;
	}
	whole = value / unit->factor;
	/* The rest is below the factor, at most 2^40: a thousand times it fits. */
	thousandths = (value % unit->factor * 1000 + unit->factor / 2) / unit->factor;
	if (thousandths == 1000) {
		whole++;
		thousandths = 0;
		if (unit[1].name && whole >= unit[1].factor / unit->factor) { /* 999.9996 us is 1.000 ms */
			unit++;
			whole = 1;
		}
	}
	snprintf(text, KTRXER_UNITS_TEXT, "%s%llu.%03u %s", sign, (unsigned long long)whole, (unsigned int)thousandths,
		 unit->name);
}

const char *ktrxer_format_ns(char text[KTRXER_UNITS_TEXT], int64_t ns)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", KTRXER_NS_PER_US }, { "ms", KTRXER_NS_PER_MS }, { "s", KTRXER_NS_PER_S }, { NULL },
	};

	scale_format(text, ns < 0 ? "-" : "", ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, units);
	return text;
}

const char *ktrxer_format_duration(char text[KTRXER_UNITS_TEXT], uint64_t ns)
{
	const char *name = "s";
	uint64_t factor = KTRXER_NS_PER_S;

	if (ns % KTRXER_NS_PER_US)
		name = "ns", factor = 1;
	else if (ns % KTRXER_NS_PER_MS)
		name = "us", factor = KTRXER_NS_PER_US;
	else if (ns % KTRXER_NS_PER_S)
		name = "ms", factor = KTRXER_NS_PER_MS;
	snprintf(text, KTRXER_UNITS_TEXT, "%llu%s", (unsigned long long)(ns / factor), name);
	return text;
}

const char *ktrxer_format_bitrate(char text[KTRXER_UNITS_TEXT], uint64_t bit_s)
{
	static const struct unit units[] = {
		{ "bit/s", 1 },           { "kbit/s", 1000 },          { "Mbit/s", 1000000 },
		{ "Gbit/s", 1000000000 }, { "Tbit/s", 1000000000000 }, { NULL },
	};

	scale_format(text, "", bit_s, units);
	return text;
}

const char *ktrxer_format_size(char text[KTRXER_UNITS_TEXT], uint64_t bytes)
{
	static const struct unit units[] = {
		{ "B", 1 }, { "KiB", 1024 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 }, { "TiB", 1ULL << 40 }, { NULL },
	};

	scale_format(text, "", bytes, units);
	return text;
}
