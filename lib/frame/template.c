/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Templates: made from a frame and its fields, checked once, then any number's frame by a copy and a few additions. */
#include "base_limits.h"
#include "template_plan.h"

#include "bytes.h"
#include "error.h"
#include "options.h"
#include "stream.h"
#include "wide.h"

#include <errno.h>
#include <stdlib.h>

/* Orders of so few values are worked out beforehand: a look into memory costs less than three multiplications. */
enum { ORDER_KEPT = 4096 };

/* Steele, Lea, Flood 2014: the generator that turns a seed of few bits into keys. */
static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint64_t load_wide(const uint8_t *at, uint32_t width)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < width; i++)
		value = value << 8 | at[i];
	return value;
}

static void store_wide(uint8_t *at, uint32_t width, uint64_t value)
{
	if (width == 8)
		store_be64(at, value);
	else
		for (uint32_t i = width; i-- > 0; value >>= 8)
			at[i] = (uint8_t)value;
}

static uint64_t *words_add(struct ktx_template *t, uint64_t count, struct ktrxer_error *err)
{
	uint64_t *words;

	if (count > STREAM_WORDS_MAX - t->word_count) {
		ktrxer_fail(err, -E2BIG, "tables of more than %d entries in all", STREAM_WORDS_MAX);
		return NULL;
	}
	words = realloc(t->words, (t->word_count + count) * sizeof *words);
	if (!words) {
		ktrxer_fail(err, -ENOMEM, "no memory for a table of %llu entries", (unsigned long long)count);
		return NULL;
	}
	t->words = words;
	words += t->word_count;
	t->word_count += (uint32_t)count;
	return words;
}

/* One column of a table: IPv6 addresses have two. */
static int table_take(struct ktx_template *t, struct vary_part *part, const struct ktx_vary *vary, uint32_t entry,
		      uint32_t column, const struct template_place *place, struct ktrxer_error *err)
{
	const uint32_t begins = t->word_count;
	uint64_t *words = words_add(t, vary->count, err);

	if (!words)
		return err->code;
	for (uint64_t i = 0; i < vary->count; i++) {
		words[i] = load_wide(vary->table + i * entry + column, part->width);
		if (words[i] > place->most)
			return ktrxer_fail(err, -ERANGE, "%s: entry %llu of the table is %llu, the largest is %llu",
					   ktrxer_template_field_name(vary->field), (unsigned long long)i + 1,
					   (unsigned long long)words[i], (unsigned long long)place->most);
		words[i] |= place->keep;
	}
	part->how = VARY_LOOKED_UP;
	part->table = begins;
	return 0;
}

static int order_take(struct ktx_template *t, struct vary_part *part, const struct ktx_vary *vary,
		      struct ktrxer_error *err)
{
	uint64_t state = vary->seed, *words;

	/* Numbers of windows are compared by their sign. */
	if (!part->count || part->count > INT64_MAX)
		return ktrxer_fail(err, -ERANGE, "%s: an order of 2^63 values and more; give fewer",
				   ktrxer_template_field_name(vary->field));
	for (int i = 0; i < VARY_KEYS; i++)
		part->keys[i] = splitmix(&state);
	part->bits = (uint8_t)(63 - __builtin_clzll(part->count));
	part->how = VARY_PERMUTED;
	if (part->count > ORDER_KEPT)
		return 0;
	words = words_add(t, part->count, err);
	if (!words)
		return err->code;
	for (uint64_t i = 0; i < part->count; i++)
		words[i] = part->from + part->step * vary_permute(part, i);
	part->how = VARY_LOOKED_UP;
	part->table = (uint32_t)(words - t->words);
	return 0;
}

/* 0: 2^64. */
static int count_find(struct vary_part *part, const struct ktx_vary *vary, uint64_t most, struct ktrxer_error *err)
{
	const char *name = ktrxer_template_field_name(vary->field);
	uint64_t last;

	if (vary->from > most)
		return ktrxer_fail(err, -ERANGE, "%s: begins at %llu, the largest is %llu", name,
				   (unsigned long long)vary->from, (unsigned long long)most);
	part->step = vary->step ? vary->step : 1;
	part->count = vary->count;
	if (!part->count) {
		part->count = (most - vary->from) / part->step + 1; /* 2^64 becomes 0 */
		return 0;
	}
	if (__builtin_mul_overflow(part->count - 1, part->step, &last) ||
	    __builtin_add_overflow(last, vary->from, &last) || last > most)
		return ktrxer_fail(err, -ERANGE, "%s: %llu values from %llu on, %llu apart, pass the largest, %llu",
				   name, (unsigned long long)part->count, (unsigned long long)vary->from,
				   (unsigned long long)part->step, (unsigned long long)most);
	return 0;
}

static int values_take(struct ktx_template *t, struct vary_part *part, const struct ktx_vary *vary,
		       const struct template_place *place, uint32_t column, struct ktrxer_error *err)
{
	const char *name = ktrxer_template_field_name(vary->field);
	int rc;

	if (vary->how == KTX_VARY_TABLE) {
		if (!vary->table || !vary->count)
			return ktrxer_fail(err, -EINVAL, "%s: a table without entries", name);
		part->count = vary->count;
		return table_take(t, part, vary, place->width, column, place, err);
	}
	rc = count_find(part, vary, place->most, err);
	if (rc < 0)
		return rc;
	part->from = vary->from | place->keep;
	if (vary->how == KTX_VARY_COUNTER)
		return 0;
	if (vary->how == KTX_VARY_RANDOM)
		return order_take(t, part, vary, err);
	return ktrxer_fail(err, -EINVAL, "%s: it varies in a way (%d) that this version does not know", name,
			   (int)vary->how);
}

static int part_add(struct ktx_template *t, const struct ktx_vary *vary, const struct template_place *place,
		    uint32_t column, uint32_t width, struct ktrxer_error *err)
{
	struct vary_part *part = &t->plan.part[t->plan.parts];

	if (t->plan.parts == VARY_PARTS)
		return ktrxer_fail(err, -E2BIG, "more than %d fields (an IPv6 address of a table counts as two)",
				   VARY_PARTS);
	*part = (struct vary_part){
		.every = vary->every ? vary->every : 1,
		.at = (uint16_t)(place->at + column),
		.width = (uint8_t)width,
		.in_ip = place->in_ip,
		.in_transport = place->in_transport,
	};
	for (uint32_t i = 0; i < t->plan.parts; i++) {
		const struct vary_part *other = &t->plan.part[i];

		if (part->at < other->at + other->width && other->at < part->at + part->width)
			return ktrxer_fail(err, -EINVAL, "%s: its bytes (offset %u) vary already by a field before it",
					   ktrxer_template_field_name(vary->field), part->at);
	}
	t->plan.parts++;
	return values_take(t, part, vary, place, column, err);
}

static int field_add(struct ktx_template *t, const struct ktx_vary *vary, const struct ktrxer_packet_view *view,
		     struct ktrxer_error *err)
{
	struct template_place place;
	int rc = ktrxer_template_place_find(&place, vary, view, t->frame, t->plan.length, err);

	if (rc < 0)
		return rc;
	if (place.width != 16)
		return part_add(t, vary, &place, 0, place.width, err);
	rc = part_add(t, vary, &place, 0, 8, err);
	return rc < 0 ? rc : part_add(t, vary, &place, 8, 8, err);
}

/*
 * The sum behind a checksum, less the parts in it: ~HC + ~m each (RFC 1624, equation 3). That cannot tell 0 from
 * 0xffff, and only a sum of zeros alone is 0: headers and pseudo headers are not, an echo reply may be (sums_take).
 */
static uint16_t sum_without_parts(const struct ktx_template *t, uint32_t at, bool ip)
{
	uint64_t sum = (uint16_t)~load_be16(t->frame + at);

	for (uint32_t i = 0; i < t->plan.parts; i++) {
		const struct vary_part *part = &t->plan.part[i];
		const uint8_t in = ip ? part->in_ip : part->in_transport;

		if (in)
			sum += 0xffff - vary_fold(vary_sum_of(load_wide(t->frame + part->at, part->width), in));
	}
	return vary_fold(sum) ? (uint16_t)vary_fold(sum) : 0xffff;
}

/* A message with a pseudo header always has the protocol in its sum. */
static bool sum_of_zeros(const struct ktx_template *t, const struct ktrxer_packet_view *view)
{
	if (view->version != 4 || view->proto != KTRXER_ICMP)
		return false;
	for (uint32_t i = view->l4; i < view->end; i++)
		if (t->frame[i] && i - t->plan.transport_sum_at >= 2)
			return false;
	return true;
}

/* Leaves the parts zero. */
static void sums_take(struct ktx_template *t, const struct ktrxer_packet_view *view)
{
	bool ip = false, transport = false;

	for (uint32_t i = 0; i < t->plan.parts; i++) {
		ip |= t->plan.part[i].in_ip;
		transport |= t->plan.part[i].in_transport;
	}
	if (ip) {
		t->plan.ip_sum_at = (uint16_t)(view->l3 + 10);
		t->plan.ip_sum = sum_without_parts(t, t->plan.ip_sum_at, true);
	}
	if (transport) {
		t->plan.transport_sum_at = (uint16_t)ktrxer_template_transport_sum_at(view, t->frame);
		t->plan.transport_sum = sum_without_parts(t, t->plan.transport_sum_at, false);
		t->plan.udp = view->proto == KTRXER_UDP;
	}
	for (uint32_t i = 0; i < t->plan.parts; i++)
		memset(t->frame + t->plan.part[i].at, 0, t->plan.part[i].width);
	if (t->plan.transport_sum == 0xffff && sum_of_zeros(t, view))
		t->plan.transport_sum = 0;
}

/* All parts begin anew together after the least common multiple of their rounds. 0: 2^64 or more. */
static uint64_t space_of(const struct vary_plan *plan)
{
	uint64_t space = 1, round;

	for (uint32_t i = 0; i < plan->parts; i++) {
		const struct vary_part *part = &plan->part[i];

		if (!part->count || __builtin_mul_overflow(part->count, part->every, &round) ||
		    __builtin_mul_overflow(space / common_divisor(space, round), round, &space))
			return 0;
	}
	return space;
}

/* Each field's value changes when those before it have come to all their combinations. */
static int combine(struct vary_plan *plan, const uint32_t *field_of, uint32_t chosen, struct ktrxer_error *err)
{
	uint64_t every = 1, count = 1;
	uint32_t before = UINT32_MAX;

	for (uint32_t i = 0; i < plan->parts; i++) {
		if (chosen & 1u << i) /* its own pace */
			continue;
		if (field_of[i] != before && (!count || __builtin_mul_overflow(every, count, &every)))
			return ktrxer_fail(err, -ERANGE,
					   "every combination: the fields before the last one have 2^64 already; give "
					   "them fewer values");
		before = field_of[i];
		plan->part[i].every = every;
		count = plan->part[i].count;
	}
	return 0;
}

static int fields_add(struct ktx_template *t, const struct ktx_template_options *o, struct ktrxer_error *err)
{
	uint32_t field_of[VARY_PARTS] = { 0 }, chosen = 0;
	struct ktrxer_packet_view view;
	int rc;

	ktrxer_packet_parse(&view, t->frame, t->plan.length, o->link);
	for (uint32_t i = 0; i < o->field_count; i++) {
		const uint32_t before = t->plan.parts;
		struct ktx_vary vary;

		rc = ktrxer_options_copy(&vary, sizeof vary, (const uint8_t *)o->fields + i * o->field_size,
					 o->field_size, offsetof(struct ktx_vary, table) + sizeof vary.table,
					 "ktx_vary", err);
		if (rc < 0 || (rc = field_add(t, &vary, &view, err)) < 0)
			return rc;
		for (uint32_t part = before; part < t->plan.parts; part++) {
			field_of[part] = i;
			chosen |= vary.every ? 1u << part : 0;
		}
	}
	if (o->every_combination && (rc = combine(&t->plan, field_of, chosen, err)) < 0)
		return rc;
	sums_take(t, &view);
	t->space = space_of(&t->plan);
	return 0;
}

int ktx_template_new(struct ktx_template **made, const struct ktx_template_options *options, struct ktrxer_error *err)
{
	struct ktx_template_options o;
	struct ktrxer_error own;
	struct ktx_template *t;
	int rc;

	err = err ? err : &own;
	if (!made)
		return ktrxer_fail(err, -EINVAL, "ktx_template_new: no place for the template (NULL)");
	*made = NULL;
	rc = ktrxer_options_read(&o, sizeof o, options,
				 offsetof(struct ktx_template_options, every_combination) + sizeof o.every_combination,
				 "ktx_template_options", err);
	if (rc < 0)
		return rc;
	if (!o.frame || !o.length || o.length > KTX_FRAME_MAX || (unsigned)o.link - 1 > KTRXER_LINK_RAW_IP - 1 ||
	    (o.field_count && !o.fields))
		return ktrxer_fail(
			err, -EINVAL,
			"a template needs a frame of 1 to %d bytes (it has %u), and a known first header (link %d)",
			KTX_FRAME_MAX, o.length, (int)o.link);
	t = calloc(1, sizeof *t);
	if (!t || !(t->frame = malloc(o.length))) {
		free(t);
		return ktrxer_fail(err, -ENOMEM, "no memory for a template of %u bytes", o.length);
	}
	memcpy(t->frame, o.frame, o.length);
	t->plan.length = o.length;
	rc = fields_add(t, &o, err);
	if (rc < 0) {
		ktx_template_free(t);
		return rc;
	}
	*made = t;
	return 0;
}

void ktx_template_free(struct ktx_template *made)
{
	if (!made)
		return;
	free(made->words);
	free(made->frame);
	free(made);
}

uint32_t ktx_template_length(const struct ktx_template *made)
{
	return made ? made->plan.length : 0;
}

uint64_t ktx_template_space(const struct ktx_template *made)
{
	return made ? made->space : 0;
}

void ktx_template_fill(const struct ktx_template *made, uint8_t *frame, uint64_t number)
{
	const struct vary_plan *plan;
	uint64_t ip, transport;

	if (!made || !frame)
		return;
	plan = &made->plan;
	ip = plan->ip_sum;
	transport = plan->transport_sum;
	memcpy(frame, made->frame, plan->length);
	for (uint32_t i = 0; i < plan->parts; i++) {
		const struct vary_part *part = &plan->part[i];
		uint64_t place = vary_place(part, number), value;

		if (part->how == VARY_LOOKED_UP)
			value = made->words[part->table + place];
		else
			value = part->from +
				part->step * (part->how == VARY_PERMUTED ? vary_permute(part, place) : place);
		store_wide(frame + part->at, part->width, value);
		if (part->in_ip)
			ip += vary_sum_of(value, part->in_ip);
		if (part->in_transport)
			transport += vary_sum_of(value, part->in_transport);
	}
	if (plan->ip_sum_at)
		store_be16(frame + plan->ip_sum_at, vary_checksum(ip, 0));
	if (plan->transport_sum_at)
		store_be16(frame + plan->transport_sum_at, vary_checksum(transport, plan->udp));
}
