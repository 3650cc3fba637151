/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The range of a template that is with the engine: its accounts and its end. The tool's side alone. */
#include "tx.h"

#include <errno.h>

/* Adds a range to the accounts. Its requests are known before, or, without an end, are the numbers taken so far. */
static void stream_add(const struct ktx *tx, const struct ktx_stream_look *look, struct ktx_accounts *sums)
{
	const uint64_t requested = tx->tool.stream_open ? look->taken : tx->tool.stream_count;

	sums->requested += requested;
	sums->sent += look->sent;
	sums->failed += look->failed;
	sums->driver += look->sent - look->queued;
	sums->queued += look->queued;
	sums->tries += look->tries;
	sums->bytes += look->sent * tx->tool.stream_length;
	if (look->error)
		sums->last_error = look->error;
	if (look->sent) {
		if (!sums->first_ns || look->first_ns < sums->first_ns)
			sums->first_ns = look->first_ns;
		if (look->last_ns > sums->last_ns)
			sums->last_ns = look->last_ns;
	}
	if (!look->ended)
		return;
	/* A device that is gone fails the rest. */
	if (look->lost && look->lost != -ECANCELED) {
		sums->failed += requested - look->sent - look->failed;
		sums->last_error = look->lost;
	} else {
		sums->cancelled += requested - look->sent - look->failed;
	}
}

bool ktx_stream_running(struct ktx *tx)
{
	struct ktx_stream_look look;

	if (!tx->tool.streams)
		return false;
	tx->engine->stream->look(tx->state, &look);
	if (!look.ended)
		return true;
	stream_add(tx, &look, &tx->tool.sums);
	tx->tool.streams = false;
	/* The pump may not have said so yet. */
	if (look.lost && look.lost != -ECANCELED)
		ktx_dead(tx, look.lost);
	return false;
}

void ktx_stream_count(const struct ktx *tx, struct ktx_accounts *accounts)
{
	struct ktx_stream_look look;

	if (!tx->tool.streams)
		return;
	tx->engine->stream->look(tx->state, &look);
	stream_add(tx, &look, accounts);
}

void ktx_stream_stop(struct ktx *tx)
{
	if (tx->tool.streams)
		tx->engine->stream->stop(tx->state);
}
