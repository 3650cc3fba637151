/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ranges of templates: by an engine that makes the frames itself, or one by one into slots. The tool's side alone. */
#include "template_plan.h"
#include "tx.h"

#include "options.h"

#include <errno.h>

/* The count of a range that ends by a cancellation: more than can be sent, and sums with it do not wrap. */
#define WITHOUT_END (1ULL << 62)

static int range_to_engine(struct ktx *tx, const struct ktx_template *made, struct ktx_range *range,
			   struct ktrxer_error *err)
{
	const bool open = range->left == KTRXER_NEVER;
	const struct ktx_stream stream = { .made = made,
					   .first = range->next,
					   .count = open || range->left > WITHOUT_END ? WITHOUT_END : range->left,
					   .threads = range->threads ? range->threads : 1 };
	int rc;

	if (ktx_stream_running(tx))
		return -EAGAIN;
	rc = ktx_check(tx, made->frame, made->plan.length, err);
	if (rc < 0 || (rc = tx->engine->stream->start(tx->state, &stream, err)) < 0)
		return rc;
	tx->tool.streams = true;
	tx->tool.stream_open = open;
	tx->tool.stream_count = stream.count;
	tx->tool.stream_length = made->plan.length;
	atomic_store(&tx->shared.stream_runs, true);
	ktx_signal(tx->wake_fd);
	range->next += stream.count;
	range->left = open ? 0 : range->left - stream.count;
	return 0;
}

static int range_to_slots(struct ktx *tx, const struct ktx_template *made, struct ktx_range *range,
			  struct ktrxer_error *err)
{
	if (made->plan.length > tx->frame_size)
		return ktx_check(tx, made->frame, made->plan.length, err);
	/* One ring at a time: a caller with a range without an end reads the clock between the calls. */
	for (uint32_t n = 0; range->left && n < tx->ring.slots; n++) {
		const struct ktx_probe probe = { .id = range->next, .length = made->plan.length };
		struct ktx_request *request = ktx_request_reserve(tx);
		int rc;

		if (!request)
			return n ? 0 : -EAGAIN;
		ktx_template_fill(made, request->frame, range->next);
		rc = ktx_request_commit(tx, request, &probe, err);
		if (rc < 0)
			return rc;
		range->next++;
		if (range->left != KTRXER_NEVER)
			range->left--;
	}
	return 0;
}

int ktx_template_send(struct ktx *tx, const struct ktx_template *made, struct ktx_range *range,
		      struct ktrxer_error *err)
{
	struct ktx_range own;
	int rc = ktrxer_options_read(&own, sizeof own, range, offsetof(struct ktx_range, threads) + sizeof own.threads,
				     "ktx_range", err);

	if (rc < 0)
		return rc;
	if (!tx || !made)
		return ktrxer_fail(err, -EINVAL, "ktx_template_send: no transmitter or no template (NULL)");
	if (!own.left)
		return 0;
	if (tx->engine->stream && tx->options.purpose == KTX_FOR_RATE && tx->options.reports != KTX_REPORT_ALL)
		rc = range_to_engine(tx, made, &own, err);
	else
		rc = range_to_slots(tx, made, &own, err);
	range->next = own.next;
	range->left = own.left;
	return rc;
}
