/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "path_witness.h"

#ifndef KTRXER_SMALL
#include "path_find.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

/* The row of a device; the last row collects the rest. */
static struct path_way *arrival_row(struct path_witness *w, uint32_t device)
{
	for (int i = 0; i < w->arrived_count; i++)
		if (w->arrived[i].device == device)
			return &w->arrived[i];
	if (w->arrived_count == PATH_WAYS)
		return &w->arrived[PATH_WAYS - 1];
	w->arrived[w->arrived_count].device = w->arrived_count < PATH_WAYS - 1 ? device : 0;
	return &w->arrived[w->arrived_count++];
}

void path_witness_arrived(struct path_witness *w, uint32_t device)
{
	if (device)
		arrival_row(w, device)->count++;
}

void path_witness_moved(struct path_witness *w, uint32_t from, uint32_t to)
{
	if (from && to && arrival_row(w, from)->count) {
		arrival_row(w, from)->count--;
		arrival_row(w, to)->count++;
	}
}

static void name_write(struct path_way *way)
{
	char name[IF_NAMESIZE];

	if (way->device && if_indextoname(way->device, name))
		snprintf(way->name, sizeof way->name, "%s", name);
	else
		snprintf(way->name, sizeof way->name, "#%u", way->device);
}

/* Rows of the transmitter. An engine that writes whole frames sends them by its device, to the address in them. */
static void departures_read(struct path_witness *w, const struct path_claim *claim)
{
	struct ktx_departure rows[PATH_WAYS];
	struct ktx_info info;
	int n;

	ktx_info(claim->tx, &info);
	if (info.features & KTX_CAN_WHOLE_FRAME) {
		w->left[0] = (struct path_way){ .device = claim->path->device.index,
						.count = claim->sent,
						.from = claim->path->source,
						.next_hop = claim->path->next_hop };
		w->left_count = claim->sent > 0;
		return;
	}
	n = ktx_departures(claim->tx, rows, PATH_WAYS);
	for (int i = 0; i < n; i++)
		w->left[w->left_count++] =
			(struct path_way){ .device = rows[i].device, .count = rows[i].count, .from = rows[i].from };
}

/* The routing domain's own device is not the one by which its packets leave the host. */
static bool is_vrf(const struct path_way *way)
{
	struct ktrxer_device device = { 0 };

	(void)ktrxer_device_get(&device, way->name, NULL);
	return !strcmp(device.kind, "vrf");
}

static bool same_host(const struct ktrxer_addr *a, const struct ktrxer_addr *b)
{
	return !a->family || (a->family == b->family && !memcmp(a->bytes, b->bytes, sizeof a->bytes));
}

static void compare(struct path_witness *w, const struct path_claim *claim, struct path_way *way)
{
	const bool device = way->device != claim->path->device.index && way->name[0] != '#' && !is_vrf(way),
		   from = !device && !same_host(&way->from, &claim->path->source);

	w->probes += way->count;
	if (device)
		w->elsewhere += way->count;
	else if (from)
		w->other_from += way->count;
	if ((device || from) && (!w->way || way->count > w->way->count))
		w->way = way;
}

void path_witness_end(struct path_witness *w, const struct path_claim *claim)
{
	struct ktrxer_path now;

	w->compared = claim->sent > 0;
	w->left_count = 0;
	w->probes = w->elsewhere = w->other_from = w->answers = w->answers_elsewhere = 0;
	w->way = NULL;
	departures_read(w, claim);
	for (int i = 0; i < w->left_count; i++) {
		struct path_way *way = &w->left[i];

		name_write(way);
		if (!way->next_hop.family && path_find(&now, way->name, &way->from, &claim->path->to, false, NULL) == 0)
			way->next_hop = now.next_hop;
		compare(w, claim, way);
	}
	for (int i = 0; i < w->arrived_count; i++) {
		name_write(&w->arrived[i]);
		w->answers += w->arrived[i].count;
		if (w->arrived[i].device != claim->path->device.index)
			w->answers_elsewhere += w->arrived[i].count;
	}
	w->changed = (w->elsewhere + w->other_from) * 100 > w->probes;
	/* The same question as before the measurement. Whole frames keep the next hop that they were made for. */
	w->rerouted = w->left_count && !w->elsewhere && ktx_departures(claim->tx, NULL, 0) > 0 &&
		      path_find(&now, claim->device, claim->from, &claim->path->to, false, NULL) == 0 &&
		      !ktrxer_addr_equal(&now.next_hop, &claim->path->next_hop);
	if (w->rerouted)
		w->next_hop = now.next_hop;
}
#endif
