/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "send_vary.h"

#include "bytes.h"
#include "cli.h"
#include "error.h"
#include "units.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FORMS "FIELD=counter:FROM-TO, FIELD=random:FROM-TO or FIELD=table:V,V..."
#define NAMES "src, dst, src-port, dst-port, ip-id, flow-label, tos, ttl, payload+OFFSET.WIDTH, frame+OFFSET.WIDTH"

enum { WORD = 128 };

static const struct field_name {
	const char *name;
	enum ktx_field field;
	uint32_t width; /* 0: an address, or by offset */
			/* clang-format off */
} names[] = {
	{ "src", KTX_FIELD_SOURCE, 0 }, { "dst", KTX_FIELD_DESTINATION, 0 }, { "src-port", KTX_FIELD_SOURCE_PORT, 2 },
	{ "dst-port", KTX_FIELD_DESTINATION_PORT, 2 }, { "ip-id", KTX_FIELD_IP_ID, 2 },
	{ "flow-label", KTX_FIELD_FLOW_LABEL, 4 },
	{ "tos", KTX_FIELD_TOS, 1 }, { "ttl", KTX_FIELD_TTL, 1 }, { "payload", KTX_FIELD_PAYLOAD, 0 },
	{ "frame", KTX_FIELD_BYTES, 0 },
};
/* clang-format on */

/* A word of the text, not the whole of it. */
struct word {
	const char *at;
	size_t length;
};

static int bad(const char *text, struct ktrxer_error *err, const char *why)
{
	return ktrxer_fail(err, -EINVAL, "--vary '%.60s': %s", text, why);
}

/* Cuts off what stands before `mark`; the rest stays. False: there is no such mark. */
static bool cut(struct word *from, char mark, struct word *before)
{
	const char *at = memchr(from->at, mark, from->length);

	if (!at)
		return false;
	*before = (struct word){ from->at, (size_t)(at - from->at) };
	from->length -= before->length + 1;
	from->at = at + 1;
	return true;
}

/* Cuts at the last `mark`; the text behind it goes into `after`. */
static bool cut_last(struct word *from, char mark, struct word *after)
{
	for (size_t i = from->length; i-- > 0;) {
		if (from->at[i] != mark)
			continue;
		*after = (struct word){ from->at + i + 1, from->length - i - 1 };
		from->length = i;
		return true;
	}
	return false;
}

static bool copy(char to[WORD], const struct word *word)
{
	if (!word->length || word->length >= WORD)
		return false;
	memcpy(to, word->at, word->length);
	to[word->length] = '\0';
	return true;
}

static int number_of(const char *text, const struct word *word, uint64_t *value, struct ktrxer_error *err)
{
	struct ktrxer_error why;
	char number[WORD];
	int rc;

	if (!copy(number, word))
		return bad(text, err, "a number is missing, or too long");
	rc = ktrxer_parse_u64(value, number, &why);
	return rc < 0 ? ktrxer_fail(err, rc, "--vary '%.60s': %s", text, why.text) : 0;
}

static bool is_address(const struct ktx_vary *field)
{
	return field->field == KTX_FIELD_SOURCE || field->field == KTX_FIELD_DESTINATION;
}

static uint64_t address_low(const struct ktrxer_addr *addr)
{
	return addr->family == AF_INET ? load_be32(addr->bytes) : load_be64(addr->bytes + 8);
}

static int address_of(const char *text, const struct word *word, uint8_t family, struct ktrxer_addr *addr,
		      struct ktrxer_error *err)
{
	char address[WORD];

	if (!copy(address, word) || ktrxer_addr_parse(addr, address) < 0 || addr->scope_id)
		return ktrxer_fail(err, -EINVAL, "--vary '%.60s': '%.*s' is no address", text,
				   (int)(word->length < 60 ? word->length : 60), word->at);
	if (addr->family != family)
		return bad(text, err,
			   family == AF_INET ? "an IPv6 address, and HOST is IPv4"
					     : "an IPv4 address, and HOST is IPv6");
	return 0;
}

static int range_set(const char *text, struct ktx_vary *field, uint64_t from, uint64_t to, struct ktrxer_error *err)
{
	if (to < from)
		return bad(text, err, "the range ends before it begins");
	if (!field->step)
		return bad(text, err, "a step of 0 never gets anywhere");
	field->from = from;
	if (to - from == UINT64_MAX && field->step == 1)
		return 0; /* all 2^64 of them */
	field->count = (to - from) / field->step + 1;
	return 0;
}

static int addresses_take(const char *text, struct word values, uint8_t family, struct ktx_vary *field,
			  struct ktrxer_addr *first, struct ktrxer_error *err)
{
	const uint64_t bits = family == AF_INET ? 32 : 128, most = family == AF_INET ? UINT32_MAX : UINT64_MAX;
	struct ktrxer_addr last;
	struct word from, after;
	uint64_t length, hosts;
	int rc;

	if (cut(&values, '-', &from)) {
		if (cut_last(&values, '/', &after) && (rc = number_of(text, &after, &field->step, err)) < 0)
			return rc;
		if ((rc = address_of(text, &from, family, first, err)) < 0 ||
		    (rc = address_of(text, &values, family, &last, err)) < 0)
			return rc;
		if (family == AF_INET6 && memcmp(first->bytes, last.bytes, 8) != 0)
			return bad(text, err,
				   "an IPv6 range stays in one network of 64 bits; a table has any addresses");
		return range_set(text, field, address_low(first), address_low(&last), err);
	}
	length = bits;
	if (cut_last(&values, '/', &after) && (rc = number_of(text, &after, &length, err)) < 0)
		return rc;
	if ((rc = address_of(text, &values, family, first, err)) < 0)
		return rc;
	if (length > bits || bits - length > 64 || (family == AF_INET && !length))
		return bad(text, err, family == AF_INET ? "a prefix of 1 to 32 bits" : "a prefix of 64 to 128 bits");
	hosts = bits - length == 64 ? most : (1ULL << (bits - length)) - 1;
	if (address_low(first) & hosts)
		return bad(text, err, "bits are set behind the prefix; FROM-TO says where to begin and to end");
	return range_set(text, field, address_low(first), address_low(first) + hosts, err);
}

static int numbers_take(const char *text, struct word values, struct ktx_vary *field, struct ktrxer_error *err)
{
	struct word from, step;
	uint64_t first, last;
	int rc;

	if (cut_last(&values, '/', &step) && (rc = number_of(text, &step, &field->step, err)) < 0)
		return rc;
	if (!cut(&values, '-', &from)) { /* up to the largest */
		if ((rc = number_of(text, &values, &field->from, err)) < 0)
			return rc;
		return field->step ? 0 : bad(text, err, "a step of 0 never gets anywhere");
	}
	if ((rc = number_of(text, &from, &first, err)) < 0 || (rc = number_of(text, &values, &last, err)) < 0)
		return rc;
	return range_set(text, field, first, last, err);
}

struct table {
	uint8_t *bytes;
	uint64_t count, room;
	uint32_t width;
};

static uint32_t entry_width(const struct ktx_vary *field, const struct field_name *name, uint8_t family)
{
	if (is_address(field))
		return family == AF_INET ? 4 : 16;
	return name->width ? name->width : field->width;
}

static int entry_add(const char *text, struct table *table, const struct word *word, bool address, uint8_t family,
		     struct ktrxer_error *err)
{
	struct ktrxer_addr addr;
	uint64_t value;
	uint8_t *at;
	int rc;

	if (table->count == VARY_TABLE_MAX)
		return ktrxer_fail(err, -E2BIG, "--vary '%.60s': a table of more than %d entries", text,
				   VARY_TABLE_MAX);
	if (table->count == table->room) {
		uint64_t room = table->room ? table->room * 2 : 16;
		uint8_t *more = realloc(table->bytes, room * table->width);

		if (!more)
			return ktrxer_fail(err, -ENOMEM, "no memory for a table");
		table->bytes = more;
		table->room = room;
	}
	at = table->bytes + table->count * table->width;
	if (address) {
		if ((rc = address_of(text, word, family, &addr, err)) < 0)
			return rc;
		memcpy(at, addr.bytes, table->width);
	} else {
		if ((rc = number_of(text, word, &value, err)) < 0)
			return rc;
		if (table->width < 8 && value >> 8 * table->width)
			return ktrxer_fail(err, -ERANGE, "--vary '%.60s': %llu does not fit into %u bytes", text,
					   (unsigned long long)value, table->width);
		for (uint32_t i = table->width; i-- > 0; value >>= 8)
			at[i] = (uint8_t)value;
	}
	table->count++;
	return 0;
}

static void trim(struct word *word)
{
	const char *comment = memchr(word->at, '#', word->length);

	if (comment)
		word->length = (size_t)(comment - word->at);
	while (word->length && strchr(" \t\r", word->at[0])) {
		word->at++;
		word->length--;
	}
	while (word->length && strchr(" \t\r", word->at[word->length - 1]))
		word->length--;
}

static int table_of_file(const char *text, struct table *table, const struct word *name, bool address, uint8_t family,
			 struct ktrxer_error *err)
{
	char path[PATH_MAX], *line = NULL;
	size_t room = 0, bytes = 0;
	ssize_t n;
	FILE *file;
	int rc = 0;

	if (!name->length || name->length >= sizeof path)
		return bad(text, err, "table:@FILE has one value a line");
	memcpy(path, name->at, name->length);
	path[name->length] = '\0';
	file = fopen(path, "re");
	if (!file)
		return ktrxer_fail(err, -errno, "--vary '%.60s': %.100s: %m", text, path);
	while (rc == 0 && (n = getline(&line, &room, file)) > 0) {
		struct word value = { line, (size_t)n - (line[n - 1] == '\n') };

		if ((bytes += (size_t)n) > VARY_FILE_MAX)
			rc = ktrxer_fail(err, -E2BIG, "--vary '%.60s': %.100s is longer than %d MiB", text, path,
					 VARY_FILE_MAX >> 20);
		trim(&value);
		if (rc == 0 && value.length)
			rc = entry_add(text, table, &value, address, family, err);
	}
	if (rc == 0 && ferror(file))
		rc = ktrxer_fail(err, -EIO, "--vary '%.60s': %.100s cannot be read to its end", text, path);
	free(line);
	fclose(file);
	return rc;
}

static int table_take(const char *text, struct word values, uint8_t family, const struct field_name *name,
		      struct ktx_vary *field, uint8_t **bytes, struct ktrxer_error *err)
{
	struct table table = { .width = entry_width(field, name, family) };
	struct word entry;
	int rc = 0;

	if (values.length && values.at[0] == '@') {
		entry = (struct word){ values.at + 1, values.length - 1 };
		rc = table_of_file(text, &table, &entry, is_address(field), family, err);
	} else {
		for (bool more = true; rc == 0 && more;) {
			more = cut(&values, ',', &entry);
			rc = entry_add(text, &table, more ? &entry : &values, is_address(field), family, err);
		}
	}
	*bytes = table.bytes;
	if (rc == 0 && !table.count)
		return bad(text, err, "a table without entries");
	field->table = table.bytes;
	field->count = table.count;
	return rc;
}

/* "payload+8.4": four bytes, eight into the payload. */
static int offset_take(const char *text, struct word *where, struct ktx_vary *field, struct ktrxer_error *err)
{
	struct word width;
	uint64_t number;
	int rc;

	field->width = 4;
	if (cut_last(where, '.', &width)) {
		if ((rc = number_of(text, &width, &number, err)) < 0)
			return rc;
		if (number != 1 && number != 2 && number != 4 && number != 8)
			return bad(text, err, "a width of 1, 2, 4 or 8 bytes (OFFSET.WIDTH)");
		field->width = (uint32_t)number;
	}
	if ((rc = number_of(text, where, &number, err)) < 0)
		return rc;
	if (number > UINT16_MAX)
		return bad(text, err, "the offset lies behind every frame");
	field->at = (uint32_t)number;
	return 0;
}

static int name_take(const char *text, struct word where, struct ktx_vary *field, const struct field_name **name,
		     struct ktrxer_error *err)
{
	struct word word = where, before;
	const bool by_offset = cut(&word, '+', &before);

	if (by_offset)
		where = before;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const bool wants_offset = names[i].field == KTX_FIELD_PAYLOAD || names[i].field == KTX_FIELD_BYTES;

		if (strlen(names[i].name) != where.length || memcmp(names[i].name, where.at, where.length) != 0)
			continue;
		if (wants_offset != by_offset)
			break;
		*name = &names[i];
		field->field = names[i].field;
		return by_offset ? offset_take(text, &word, field, err) : 0;
	}
	return ktrxer_fail(err, -EINVAL, "--vary '%.60s': fields are " NAMES, text);
}

static bool word_is(const struct word *word, const char *name)
{
	return word->length == strlen(name) && memcmp(word->at, name, word->length) == 0;
}

static int values_take(const char *text, struct word values, bool given, uint8_t family, struct ktx_vary *field,
		       struct ktrxer_addr *first, struct ktrxer_error *err)
{
	struct word seed;
	int rc;

	field->step = 1;
	field->seed = 1;
	if (field->how == KTX_VARY_RANDOM && given && cut_last(&values, '@', &seed)) {
		if ((rc = number_of(text, &seed, &field->seed, err)) < 0)
			return rc;
		given = values.length > 0;
	}
	if (!given)
		return is_address(field)
			       ? bad(text, err, "which addresses? counter:10.0.0.1-10.0.0.9 or random:10.0.0.0/24")
			       : 0;
	return is_address(field) ? addresses_take(text, values, family, field, first, err)
				 : numbers_take(text, values, field, err);
}

int vary_add(struct vary *vary, const char *text, uint8_t family, struct ktrxer_error *err)
{
	struct word rest = { text, strlen(text) }, where, how, every;
	struct ktx_vary field = { 0 };
	const struct field_name *name = NULL;
	bool given;
	int rc;

	if (vary->count == VARY_FIELDS)
		return ktrxer_fail(err, -E2BIG, "--vary: at most %d fields", VARY_FIELDS);
	if (!cut(&rest, '=', &where))
		return bad(text, err, FORMS);
	if ((rc = name_take(text, where, &field, &name, err)) < 0)
		return rc;
	if (cut_last(&rest, '*', &every)) {
		if ((rc = number_of(text, &every, &field.every, err)) < 0)
			return rc;
		if (!field.every)
			return bad(text, err, "*0: the value never changes");
	}
	given = cut(&rest, ':', &how);
	if (!given)
		how = rest;
	vary->first[vary->count] = (struct ktrxer_addr){ 0 };
	if (word_is(&how, "counter") || word_is(&how, "random")) {
		field.how = how.at[0] == 'c' ? KTX_VARY_COUNTER : KTX_VARY_RANDOM;
		rc = values_take(text, rest, given, family, &field, &vary->first[vary->count], err);
	} else if (word_is(&how, "table") && given) {
		field.how = KTX_VARY_TABLE;
		vary->first[vary->count].family = family;
		rc = table_take(text, rest, family, name, &field, &vary->tables[vary->count], err);
	} else {
		return bad(text, err, FORMS);
	}
	vary->fields[vary->count++] = field;
	return rc;
}

int vary_add_all(struct vary *vary, const struct opt_list *list, uint8_t family, struct ktrxer_error *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < list->count; i++)
		rc = vary_add(vary, list->items[i], family, err);
	return rc;
}

void vary_free(struct vary *vary)
{
	for (int i = 0; i < VARY_FIELDS; i++)
		free(vary->tables[i]);
	*vary = (struct vary){ 0 };
}

bool vary_has(const struct vary *vary, enum ktx_field field)
{
	for (int i = 0; i < vary->count; i++)
		if (vary->fields[i].field == field)
			return true;
	return false;
}

static int guard_low(const struct ktrxer_addr *like, uint64_t low, const struct opt_rate *rate, bool flood,
		     struct ktrxer_error *err)
{
	struct ktrxer_addr addr = *like;

	if (addr.family == AF_INET)
		store_be32(addr.bytes, (uint32_t)low);
	else
		store_be64(addr.bytes + 8, low);
	return cli_guard_rate(&addr, rate, flood, err);
}

/*
 * Networks of local use have 24 bits or fewer, so one address of each /24 tells; in IPv6 the low half says nothing but
 * of ::1.
 */
static int guard_range(const struct ktx_vary *field, const struct ktrxer_addr *first, const struct opt_rate *rate,
		       bool flood, struct ktrxer_error *err)
{
	const uint64_t last = field->from + (field->count - 1) * field->step,
		       pace = first->family == AF_INET ? 256 : (last - field->from) / 2 + 1;
	int rc = 0;

	if (first->family == AF_INET && last - field->from >= 1 << 24)
		return flood ? 0
			     : ktrxer_fail(err, -EPERM,
					   "--vary dst: more than 2^24 addresses are not all of local use: --flood if "
					   "that is meant");
	for (uint64_t low = field->from; rc == 0 && low < last; low += last - low < pace ? last - low : pace)
		rc = guard_low(first, low, rate, flood, err);
	return rc == 0 ? guard_low(first, last, rate, flood, err) : rc;
}

int vary_guard(const struct vary *vary, const struct opt_rate *rate, bool flood, struct ktrxer_error *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < vary->count; i++) {
		const struct ktx_vary *field = &vary->fields[i];

		if (field->field != KTX_FIELD_DESTINATION)
			continue;
		if (field->how != KTX_VARY_TABLE) {
			rc = guard_range(field, &vary->first[i], rate, flood, err);
			continue;
		}
		for (uint64_t k = 0; rc == 0 && k < field->count; k++) {
			const uint32_t width = vary->first[i].family == AF_INET6 ? 16 : 4;
			struct ktrxer_addr addr = { .family = width == 16 ? AF_INET6 : AF_INET };

			memcpy(addr.bytes, field->table + k * width, width);
			rc = cli_guard_rate(&addr, rate, flood, err);
		}
	}
	return rc;
}

int vary_networks(const struct vary *vary, const struct ktrxer_addr *source, const struct ktrxer_addr *destination,
		  struct ktrxer_error *err)
{
	for (int i = 0; i < vary->count; i++) {
		const bool is_source = vary->fields[i].field == KTX_FIELD_SOURCE;
		const struct ktrxer_addr *of = is_source ? source : destination;

		if (vary->fields[i].how == KTX_VARY_TABLE || vary->first[i].family != AF_INET6 ||
		    memcmp(of->bytes, vary->first[i].bytes, 8) == 0)
			continue;
		return ktrxer_fail(err, -EINVAL,
				   "--vary %s: a range of IPv6 addresses is of the network (64 bits) that %s has; a "
				   "table has any addresses",
				   is_source ? "src" : "dst", is_source ? "the source, --from," : "HOST");
	}
	return 0;
}
