/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "xsk_send.h"

#include <errno.h>

/* The smallest number of frames that any kernel takes with one call (TX_BATCH_SIZE was 16 until 5.11, 32 since). */
#define LEAST_BUDGET 16

static bool means_lost(int rc)
{
	return rc == -ENETDOWN || rc == -ENXIO || rc == -ENODEV || rc == -EBADF;
}

static void invalidate_rest(const struct xsk_sender *sender)
{
	for (uint32_t left = xsk_ring_left(sender->tx); left; left--)
		/* Beyond every umem, no length, options that do not exist: each alone is enough for some kernel. */
		*xsk_ring_desc(sender->tx, sender->tx->mine - left) =
			(struct xdp_desc){ .addr = UINT64_MAX, .options = UINT32_MAX };
}

int ktrxer_xsk_lost(struct xsk_sender *sender)
{
	/* A device that is removed goes down first, so one more call distinguishes the two. */
	if (sender->lost == -ENETDOWN) {
		int rc = sender->kick(sender->context);

		if (means_lost(rc))
			sender->lost = rc;
	}
	return sender->lost;
}

/* Takes back what the kernel did not take of the last `count`. Returns how many it did take. */
static uint32_t settle(struct xsk_sender *sender, uint32_t count)
{
	uint32_t left;
	uint64_t invalid;
	int rc = 0;

	invalidate_rest(sender);
	/* A kernel steps over one or all of them with a call, and says so with the next one at the latest. */
	for (uint32_t calls = xsk_ring_left(sender->tx) + 2; calls && xsk_ring_left(sender->tx); calls--) {
		rc = sender->kick(sender->context);
		if (means_lost(rc))
			break;
	}
	left = xsk_ring_left(sender->tx);
	if (left)
		sender->lost = means_lost(rc) ? rc : -EIO;
	rc = sender->invalid(sender->context, &invalid);
	if (rc < 0) {
		sender->lost = sender->lost ? sender->lost : rc;
		return count - left;
	}
	count -= left + (uint32_t)(invalid - sender->invalid_seen);
	sender->invalid_seen = invalid;
	return count;
}

/* A device that is full most of the time is offered less: refused frames cost calls to take back. */
static void adapt(struct xsk_sender *sender, bool all)
{
	if (all && sender->batch < sender->most)
		sender->batch = sender->batch * 2 < sender->most ? sender->batch * 2 : sender->most;
	else if (!all && sender->batch > 1)
		sender->batch /= 2;
}

int ktrxer_xsk_send(struct xsk_sender *sender, const struct xdp_desc *descs, uint32_t count, bool *dropped)
{
	uint32_t taken;
	int rc = 0;

	*dropped = false;
	if (sender->lost)
		return ktrxer_xsk_lost(sender);
	if (count > sender->batch)
		count = sender->batch;
	for (uint32_t i = 0; i < count; i++)
		*xsk_ring_desc(sender->tx, sender->tx->mine + i) = descs[i];
	xsk_ring_publish(sender->tx, count);
	/*
	 * EAGAIN says either that the budget of one call is used up or that the device is full: only trying again
	 * tells.
	 */
	for (uint32_t calls = count / LEAST_BUDGET + 2; calls; calls--) {
		rc = sender->kick(sender->context);
		if (rc && rc != -EAGAIN)
			break;
		if (!xsk_ring_left(sender->tx)) {
			adapt(sender, true);
			return (int)count;
		}
	}
	if (means_lost(rc))
		sender->lost = rc;
	taken = settle(sender, count);
	adapt(sender, false);
	/* EBUSY: the kernel stopped after a frame that the device dropped. */
	if (rc == -EBUSY && taken) {
		*dropped = true;
		taken--;
	}
	if (taken)
		return (int)taken;
	return sender->lost ? sender->lost : rc ? rc : -EAGAIN;
}
