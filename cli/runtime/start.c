/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --start-at: several processes, perhaps on several hosts, begin together. */
#include "cli.h"

#include "clock.h"
#include "out.h"
#include "reasons.h"

#include <errno.h>
#include <poll.h>

enum {
	KTRXER_START_AHEAD_MS = 50,       /* --start-at: back this early, so that the first probe is prepared in time */
	KTRXER_START_AHEAD_MAX_S = 86400, /* later is a wrong unit */
};

#define SECOND_NS 1000000000ll

/* How long until then, on CLOCK_REALTIME; asked anew each time, since that clock may be stepped while we wait. */
static int64_t until(uint64_t at_real_ns, struct ktrxer_clock_pair *pair)
{
	ktrxer_clock_pair_read(pair);
	return (int64_t)(at_real_ns - (uint64_t)pair->real_ns);
}

int cli_wait_start_ahead(struct cli *cli, uint32_t ahead_ms, uint64_t *start_ns)
{
	uint64_t at = cli->common.start_at_real_ns;
	struct ktrxer_clock_pair pair;
	int64_t left;

	out_start(cli);
	*start_ns = ktrxer_now_ns();
	if (!at)
		return 0;
	left = until(at, &pair);
	if (at > INT64_MAX || left > KTRXER_START_AHEAD_MAX_S * SECOND_NS) {
		cli_complain(cli,
			     "--start-at %llu is more than a day ahead; it is nanoseconds since 1970 (date +%%s%%N), "
			     "and now is %lld",
			     (unsigned long long)at, (long long)pair.real_ns);
		return -EINVAL;
	}
	if (left < -KTRXER_START_AHEAD_MAX_S * SECOND_NS) {
		cli_complain(cli,
			     "--start-at %llu is more than a day ago; it is nanoseconds since 1970 (date +%%s%%N), and "
			     "now is %lld",
			     (unsigned long long)at, (long long)pair.real_ns);
		return -EINVAL;
	}
	for (; left > ahead_ms * 1000000ll; left = until(at, &pair)) {
		struct pollfd stop = { .fd = cli->stop_fd, .events = POLLIN };
		int64_t wait_ms = left / 1000000 - ahead_ms;

		if (cli_stopped(cli))
			return 1;
		/* Sleep a second at most, to notice a step of the clock soon. */
		if (poll(&stop, 1, wait_ms > 1000 ? 1000 : wait_ms < 1 ? 1 : (int)wait_ms) < 0 && errno != EINTR)
			return -errno;
	}
	if (left < 0) {
		reason_started_late(cli, -left);
		*start_ns = pair.mono_ns;
	} else {
		*start_ns = pair.mono_ns + (uint64_t)left;
	}
	return 0;
}

void cli_sleep_until(const struct cli *cli, uint64_t start_ns)
{
	struct pollfd stop = { .fd = cli->stop_fd, .events = POLLIN };

	for (uint64_t now = ktrxer_now_ns(); now < start_ns && !cli_stopped(cli); now = ktrxer_now_ns()) {
		const struct timespec span = ktrxer_span(start_ns - now);

		ppoll(&stop, 1, &span, NULL);
	}
}

int cli_wait_start(struct cli *cli, uint64_t *start_ns)
{
	return cli_wait_start_ahead(cli, KTRXER_START_AHEAD_MS, start_ns);
}
