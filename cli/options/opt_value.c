/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The word after an option's name becomes the field of the option struct; suggestions for a misspelt word. */
#include "opt_value.h"

#include "dscp.h"
#include "error.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST_LENGTH = 40 }; /* longer words are no slips of the finger */

/* Edits between two words, a swap of neighbours counting as one (optimal string alignment). */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int rows[3][NEAREST_LENGTH + 1], *before = rows[0], *above = rows[1], *row = rows[2], *spare;
	size_t la = strlen(a), lb = strlen(b);

	if (la > NEAREST_LENGTH || lb > NEAREST_LENGTH)
		return NEAREST_LENGTH;
	memset(rows, 0, sizeof rows);
	for (size_t j = 0; j <= lb; j++)
		above[j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++) {
		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned int best = above[j - 1] + (a[i - 1] != b[j - 1]);

			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			row[j] = best;
		}
		spare = before;
		before = above;
		above = row;
		row = spare;
	}
	return above[lb];
}

const char *opt_nearest(const char *typed, const char *const *names, int count)
{
	size_t length = strlen(typed);
	const char *best = NULL;
	unsigned int best_distance = length < 3 ? 1 : length < 8 ? 2 : 3;

	if (!length)
		return NULL;
	/* The beginning of a name is the best suggestion. */
	for (int i = 0; i < count; i++)
		if (!strncmp(names[i], typed, length) && (!best || strlen(names[i]) < strlen(best)))
			best = names[i];
	if (best)
		return best;
	for (int i = 0; i < count; i++) {
		unsigned int d = distance(typed, names[i]);

		/* A word that shares no letter is as near to a short name as any other: not a suggestion. */
		if (d <= best_distance && d < length && (!best || d < best_distance)) {
			best = names[i];
			best_distance = d;
		}
	}
	return best;
}

static const char *bound_text(char text[KTRXER_UNITS_TEXT], enum opt_type type, uint64_t bound)
{
	if (type == OPT_DURATION)
		return ktrxer_format_duration(text, bound);
	if (type == OPT_INT)
		snprintf(text, KTRXER_UNITS_TEXT, "%lld", (long long)bound);
	else
		snprintf(text, KTRXER_UNITS_TEXT, "%llu", (unsigned long long)bound);
	return text;
}

static int out_of_bounds(const struct opt *opt, const char *text, bool low, struct ktrxer_error *err)
{
	char from[KTRXER_UNITS_TEXT], to[KTRXER_UNITS_TEXT];

	if (opt->max)
		return ktrxer_fail(err, -ERANGE, "'%.48s' is too %s: from %s to %s is possible", text,
				   low ? "small" : "large", bound_text(from, opt->type, opt->min),
				   bound_text(to, opt->type, opt->max));
	return ktrxer_fail(err, -ERANGE, "'%.48s' is too small: at least %s is needed", text,
			   bound_text(from, opt->type, opt->min));
}

static int check_bounds(const struct opt *opt, uint64_t value, const char *text, struct ktrxer_error *err)
{
	if (value < opt->min)
		return out_of_bounds(opt, text, true, err);
	if (opt->max && value > opt->max)
		return out_of_bounds(opt, text, false, err);
	return 0;
}

static int set_number(const struct opt *opt, uint64_t *field, const char *text, struct ktrxer_error *err)
{
	const size_t length = strlen(text);
	char number[8] = "";
	uint64_t value = 0;
	int ret;

	if (opt->type == OPT_DURATION)
		ret = ktrxer_parse_duration(&value, text, err);
	else if (opt->type == OPT_BITRATE)
		ret = ktrxer_parse_bitrate(&value, text, err);
	else if (opt->type == OPT_SIZE)
		ret = ktrxer_parse_size(&value, text, err);
	else if (opt->argument && !strcmp(opt->argument, "PERCENT") && length && length < sizeof number &&
		 text[length - 1] == '%') {
		memcpy(number, text, length - 1);
		ret = ktrxer_parse_u64(&value, number, err);
	} else
		ret = ktrxer_parse_u64(&value, text, err);
	if (!ret)
		ret = check_bounds(opt, value, text, err);
	if (!ret)
		*field = value;
	return ret;
}

static int set_int(const struct opt *opt, int64_t *field, const char *text, struct ktrxer_error *err)
{
	int64_t value;
	int ret = ktrxer_parse_i64(&value, text, err);

	if (ret)
		return ret;
	if ((opt->min || opt->max) && value < (int64_t)opt->min)
		return out_of_bounds(opt, text, true, err);
	if (opt->max && value > (int64_t)opt->max)
		return out_of_bounds(opt, text, false, err);
	*field = value;
	return 0;
}

static int set_rate(const struct opt *opt, struct opt_rate *field, const char *text, struct ktrxer_error *err)
{
	struct opt_rate rate = { .given = true };
	int ret = ktrxer_parse_rate(&rate.num, &rate.den, text, err);

	if (ret)
		return ret;
	if (rate.num / rate.den < opt->min)
		return out_of_bounds(opt, text, true, err);
	if (opt->max && (rate.num / rate.den > opt->max || (rate.num / rate.den == opt->max && rate.num % rate.den)))
		return out_of_bounds(opt, text, false, err);
	*field = rate;
	return 0;
}

int opt_choice_find(const char *const *choices, int *index, const char *text, struct ktrxer_error *err)
{
	char all[160] = "";
	const char *near;
	size_t length = 0;
	int count = 0;

	for (; choices[count]; count++) {
		int more;

		if (!strcmp(choices[count], text)) {
			*index = count;
			return 0;
		}
		more = snprintf(all + length, sizeof all - length, "%s%s", count ? ", " : "", choices[count]);
		if (more > 0 && (size_t)more < sizeof all - length)
			length += (size_t)more;
	}
	near = opt_nearest(text, choices, count);
	if (near)
		return ktrxer_fail(err, -EINVAL, "'%.48s' is not known; did you mean '%s'? (%s)", text, near, all);
	return ktrxer_fail(err, -EINVAL, "'%.48s' is not known; it is one of: %s", text, all);
}

int opt_list_add(struct opt_list *list, const char *text, struct ktrxer_error *err)
{
	const char **items = realloc(list->items, ((size_t)list->count + 1) * sizeof *items);

	if (!items)
		return ktrxer_fail(err, -ENOMEM, "no memory for one more value");
	list->items = items;
	list->items[list->count++] = text;
	return 0;
}

static int set_mac(struct opt_mac *field, const char *text, struct ktrxer_error *err)
{
	struct opt_mac mac = { .given = true };
	const char *at = text;

	for (int i = 0; i < 6; i++) {
		static const char digits[] = "0123456789abcdef0123456789ABCDEF";
		const char *high = *at ? strchr(digits, at[0]) : NULL,
			   *low = high && at[1] ? strchr(digits, at[1]) : NULL;

		if (!low || at[2] != (i < 5 ? ':' : '\0'))
			return ktrxer_fail(err, -EINVAL, "'%.48s' is not a link address; write it as 02:00:5e:00:53:01",
					   text);
		mac.bytes[i] = (uint8_t)((high - digits) % 16 << 4 | (low - digits) % 16);
		at += 3;
	}
	*field = mac;
	return 0;
}

static int set_address(struct ktrxer_addr *field, const char *text, struct ktrxer_error *err)
{
	struct ktrxer_addr addr = { 0 };

	if (ktrxer_addr_parse(&addr, text))
		return ktrxer_fail(err, -EINVAL,
				   "'%.64s' is not an IP address; write 192.0.2.1, 2001:db8::1 or fe80::1%%eth0", text);
	*field = addr;
	return 0;
}

static int set_range(const struct opt *opt, struct opt_range *field, const char *text, struct ktrxer_error *err)
{
	struct opt_range range = { .given = true };
	int ret = ktrxer_parse_range(&range.from, &range.to, &range.step, text, err);

	if (!ret)
		ret = check_bounds(opt, range.from, text, err);
	if (!ret)
		ret = check_bounds(opt, range.to, text, err);
	if (!ret)
		*field = range;
	return ret;
}

int opt_value_set(const struct opt *opt, void *base, const char *text, struct ktrxer_error *err)
{
	void *field = (char *)base + opt->offset;

	if (!*text)
		return ktrxer_fail(err, -EINVAL, "its value is empty");
	switch (opt->type) {
	case OPT_FLAG: /* a fallback alone: "yes" */
		*(bool *)field = !strcmp(text, "yes");
		return 0;
	case OPT_UINT:
	case OPT_DURATION:
	case OPT_BITRATE:
	case OPT_SIZE:
		return set_number(opt, field, text, err);
	case OPT_INT:
		return set_int(opt, field, text, err);
	case OPT_RATE:
		return set_rate(opt, field, text, err);
	case OPT_STRING:
		*(const char **)field = text;
		return 0;
	case OPT_CHOICE:
		return opt_choice_find(opt->choices, field, text, err);
	case OPT_LIST:
		return opt_list_add(field, text, err);
	case OPT_ADDRESS:
		return set_address(field, text, err);
	case OPT_SWITCH:
		break;
	case OPT_DSCP:
		return dscp_parse(field, text, strlen(text), err);
	case OPT_ECN:
		return ecn_parse(field, text, strlen(text), err);
	case OPT_MAC:
		return set_mac(field, text, err);
	case OPT_RANGE:
		return set_range(opt, field, text, err);
	}
	return ktrxer_fail(err, -EINVAL, "an option of no known type: this is a fault of ktrxer");
}
