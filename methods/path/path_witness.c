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

/* The row of a device and a source address; the last row collects the rest. */
static struct path_way *departure_row(struct path_witness *w, uint32_t device, const struct ktrxer_addr *from)
{
	for (int i = 0; i < w->left_count; i++)
		if (w->left[i].device == device && ktrxer_addr_equal(&w->left[i].from, from))
			return &w->left[i];
	if (w->left_count == PATH_WAYS)
		return &w->left[PATH_WAYS - 1];
	w->left[w->left_count] = (struct path_way){ 0 };
	if (w->left_count < PATH_WAYS - 1) {
		w->left[w->left_count].device = device;
		w->left[w->left_count].from = *from;
	}
	return &w->left[w->left_count++];
}

void path_witness_left(struct path_witness *w, uint32_t device, const struct ktrxer_addr *from, uint64_t count)
{
	if (!device || !count)
		return;
	w->stamped = true;
	departure_row(w, device, from)->count += count;
}

/* An engine that writes whole frames sends them by its device, to the address in them. */
void path_witness_sent(struct path_witness *w, const struct ktx *tx, const struct ktrxer_path *path, uint64_t sent)
{
	struct ktx_departure rows[PATH_WAYS];
	struct path_way *way;
	struct ktx_info info;
	int n;

	ktx_info(tx, &info);
	if (info.features & KTX_CAN_WHOLE_FRAME) {
		if (!sent)
			return;
		way = departure_row(w, path->device.index, &path->source);
		way->count += sent;
		way->next_hop = path->next_hop;
		return;
	}
	n = ktx_departures(tx, rows, PATH_WAYS);
	for (int i = 0; i < n; i++)
		path_witness_left(w, rows[i].device, &rows[i].from, rows[i].count);
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

static void compare(struct path_witness *w, const struct path_claim *claim, int which)
{
	const struct path_way *way = &w->left[which];
	const bool device = way->device != claim->path->device.index && way->name[0] != '#' && !is_vrf(way),
		   from = !device && !claim->any_source && !same_host(&way->from, &claim->path->source);

	w->probes += way->count;
	if (device)
		w->elsewhere += way->count;
	else if (from)
		w->other_from += way->count;
	if ((device || from) && (w->way < 0 || way->count > w->left[w->way].count))
		w->way = which;
}

void path_witness_end(struct path_witness *w, const struct path_claim *claim)
{
	struct ktrxer_path now;

	w->departs = claim->sent > 0;
	w->compared = w->departs || w->arrived_count;
	w->probes = w->elsewhere = w->other_from = w->answers = w->answers_elsewhere = 0;
	w->way = -1;
	if (claim->tx) {
		w->left_count = 0;
		path_witness_sent(w, claim->tx, claim->path, claim->sent);
	}
	for (int i = 0; i < w->left_count; i++) {
		struct path_way *way = &w->left[i];

		name_write(way);
		if (!way->next_hop.family && path_find(&now, way->name, &way->from, &claim->path->to, false, NULL) == 0)
			way->next_hop = now.next_hop;
		compare(w, claim, i);
	}
	for (int i = 0; i < w->arrived_count; i++) {
		name_write(&w->arrived[i]);
		w->answers += w->arrived[i].count;
		if (w->arrived[i].device != claim->path->device.index)
			w->answers_elsewhere += w->arrived[i].count;
	}
	w->changed = (w->elsewhere + w->other_from) * 100 > w->probes;
	/* The same question as before the measurement. Whole frames keep the next hop that they were made for. */
	w->rerouted = w->stamped && !w->elsewhere &&
		      path_find(&now, claim->device, claim->from, &claim->path->to, false, NULL) == 0 &&
		      !ktrxer_addr_equal(&now.next_hop, &claim->path->next_hop);
	if (w->rerouted)
		w->next_hop = now.next_hop;
}
#endif
