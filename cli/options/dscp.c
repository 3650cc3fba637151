/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names of the differentiated services code points (RFC 2474, 2597, 3246, 8622), and of Flent's classes. */
#include "dscp.h"

#include "error.h"
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	uint8_t dscp;
} names[] = {
	/* The first name of a number is the one that is printed. */
	{ "BE", 0 },    { "CS0", 0 },   { "LE", 1 },    { "CS1", 8 },   { "BK", 8 },    { "AF11", 10 }, { "AF12", 12 },
	{ "AF13", 14 }, { "CS2", 16 },  { "AF21", 18 }, { "AF22", 20 }, { "AF23", 22 }, { "CS3", 24 },  { "AF31", 26 },
	{ "AF32", 28 }, { "AF33", 30 }, { "CS4", 32 },  { "AF41", 34 }, { "AF42", 36 }, { "AF43", 38 }, { "CS5", 40 },
	{ "VA", 44 },   { "EF", 46 },   { "CS6", 48 },  { "CS7", 56 },
};

int dscp_parse(uint8_t *dscp, const char *text, size_t length, struct ktrxer_error *err)
{
	char word[8];
	uint64_t number;

	if (length < sizeof word) {
		memcpy(word, text, length);
		word[length] = '\0';
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (strcasecmp(names[i].name, word) == 0) {
				*dscp = names[i].dscp;
				return 0;
			}
		if (ktrxer_parse_u64(&number, word, NULL) == 0 && number < 64) {
			*dscp = (uint8_t)number;
			return 0;
		}
	}
	return ktrxer_fail(
		err, -EINVAL,
		"'%.*s' is not a DSCP; write 0 to 63 or a name: BE, LE, BK, CS1 to CS7, AF11 to AF43, VA, EF",
		(int)(length < 32 ? length : 32), text);
}

int dscp_next(uint8_t *dscp, const char **list, struct ktrxer_error *err)
{
	const char *word = *list;
	const size_t length = strcspn(word, ",");

	*list = word[length] ? word + length + 1 : NULL;
	return dscp_parse(dscp, word, length, err);
}

/* The index is the two bits of the header: RFC 3168, section 5. */
const char *const ecn_names[] = { "off", "ect1", "ect0", "ce" };

int ecn_parse(uint8_t *ecn, const char *text, size_t length, struct ktrxer_error *err)
{
	for (uint8_t i = 0; i < 4; i++)
		if ((strlen(ecn_names[i]) == length && strncasecmp(ecn_names[i], text, length) == 0) ||
		    (length == 1 && text[0] == '0' + i)) {
			*ecn = i;
			return 0;
		}
	return ktrxer_fail(err, -EINVAL,
			   "'%.*s' is not an ECN mark; write off, ect1, ect0, ce, or 0 to 3 as in the header",
			   (int)(length < 32 ? length : 32), text);
}

const char *dscp_name(uint8_t dscp, char text[8])
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].dscp == dscp)
			return names[i].name;
	snprintf(text, 8, "%u", dscp & 63u);
	return text;
}
