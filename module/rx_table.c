// SPDX-License-Identifier: GPL-2.0-only
/* A table of rules with its counters: made whole, published by a pointer, never changed. */
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "rx.h"

enum { KRX_BUCKETS_MIN = 16 };

void krx_table_free(struct krx_table *table)
{
	int cpu;

	if (!table)
		return;
	if (table->counts)
		for_each_possible_cpu(cpu)
			kvfree(per_cpu_ptr(table->counts, cpu)->matched);
	free_percpu(table->counts);
	kvfree(table->match.buckets);
	kvfree(table->match.wild);
	kvfree(table->match.exact);
	kvfree(table->match.op);
	kfree(table);
}

static struct krx_table *krx_table_alloc(u32 count)
{
	struct krx_table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);
	struct krx_match *m;
	u32 buckets;
	int cpu;

	if (!table)
		return NULL;
	m = &table->match;
	buckets = roundup_pow_of_two(max_t(u32, 2 * count, KRX_BUCKETS_MIN));
	m->bucket_mask = buckets - 1;
	m->wild_most = min_t(u32, count, KTRXER_RX_LIST_MAX);
	m->seed = get_random_u32(); /* no sender can choose packets that all fall into one bucket */
	m->op = kvcalloc(count, sizeof(*m->op), GFP_KERNEL_ACCOUNT);
	m->exact = kvcalloc(count, sizeof(*m->exact), GFP_KERNEL_ACCOUNT);
	m->wild = kvcalloc(m->wild_most, sizeof(*m->wild), GFP_KERNEL_ACCOUNT);
	m->buckets = kvcalloc(buckets, sizeof(*m->buckets), GFP_KERNEL_ACCOUNT);
	table->counts = alloc_percpu(struct krx_counts);
	if (!m->op || !m->exact || !m->wild || !m->buckets || !table->counts)
		goto err;
	memset(m->buckets, 0xff, buckets * sizeof(*m->buckets)); /* KRX_NONE */
	for_each_possible_cpu(cpu) {
		struct krx_counts *counts = per_cpu_ptr(table->counts, cpu);

		u64_stats_init(&counts->sync);
		counts->matched = kvcalloc(count, sizeof(*counts->matched), GFP_KERNEL_ACCOUNT);
		if (!counts->matched)
			goto err;
	}
	return table;

err:
	krx_table_free(table);
	return NULL;
}

struct krx_table *krx_table_make(const struct ktrxer_rx_rule __user *from, u32 count)
{
	struct ktrxer_rx_rule *rules = NULL;
	struct krx_table *table;
	int ret = 0;
	u32 i;

	if (count) {
		rules = vmemdup_user(from, array_size(count, sizeof(*rules)));
		if (IS_ERR(rules))
			return ERR_CAST(rules);
	}
	table = krx_table_alloc(count);
	if (!table)
		ret = -ENOMEM;
	for (i = 0; i < count && !ret; i++)
		ret = krx_match_add(&table->match, &rules[i]);
	kvfree(rules);
	if (!ret)
		return table;
	krx_table_free(table);
	return ERR_PTR(ret);
}

bool krx_table_drops(const struct krx_table *table)
{
	u32 i;

	for (i = 0; i < table->match.count; i++)
		if (table->match.op[i] == KTRXER_RX_DROP ||
		    table->match.op[i] == KTRXER_RX_CAPTURE_DROP)
			return true;
	return false;
}

void krx_table_sums(const struct krx_table *table, u64 *matched, u32 count)
{
	unsigned int start;
	u64 value;
	int cpu;
	u32 i;

	memset(matched, 0, count * sizeof(*matched));
	for_each_possible_cpu(cpu) {
		const struct krx_counts *counts = per_cpu_ptr(table->counts, cpu);

		for (i = 0; i < count; i++) {
			/*
			 * The writer is a softirq. With softirqs off here, it can only run on
			 * another processor, and the sequence count detects that.
			 */
			local_bh_disable();
			do {
				start = u64_stats_fetch_begin(&counts->sync);
				value = counts->matched[i];
			} while (u64_stats_fetch_retry(&counts->sync, start));
			local_bh_enable();
			matched[i] += value;
		}
		cond_resched();
	}
}
