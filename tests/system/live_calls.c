/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_live.py uses this. It sends COUNT probes, 100 us apart, to port 9 of ADDRESS by the live engine, with a limit of
 * runs for each call of its program that is low enough for several calls in turn. The payload is the number of the
 * probe, 8 bytes in network order. Prints the number of probes that were sent. live_calls DEVICE ADDRESS COUNT RUNS
 */
#include "error.h"
#include "live_runner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define GAP_NS 100000

static int commit(struct ktx *tx, struct ktrxer_frame_spec *spec, uint64_t number, uint64_t at_ns,
		  struct ktrxer_error *err)
{
	uint8_t payload[8];
	struct ktx_slot slot;
	int rc = ktx_reserve(tx, &slot);

	if (rc < 0)
		return rc;
	for (int i = 0; i < 8; i++)
		payload[i] = (uint8_t)(number >> (56 - 8 * i));
	spec->payload = payload;
	spec->payload_length = sizeof payload;
	rc = ktrxer_frame_build(slot.frame, slot.capacity, spec);
	if (rc < 0)
		return ktrxer_fail(err, rc, "no frame can be built for this path");
	return ktx_commit(tx, &(struct ktx_probe){ .id = number, .at_ns = at_ns, .length = (uint32_t)rc }, err);
}

static int send_all(struct ktx *tx, const struct ktrxer_path *path, uint64_t count, struct ktrxer_error *err)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct pollfd room = { .fd = ktx_fd(tx), .events = POLLIN };
	const uint64_t start = ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS;
	struct ktx_report reports[64];

	spec.path = path;
	spec.proto = KTRXER_UDP;
	spec.from_port = 40000;
	spec.to_port = 9;
	for (uint64_t i = 0; i < count;) {
		int rc = commit(tx, &spec, i, start + i * GAP_NS, err);

		if (rc == -EAGAIN) {
			poll(&room, 1, 1000);
			while (ktx_reports(tx, reports, 64) > 0)
				;
			continue;
		}
		if (rc < 0)
			return rc;
		i++;
	}
	return ktx_drain(tx, ktrxer_now_ns() + 30 * KTRXER_NS_PER_S);
}

int main(int argc, char **argv)
{
	struct ktrxer_path_options where = KTRXER_PATH_OPTIONS_INIT;
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktrxer_error err = { .text = "the frames do not leave" };
	struct ktx_accounts accounts;
	struct ktrxer_path path;
	struct ktx *tx = NULL;
	int rc;

	if (argc != 5 || ktrxer_addr_parse(&where.to, argv[2]) < 0) {
		fprintf(stderr, "usage: live_calls DEVICE ADDRESS COUNT RUNS\n");
		return 2;
	}
	where.device = options.device = argv[1];
	options.engine = "live";
	ktrxer_live_runner_repeat = (uint32_t)strtoul(argv[4], NULL, 10);
	if ((rc = ktrxer_path_resolve(&path, &where, &err)) < 0 || (rc = ktx_open(&tx, &options, &err)) < 0 ||
	    (rc = send_all(tx, &path, strtoul(argv[3], NULL, 10), &err)) < 0)
		fprintf(stderr, "live_calls: %s\n", err.text);
	ktx_accounts(tx, &accounts);
	ktx_close(tx);
	printf("%d\n", (int)accounts.sent);
	return rc < 0;
}
