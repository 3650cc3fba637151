/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One job: the far end counts what comes to a port of this job's own while one sender sends. */
#include "bench.h"

#include "error.h"

#include <errno.h>
#include <string.h>

enum { FIRST_PORT = 20000, PORTS = 20000 };

int bench_turn(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, struct bench_turn *turn,
	       struct ktrxer_error *err)
{
	const uint16_t port = (uint16_t)(FIRST_PORT + run->turns++ % PORTS);
	int rc;

	*turn = (struct bench_turn){ .sent = UINT64_MAX, .sent_ns = run->sent_ns };
	if (job->reports)
		memset(run->sent_ns, 0, run->slots * sizeof *run->sent_ns);
	farend_begin(run->far, port, BENCH_CROSS_PORT);
	bench_watch_begin(run->watch);
	if (job->pattern == BENCH_TEMPLATE)
		rc = bench_send_template(run, who, job, port, turn, err);
	else
		rc = who->engine ? bench_send_engine(run, who, job, port, turn, err)
				 : bench_send_baseline(run, who, job, port, turn, err);
	turn->quiet = bench_watch_end(run->watch);
	farend_end(run->far, &turn->far);
	if (rc < 0)
		return rc;
	if (!turn->far.probes)
		return ktrxer_fail(err, -ENODATA, "nothing arrived at the far end");
	return 0;
}
